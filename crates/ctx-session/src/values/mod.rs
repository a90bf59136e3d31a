//! Values that engines keep between turns: on disk, or for one run only.

mod file;
mod passing;

pub use file::{FileStore, Limits};
pub use passing::PassingStore;
