//! The two layers: one recalls and trims, one archives.

mod archive;
mod departed;
mod recall;
mod recalled_blocks;
mod trim;
mod views;
mod warnings;

pub use archive::Archive;
pub use departed::DepartedMessages;
pub use recall::Recall;
pub(crate) use recall::newest_user;
pub(crate) use views::Views;
pub(crate) use warnings::Warnings;
