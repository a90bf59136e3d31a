//! Long-term memory: what leaves the window is archived word for word, and comes back when a later
//! message needs it.
//!
//! ```text
//! message --> redact --> Segment --> archive (segments.jsonl: the truth)
//!                           |
//!                           +--> lexical index (tantivy, and a delta that is searchable at once)
//!                           +--> vectors (an Embedder; vectors.bin)
//!                           +--> facts (knowledge.jsonl)
//!
//! query --> lexical scores, vector scores --> fuse --> hits --> block --> one user message
//! ```
//!
//! A [`Segment`] is one message as it was said. Its id is made of what it holds, so the same message
//! archived twice, by whichever process, is one segment. Everything but the two JSONL files is
//! derived from them, and made anew where it is missing, stale or damaged.

#![forbid(unsafe_code)]

mod apart;
pub mod archive;
mod config;
mod embed;
pub mod facts;
mod index;
mod layer;
pub mod lexical;
mod near;
mod recall;
mod redact;
mod search;
mod segment;
mod store;
pub mod tags;
pub mod text;
mod trim;
pub mod vectors;
pub mod workspace;

use ctx_disk as disk;

pub use config::{Config, EmbeddingModel, Excluded, Placement, RecallSettings};
#[cfg(feature = "transformer")]
pub use embed::TransformerEmbedder;
pub use embed::{HashEmbedder, cosine, embedded_text};
pub use layer::{Archive, Leaving, Recall};
pub use recall::{Block, RECALLED_TAG, build, is_query, is_recalled, query_of};
pub use redact::{Redacted, Redactor};
pub use search::{Cosines, Fusion, Hit, Parts, Query, SearchIndex, SearchSettings, diversify};
pub use segment::{Metadata, Segment, SegmentId};
pub use store::{Memory, SessionMemory, Settings, Stats, VectorModel, Vectors};
pub use trim::{TrimReason, TrimRow, plan_trim};

#[cfg(feature = "register")]
mod register;
#[cfg(feature = "register")]
pub use register::ENGINE;
