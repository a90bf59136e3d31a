//! Workspace search: finds the parts of a folder's files that match a question.
//!
//! ```text
//! folder --> walk --> read --> chunks --> index on disk (words; vectors, if there is a model)
//!                                  \----> files.jsonl: the indexed files (the source of truth)
//!
//! question --> should_search --> scores of chunks --> read again, hash checked --> block
//! ```
//!
//! Only the words of the folder are copied, into the index, without secrets. Snippets are read from
//! the files again, and only from files that have not changed.

#![forbid(unsafe_code)]

mod block;
mod chunk;
mod config;
mod embed;
mod hash;
mod index;
mod layer;
mod list;
mod plan;
mod rank;
mod read;
mod rows;
mod search;
mod service;
mod settings;
#[cfg(test)]
mod tests;
mod trigger;
mod update;
mod walk;

use ctx_disk as disk;

pub use block::{ContextBlock, build as build_context};
pub use config::{Config, Placement, WorkspaceAccess, WorkspaceFolder};
pub use index::{Workspace, folder_of};
pub use layer::WorkspaceLayer;
pub use rank::{rank, sessions};
pub use search::WorkspaceMatches;
pub use service::WorkspaceService;
pub use settings::WorkspaceSettings;
pub use trigger::{Trigger, question_of, should_search};
pub use update::{IndexReport, Progress};
pub use walk::Skipped;

#[cfg(feature = "register")]
mod register;
