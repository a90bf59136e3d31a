//! `agents.defaults.compaction`.

use ctx_core::{Profile, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When history is compacted, and how much of it stays.
///
/// The reserve is what is kept free of the window for the answer and for what must be done before
/// a compaction. It is at most a quarter of the window, whatever is set here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Whether history is compacted at all. Default: true.
    pub enabled: bool,
    /// Tokens kept free of the window. Default: 16384 (pi). Not used when `triggerRatio` is set.
    pub reserve_tokens: u32,
    /// `reserveTokens` is raised to this; 0 switches the floor off. Default: 20000 (OpenClaw);
    /// 0 under `pi` and `memory-context`.
    pub reserve_tokens_floor: u32,
    /// Compact when this share of the window is used, instead of by `reserveTokens`. Default: not
    /// set; 0.8 under `ponybunny`; `agents.running.memory_compact_ratio` under `copaw`, or where
    /// that is set by hand. An explicit `reserveTokens` or `reserveTokensFloor` wins over a default.
    /// From 0.1 to 1.
    #[schemars(range(min = 0.1, max = 1))]
    pub trigger_ratio: Option<f64>,
    /// Tokens of recent history that a compaction keeps verbatim. Default: 20000; at most 40 % of
    /// the budget. It waits for summaries: the hard prune goes by `maxHistoryShare`.
    pub keep_recent_tokens: u32,
    /// The share of the window that history may take after a hard prune. Default: 0.8 (Pi engine).
    /// From 0.1 to 0.9.
    #[schemars(range(min = 0.1, max = 0.9))]
    pub max_history_share: f64,
    /// The silent turn that saves what matters before a compaction. It waits for the outer loop.
    pub memory_flush: MemoryFlush,
}

/// The silent turn before a compaction. It is run by the outer loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct MemoryFlush {
    /// Whether it runs. Default: true.
    pub enabled: bool,
    /// How far below the compaction threshold it runs, in tokens. Default: 4000.
    pub soft_threshold_tokens: u32,
    /// Its user message. Default: the built-in one, which hints NO_REPLY.
    pub prompt: Option<String>,
    /// What it adds to the system prompt. Default: the built-in text, which hints NO_REPLY.
    pub system_prompt: Option<String>,
}

impl Default for MemoryFlush {
    fn default() -> Self {
        Self { enabled: true, soft_threshold_tokens: 4_000, prompt: None, system_prompt: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            reserve_tokens_floor: 20_000,
            trigger_ratio: None,
            keep_recent_tokens: 20_000,
            max_history_share: 0.8,
            memory_flush: MemoryFlush::default(),
        }
    }
}

impl Config {
    /// The values of a profile's system.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        let base = Self::default();
        match profile {
            Profile::Openclaw | Profile::Copaw => base,
            Profile::Ponybunny => Self { trigger_ratio: Some(0.8), ..base },
            Profile::MemoryContext => {
                Self { reserve_tokens: 4_000, reserve_tokens_floor: 0, ..base }
            }
            Profile::Pi => Self { reserve_tokens_floor: 0, ..base },
        }
    }

    /// What to keep free of a window: by ratio where one is set, else the reserve raised to its
    /// floor. [`ctx_core::TokenLedger`] caps it.
    #[must_use]
    pub fn reserve(&self, window: Tokens) -> Tokens {
        match self.trigger_ratio {
            Some(ratio) => window - window.scale(ratio.clamp(0.0, 1.0)),
            None => Tokens(self.reserve_tokens.max(self.reserve_tokens_floor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_raised_to_its_floor_unless_the_floor_is_off() {
        let mut config = Config::default();
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(20_000));
        config.reserve_tokens_floor = 0;
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(16_384));
        config.reserve_tokens = 30_000;
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(30_000));
        let ponybunny = Config::for_profile(Profile::Ponybunny);
        assert_eq!(ponybunny.reserve(Tokens(80_000)), Tokens(16_000));
    }
}
