//! Recall: makes a query from the last user messages, and a block from the results.

mod block;
mod escape;
mod query;

pub use block::{RecallBlock, build_recall_block, is_recalled};
pub(crate) use escape::{escaped, escaped_with};
pub use query::is_query;
pub(crate) use query::query_of;
pub(crate) use query::{query_text, without_prefixes};
