//! How scores are made and mixed.

use ctx_core::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How lexical and vector scores become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fusion {
    /// A weighted sum of scores that are spread over 0 to 1.
    #[default]
    Weighted,
    /// Reciprocal ranks: 1 / (60 + rank), summed.
    Rrf,
}

/// `agents.defaults.memoryContext.search`: how scores are made and mixed. The defaults are what
/// measures best (docs/memory.md); the profile `memory-context` has the values of its system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SearchSettings {
    /// How the two become one. Default: `weighted`.
    pub fusion: Fusion,
    /// The share of the vectors, 0 to 1, where a model makes them. Default: 0.5.
    #[schemars(range(min = 0, max = 1))]
    pub vector_weight: f32,
    /// The share of the vectors where they are hashes of words. Default: 0.3.
    #[schemars(range(min = 0, max = 1))]
    pub hash_weight: f32,
    /// BM25's k1. Default: 1.2.
    pub k1: f32,
    /// BM25's b, 0 to 1. Default: 0.4; documents want 0.75, turns of a conversation less.
    #[schemars(range(min = 0, max = 1))]
    pub b: f32,
    /// How much of its lexical score a turn gives to the ones before and after it in its session, 0 to
    /// 1. Default: 0.4.
    #[schemars(range(min = 0, max = 1))]
    pub spread: f32,
    /// How much of the best lexical score in its session goes to every other match there, 0 to 1.
    /// Default: 0.3.
    #[schemars(range(min = 0, max = 1))]
    pub session_share: f32,
    /// What a message counts that is not the user's, against one that is, 0 to 1: what people ask for
    /// later is mostly what they said themselves. Default: 0.6.
    #[schemars(range(min = 0, max = 1))]
    pub reply_weight: f32,
    /// Where a query names somebody who speaks in the archive, what the others say counts so much, 0 to
    /// 1. Default: 0.83.
    #[schemars(range(min = 0, max = 1))]
    pub other_speakers: f32,
    /// This many turns before a segment are embedded with it. Default: 2.
    pub embed_context: u8,
    /// What an hour leaves of a score, 0 to 1; 1 is no decay. Default: 1.
    #[schemars(range(min = 0, max = 1))]
    pub hourly_decay: f32,
    /// How much relevance counts against variety (maximal marginal relevance), 0 to 1; 1 is off.
    /// Default: 1.
    #[schemars(range(min = 0, max = 1))]
    pub mmr_lambda: f32,
    /// Segments with a lower score are no hits, 0 to 1. Default: 0.
    #[schemars(range(min = 0, max = 1))]
    pub min_score: f32,
}

impl SearchSettings {
    /// The settings of a profile.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        match profile {
            Profile::MemoryContext => Self {
                vector_weight: 0.7,
                hash_weight: 0.7,
                k1: 1.2,
                b: 0.75,
                spread: 0.0,
                session_share: 0.0,
                reply_weight: 1.0,
                other_speakers: 1.0,
                embed_context: 0,
                hourly_decay: 0.995,
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
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
            hourly_decay: 1.0,
            mmr_lambda: 1.0,
            min_score: 0.0,
        }
    }
}
