//! The vectors of segments, stored so that a restart embeds nothing again.

mod fault;
mod file;
mod layout;
mod owner;
mod write;

pub use fault::VectorFault;
pub use file::VectorFile;
pub use owner::Embedding;
