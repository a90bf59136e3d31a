//! Workspace search: what the files of a folder say on what is being asked.
//!
//! ```text
//! folder --> walk --> read --> chunks --> index on disk (words; vectors where a model makes them)
//!                                  \----> files.jsonl: which files, as they were (the truth)
//!
//! question --> should_search --> scores of chunks --> read again, hash checked --> block
//! ```
//!
//! Nothing of the folder is copied but its words, for the index, without secrets. What is shown is read
//! from the files again, and only if they are what they were.

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

pub use block::{ContextBlock, build as build_context};
pub use config::{Access, Config, Folder, Placement};
pub use index::{Workspace, folder_of};
pub use layer::WorkspaceLayer;
pub use rank::{rank, sessions};
pub use search::Found;
pub use service::WorkspaceService;
pub use settings::Settings;
pub use trigger::{Trigger, question_of, should_search};
pub use update::{IndexReport, Progress};
pub use walk::Skipped;
