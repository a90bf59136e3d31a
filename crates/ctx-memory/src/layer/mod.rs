//! The three layers: one trims, one archives, one recalls.

mod archive;
mod departed;
mod recall;
mod recalled_blocks;
mod trim;

pub use archive::Archive;
pub use departed::DepartedMessages;
pub use recall::Recall;
pub use trim::Trim;
