//! Long-term memory: messages that leave the window are archived verbatim, and recalled when a
//! later message needs them.
//!
//! ```text
//! message --> redact --> Segment --> archive (segments.jsonl: the source of truth)
//!                           |
//!                           +--> words and vectors (ctx-search)
//!                           +--> facts (knowledge.jsonl)
//!
//! query --> hits (ctx-search) --> passages --> block --> one user message
//! ```
//!
//! A [`Segment`](ctx_search::Segment) is one message. Its id is a hash of its content, so a message
//! that is archived twice, by any process, is one segment. Everything but the two JSONL files is
//! derived from them, and rebuilt if it is missing, stale or damaged.

#![forbid(unsafe_code)]

pub mod archive;
mod config;
pub mod facts;
mod layer;
mod recall;
mod store;
mod trim;

use ctx_disk as disk;

pub use config::{Config, EmbeddingModel, ExcludedProjects, Placement, RecallSettings};
pub use layer::{Archive, DepartedMessages, Recall, Trim};
pub use recall::{RecallBlock, build_recall_block};
pub use store::{Memory, MemorySettings, MemoryStats, SessionMemory, Vectors};

#[cfg(feature = "register")]
mod register;
