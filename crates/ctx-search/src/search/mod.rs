//! Ranks segments by a query.

mod buffers;
mod diversify;
mod fuse;
mod head;
mod index;
mod live;
mod query;
mod settings;
mod speaker;
mod spread;
mod top;
mod turns;
mod work;

use ctx_core::Timestamp;
use serde::Serialize;

use crate::SegmentId;

pub use diversify::diversify;
pub use fuse::{fuse, min_max};
pub(crate) use head::head;
pub use head::lexical_head;
pub use index::SearchIndex;
pub use live::{Need, best_piece, fit};
pub use query::terms_of;
pub use settings::{Fusion, SearchSettings, shortest_decimal};
pub use speaker::{Speaker, subject_of};
pub use top::{top, top_rows};

/// A search.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// The words.
    pub text: &'a str,
    /// Only segments of this session; `None` searches all.
    pub session: Option<&'a str>,
    /// The maximum number of hits.
    pub limit: usize,
    /// The current time, for the decay of old segments.
    pub now: Timestamp,
}

/// A segment that matches a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The segment.
    pub id: SegmentId,
    /// Its score, 0 to 1.
    pub score: f32,
    /// The components of the score.
    pub parts: ScoreParts,
}

/// The components of a score, for `--explain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoreParts {
    /// The raw BM25 score.
    pub bm25: f32,
    /// BM25 with the shares of its neighbours and its session, relative to the best: 0 to 1.
    pub lexical: f32,
    /// Cosine to the query; 0 without vectors or if it was not computed.
    pub cosine: f32,
    /// The cosine relative to the cosines of all rows: 0 to 1.
    pub vector: f32,
    /// The factor for the speaker: 0 to 1.
    pub speaker: f32,
    /// The factor for age: 0 to 1, 1 without decay.
    pub decay: f32,
}
