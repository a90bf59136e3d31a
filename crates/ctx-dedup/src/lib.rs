//! Layer 5: replaces repeated lines of tool results with pointers to the result that has them.
//!
//! Agents read the same files and run the same tests again and again. [`Dedup`] finds the lines of a
//! result that stand in an earlier result of the request, and replaces each run of them with one
//! line that says where they are. If the earlier result leaves the request, the lines come back:
//! see [`ContextView::replace_with_pointers`](ctx_core::ContextView::replace_with_pointers).

#![forbid(unsafe_code)]

mod config;
mod index;
mod layer;
mod line;

pub use config::{Config, Mode};
pub use layer::Dedup;

#[cfg(feature = "register")]
mod register;
