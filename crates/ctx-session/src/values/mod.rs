//! Values that engines keep between turns: on disk, or in memory for one run.

mod file;
mod transient;

pub use file::FileStore;
pub use transient::TransientStore;
