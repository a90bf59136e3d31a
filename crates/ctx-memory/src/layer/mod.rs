//! The two layers: what is recalled and trimmed, and what is archived.

mod archive;
mod leaving;
mod recall;
mod said;
mod shown;
mod trim;
mod views;

pub use archive::Archive;
pub use leaving::Leaving;
pub use recall::Recall;
pub(crate) use recall::newest_user;
pub(crate) use said::Warnings;
pub(crate) use views::Views;
