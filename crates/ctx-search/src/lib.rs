//! Search over segments: messages of an archive, chunks of a workspace.
//!
//! ```text
//! Segment --> lexical: Delta, or index::DiskIndex on disk --> BM25 scores --\
//!        \--> embed --> vectors::VectorFile --> near ------> cosines --------+--> SearchIndex --> Hit
//! ```
//!
//! A [`Segment`] is one message; its id is a hash of its content. Index and vectors are derived
//! from segments: if they are missing, stale or damaged, their owner rebuilds them.

#![forbid(unsafe_code)]

pub mod block;
mod blocking;
mod embed;
mod id_table;
pub mod index;
pub mod lexical;
pub mod near;
pub mod question;
pub mod search;
mod segment;
pub mod vectors;

use ctx_disk as disk;

pub use blocking::spawn_blocking;
#[cfg(feature = "transformer")]
pub use embed::TransformerEmbedder;
pub use embed::{HashEmbedder, LONGEST, VectorModel, embedded_text, vectors_of};
pub use id_table::IdTable;
pub use search::{Fusion, Hit, Query, ScoreParts, SearchIndex, SearchSettings};
pub use segment::{Metadata, Segment, SegmentId};
