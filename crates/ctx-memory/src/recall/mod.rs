//! Recall: makes a query from the last user messages, and a block from the results.

mod block;
mod query;

pub use block::{RecallBlock, build_recall_block};
pub(crate) use query::query_of;
