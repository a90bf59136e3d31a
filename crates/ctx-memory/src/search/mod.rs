//! What is asked of memory, and what it answers.

mod fuse;
mod head;
mod index;
mod live;
pub(crate) mod query;
mod room;
mod settings;
mod speaker;
mod spread;
mod top;
mod turns;
mod variety;

use ctx_core::Timestamp;
use serde::Serialize;

use crate::SegmentId;

pub(crate) use fuse::{fuse, min_max};
pub(crate) use head::{head, lexical_head};
pub use index::{Cosines, SearchIndex};
pub(crate) use live::{Need, best_piece, fit};
pub use settings::{Fusion, SearchSettings};
pub(crate) use speaker::Said;
pub(crate) use top::top;
pub use variety::diversify;

/// A question to the archive.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// The words.
    pub text: &'a str,
    /// Only what was said in this session; `None` searches them all.
    pub session: Option<&'a str>,
    /// At most this many hits.
    pub limit: usize,
    /// What time it is, for the decay of old segments.
    pub now: Timestamp,
}

/// A segment that fits a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The segment.
    pub id: SegmentId,
    /// How well it fits, 0 to 1.
    pub score: f32,
    /// What the score is made of.
    pub parts: Parts,
}

/// What a score is made of, for `--explain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// BM25, as it is.
    pub bm25: f32,
    /// BM25 with what its neighbours and its session gave to it, against the best of all: 0 to 1.
    pub lexical: f32,
    /// Cosine to the query; 0 without vectors, and where it was not looked at.
    pub cosine: f32,
    /// The cosine against those of all: 0 to 1.
    pub vector: f32,
    /// What it counts by who said it: 0 to 1.
    pub speaker: f32,
    /// What age left of it: 0 to 1, 1 without decay.
    pub decay: f32,
}
