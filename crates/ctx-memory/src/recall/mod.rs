//! Bringing it back: from the user's last messages to one message in front of the newest.

mod block;
mod escape;
mod query;

pub use block::{Block, RECALLED_TAG, build, is_recalled};
pub(crate) use escape::{escaped, escaped_with};
pub use query::{is_query, query_of};
pub(crate) use query::{said, without_prefixes};
