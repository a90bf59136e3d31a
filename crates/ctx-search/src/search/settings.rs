//! How scores are computed and combined.

use schemars::JsonSchema;
use serde::ser::{Error as _, Serializer};
use serde::{Deserialize, Serialize};

/// How lexical and vector scores are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fusion {
    /// A weighted sum of scores scaled to 0 to 1.
    #[default]
    Weighted,
    /// Reciprocal ranks: 1 / (60 + rank), summed.
    Rrf,
}

/// `agents.defaults.memoryContext.search`: how scores are computed and combined. The defaults
/// measured best (docs/memory.md); the profile `memory-context` has the values of its system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SearchSettings {
    /// How lexical and vector scores are combined. Default: `weighted`.
    pub fusion: Fusion,
    /// The weight of a model's vectors, 0 to 1. Default: 0.5.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub vector_weight: f32,
    /// The weight of vectors that are hashes of words. Default: 0.3.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub hash_weight: f32,
    /// BM25's k1. Default: 1.2.
    #[serde(serialize_with = "shortest_decimal")]
    #[schemars(range(min = 0, max = 10))]
    pub k1: f32,
    /// BM25's b, 0 to 1. Default: 0.4; documents need 0.75, turns of a conversation less.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub b: f32,
    /// The share of its lexical score that a turn passes to the previous and next turn of its
    /// session, 0 to 1. Default: 0.4.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub spread: f32,
    /// The share of the best lexical score in its session that is added to every other match there,
    /// 0 to 1. Default: 0.3.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub session_share: f32,
    /// The weight of messages that are not the user's, relative to the user's, 0 to 1: later
    /// questions are mostly about what users said themselves. Default: 0.6.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub reply_weight: f32,
    /// If a query names a speaker in the archive, the weight of all other speakers, 0 to 1.
    /// Default: 0.83.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub other_speakers: f32,
    /// The number of turns before a segment that are embedded with it. Default: 2.
    pub embed_context: u8,
    /// The factor by which a score decays per day, 0 to 1; 1 disables decay. Default: 1.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub daily_decay: f32,
    /// The weight of relevance against variety (maximal marginal relevance), 0 to 1; 1 is off.
    /// Default: 1.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub mmr_lambda: f32,
    /// Segments with a lower score are not returned, 0 to 1. Default: 0.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "shortest_decimal")]
    pub min_score: f32,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            fusion: Fusion::Weighted,
            vector_weight: 0.5,
            hash_weight: 0.3,
            k1: 1.2,
            b: 0.4,
            spread: 0.4,
            session_share: 0.3,
            reply_weight: 0.6,
            other_speakers: 0.83,
            embed_context: 2,
            daily_decay: 1.0,
            mmr_lambda: 1.0,
            min_score: 0.0,
        }
    }
}

/// Writes the shortest decimal that reads as `number`: 0.7, not 0.699999988079071.
pub fn shortest_decimal<S: Serializer>(number: &f32, to: S) -> Result<S::Ok, S::Error> {
    let decimal: f64 = number.to_string().parse().map_err(S::Error::custom)?;
    to.serialize_f64(decimal)
}
