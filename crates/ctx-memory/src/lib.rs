//! Long-term memory: messages that leave the window are archived verbatim, and recalled when a
//! later message needs them.
//!
//! ```text
//! message --> redact --> Segment --> archive (segments.jsonl: the source of truth)
//!                           |
//!                           +--> lexical index (tantivy, and a delta that is searchable at once)
//!                           +--> vectors (an Embedder; vectors.bin)
//!                           +--> facts (knowledge.jsonl)
//!
//! query --> lexical scores, vector scores --> fuse --> hits --> block --> one user message
//! ```
//!
//! A [`Segment`] is one message. Its id is a hash of its content, so a message that is archived
//! twice, by whichever process, is one segment. Everything but the two JSONL files is derived from
//! them, and rebuilt if it is missing, stale or damaged.

#![forbid(unsafe_code)]

pub mod archive;
mod blocking;
mod config;
mod embed;
pub mod facts;
mod index;
mod layer;
mod lexical;
mod near;
mod recall;
mod search;
mod segment;
mod store;
mod tags;
mod trim;
pub mod vectors;
pub mod workspace;

use ctx_disk as disk;

pub use config::{Config, EmbeddingModel, ExcludedProjects, Placement, RecallSettings};
#[cfg(feature = "transformer")]
pub use embed::TransformerEmbedder;
pub use embed::{HashEmbedder, cosine, embedded_text};
pub use layer::{Archive, DepartedMessages, Recall};
pub use recall::{RecallBlock, build_recall_block, is_query, is_recalled};
pub use search::{Cosines, Fusion, Hit, Query, ScoreParts, SearchIndex, SearchSettings};
pub use segment::{Metadata, Segment, SegmentId};
pub use store::{Memory, MemorySettings, MemoryStats, SessionMemory, VectorModel, Vectors};

#[cfg(feature = "register")]
mod register;
