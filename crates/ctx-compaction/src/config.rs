//! `agents.defaults.compaction`.

use std::collections::BTreeMap;

use ctx_core::{IdentifierPolicy, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When history is compacted, how much of it is kept, and who writes the summary.
///
/// The reserve is the part of the context window kept free for the answer and for steps before a
/// compaction. It is capped at a quarter of the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Whether history is compacted. Default: true.
    pub enabled: bool,
    /// Tokens kept free of the window. Default: 16384 (pi); 30000 under `proxy`. Ignored when
    /// `triggerRatio` is set.
    pub reserve_tokens: u32,
    /// The minimum that `reserveTokens` is raised to; 0 disables it. Default: 20000 (OpenClaw); 0
    /// under `pi` and `memory-context`.
    pub reserve_tokens_floor: u32,
    /// Compact when this share of the context window is used, instead of by `reserveTokens`.
    /// Default: unset; 0.8 under `ponybunny`; `agents.running.memory_compact_ratio` under `copaw`,
    /// or where that is set explicitly. An explicit `reserveTokens` or `reserveTokensFloor` wins
    /// over a default. From 0.1 to 1.
    #[schemars(range(min = 0.1, max = 1))]
    pub trigger_ratio: Option<f64>,
    /// The maximum size of the request after a compaction, as a share of the context window.
    /// Default: unset, which means the size of the kept messages and the summary; 0.3 under
    /// `ponybunny`. From 0.05 to 0.9.
    #[schemars(range(min = 0.05, max = 0.9))]
    pub target_ratio: Option<f64>,
    /// Tokens of recent history that a compaction keeps verbatim; at most 40 % of the budget.
    /// Default: 20000; under `copaw` and `proxy` `agents.running.memory_reserve_ratio` of the window.
    pub keep_recent_tokens: u32,
    /// Keep this many of the newest turns instead, as far as they fit. Default: unset.
    pub keep_recent_turns: Option<u32>,
    /// Keep this many of the newest messages instead, as far as they fit. Default: unset;
    /// `byWindow` under `ponybunny`.
    pub keep_recent_messages: Option<KeepMessages>,
    /// Whether a cut may be inside a turn, so that one long turn can be compacted too. If false, a
    /// turn is split only when nothing else fits. Default: true; false under `proxy`, and under
    /// `copaw`, which never separates a user message from its answer.
    pub split_turns: bool,
    /// How a model is called. Default: `rolling`; `multiPart` under `ponybunny`, `single` under
    /// `copaw` and `pi`.
    pub strategy: Strategy,
    /// The minimum number of parts that `multiPart` splits the history into. Default: 2.
    #[schemars(range(min = 1, max = 16))]
    pub parts: u32,
    /// With fewer messages than this, `multiPart` does not split. Default: 4.
    pub min_messages_for_split: u32,
    /// How the maximum chunk sent to a model is computed. Default: `pi`; `ponybunny` under
    /// `ponybunny`.
    pub chunk_ratio: ChunkRatio,
    /// Whether the model's thinking is summarised too. Default: false; true under `pi`.
    pub serialize_thinking: bool,
    /// Whether `tokensBefore` is the usage the provider last reported, plus the counted tokens
    /// since then, if the transcript has it; it includes system prompt and tools. Default: false;
    /// true under `pi`.
    pub reported_tokens: bool,
    /// The model that writes summaries, as `provider/model` or a name in the catalogue. Default:
    /// unset: the built-in extractive summariser writes them, and no text leaves the machine. (On
    /// the command line, `--summary-model`, or a `--model` in `models.providers`, overrides it.)
    pub model: Option<String>,
    /// Fallbacks when a model fails: model to model. Default: as in PonyBunny, with retired models
    /// replaced by their successors: from claude-opus-4-5 to claude-sonnet-4-5 to claude-haiku-4-5,
    /// and from gpt-4-turbo to gpt-4o-mini.
    pub fallback_models: BTreeMap<String, String>,
    /// How summaries treat identifiers. Default: `preserve` (also `strict`).
    #[schemars(with = "String", extend("enum" = ["preserve", "strict", "anonymize", "off", "custom"]))]
    pub identifier_policy: IdentifierPolicy,
    /// The instructions of `identifierPolicy: "custom"`.
    pub identifier_instructions: Option<String>,
    /// What every summary should focus on. Default: unset.
    pub custom_instructions: Option<String>,
    /// How unsupported identifiers and numbers in a summary are treated. Default: `remove`.
    pub ungrounded: Ungrounded,
    /// The time limit of one compaction, all calls and waits included. Default: 300 s (Pi engine).
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: u32,
    /// The cost limit of one compaction's calls, in USD. It does not apply to a model without a
    /// known price: set the price under `models.providers`. Default: unset: no limit.
    #[schemars(range(min = 0))]
    pub max_spend_usd: Option<f64>,
    /// Compaction after the provider refused a prompt as too long.
    pub emergency: Emergency,
    /// The share of the context window that history may take after a hard prune. Default: 0.8 (Pi
    /// engine). From 0.1 to 0.9.
    #[schemars(range(min = 0.1, max = 0.9))]
    pub max_history_share: f64,
    /// The silent turn that saves important facts before a compaction. The outer loop runs it.
    pub memory_flush: MemoryFlush,
}

/// How many of the newest messages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KeepMessages {
    /// A fixed number.
    Count(u32),
    /// Depending on the size of the window.
    Table(ByWindow),
}

/// PonyBunny's table: 5 messages in a window of 16,000 tokens, 10 from 32,000 on, 20 from 64,000,
/// 50 from 128,000, 100 from 200,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ByWindow {
    /// Depending on the size of the window.
    ByWindow,
}

impl KeepMessages {
    /// The rows of PonyBunny's table: minimum window, and number of messages.
    const TABLE: [(Tokens, u32); 4] =
        [(Tokens(200_000), 100), (Tokens(128_000), 50), (Tokens(64_000), 20), (Tokens(32_000), 10)];

    /// Returns the number for a context window.
    #[must_use]
    pub(crate) fn count(self, window: Tokens) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Table(ByWindow::ByWindow) => {
                let row = Self::TABLE.iter().find(|(from, _)| window >= *from);
                row.map_or(5, |&(_, count)| count)
            }
        }
    }
}

/// How a model is called for a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Chunk by chunk, each with the summary so far (Pi engine). History that fits one call is one
    /// chunk. If `chunkRatio` would leave a chunk less than is reserved for the answer, a chunk is
    /// as much as fits.
    #[default]
    Rolling,
    /// Parts in parallel, then one call that merges them (PonyBunny).
    MultiPart,
    /// All in one call; chunk by chunk if it does not fit.
    Single,
}

/// The maximum chunk, as a share of the model's context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChunkRatio {
    /// 0.4, less the average message's share of the window; at least 0.15 (Pi engine).
    #[default]
    Pi,
    /// 0.4; if the average message with its margin exceeds a tenth of the window, less twice that
    /// share; at least 0.15 (PonyBunny).
    Ponybunny,
}

/// How identifiers and numbers of a summary that do not occur in its source are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ungrounded {
    /// Their line is removed.
    #[default]
    Remove,
    /// Their line stays, marked `[unverified]`.
    Mark,
}

/// Compaction after the provider refused a prompt as too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Emergency {
    /// The maximum size of the request afterwards, as a share of the window. Default: 0.2
    /// (PonyBunny).
    #[schemars(range(min = 0.05, max = 0.9))]
    pub target_ratio: f64,
    /// The number of newest messages to keep. Default: 2 (PonyBunny).
    pub keep_messages: u32,
    /// The attempt from which an overflow is an emergency. Default: 2; 1 under `ponybunny`.
    pub from_attempt: u32,
}

/// The silent turn before a compaction. The outer loop runs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct MemoryFlush {
    /// Whether it runs. Default: true.
    pub enabled: bool,
    /// How many tokens below the compaction threshold it runs. Default: 4000.
    pub soft_threshold_tokens: u32,
    /// Its user message. Default: the built-in one, which hints NO_REPLY.
    pub prompt: Option<String>,
    /// The text it adds to the system prompt. Default: the built-in text, which hints NO_REPLY.
    pub system_prompt: Option<String>,
}

impl Default for MemoryFlush {
    fn default() -> Self {
        Self { enabled: true, soft_threshold_tokens: 4_000, prompt: None, system_prompt: None }
    }
}

impl Default for Emergency {
    fn default() -> Self {
        Self { target_ratio: 0.2, keep_messages: 2, from_attempt: 2 }
    }
}

/// FALLBACK_CHAIN of PonyBunny, with successors of claude-sonnet-3-5, claude-haiku-3-5 and gpt-3.5-turbo.
fn default_fallbacks() -> BTreeMap<String, String> {
    let chain = [
        ("claude-opus-4-5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5", "claude-haiku-4-5"),
        ("gpt-4-turbo", "gpt-4o-mini"),
    ];
    chain.map(|(model, next)| (model.to_owned(), next.to_owned())).into()
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            reserve_tokens_floor: 20_000,
            trigger_ratio: None,
            target_ratio: None,
            keep_recent_tokens: 20_000,
            keep_recent_turns: None,
            keep_recent_messages: None,
            split_turns: true,
            strategy: Strategy::Rolling,
            parts: 2,
            min_messages_for_split: 4,
            chunk_ratio: ChunkRatio::Pi,
            serialize_thinking: false,
            reported_tokens: false,
            model: None,
            fallback_models: default_fallbacks(),
            identifier_policy: IdentifierPolicy::Preserve,
            identifier_instructions: None,
            custom_instructions: None,
            ungrounded: Ungrounded::Remove,
            timeout_seconds: 300,
            max_spend_usd: None,
            emergency: Emergency::default(),
            max_history_share: 0.8,
            memory_flush: MemoryFlush::default(),
        }
    }
}

impl Config {
    /// Returns the settings for a summary of all messages but the newest.
    #[must_use]
    pub fn for_whole_history(self) -> Self {
        let keep_recent_messages = Some(KeepMessages::Count(1));
        Self { keep_recent_messages, keep_recent_turns: None, split_turns: true, ..self }
    }

    /// Returns the tokens to keep free of a window: by ratio if one is set, else the reserve raised
    /// to its floor. [`ctx_core::TokenLedger`] caps it.
    pub fn reserve(&self, window: Tokens) -> Tokens {
        match self.trigger_ratio {
            Some(ratio) => window - window.scale(ratio.clamp(0.0, 1.0)),
            None => Tokens(self.reserve_tokens.max(self.reserve_tokens_floor)),
        }
    }
}

impl Config {
    /// Returns the models that may write a summary: `first`, then its fallbacks, each once.
    pub fn model_chain(&self, first: &str) -> Vec<String> {
        let mut chain = vec![first.to_owned()];
        while let Some(next) = chain.last().and_then(|last| self.fallback_of(last))
            && !chain.contains(next)
        {
            chain.push(next.clone());
        }
        chain
    }

    /// Finds the fallback of a model, by its name with or without the provider.
    fn fallback_of(&self, model: &str) -> Option<&String> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        self.fallback_models.get(model).or_else(|| self.fallback_models.get(bare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_messages_kept_grows_with_the_window() {
        let table = KeepMessages::Table(ByWindow::ByWindow);
        for (window, count) in [
            (4_000, 5),
            (16_384, 5),
            (32_000, 10),
            (64_000, 20),
            (80_000, 20),
            (128_000, 50),
            (200_000, 100),
            (1_000_000, 100),
        ] {
            assert_eq!(table.count(Tokens(window)), count, "{window}");
        }
        assert_eq!(KeepMessages::Count(7).count(Tokens(200_000)), 7);
    }

    #[test]
    fn the_reserve_is_raised_to_its_floor_unless_the_floor_is_off() {
        let mut config = Config::default();
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(20_000));
        config.reserve_tokens_floor = 0;
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(16_384));
        config.reserve_tokens = 30_000;
        assert_eq!(config.reserve(Tokens(200_000)), Tokens(30_000));
        let by_ratio = Config { trigger_ratio: Some(0.8), ..config };
        assert_eq!(by_ratio.reserve(Tokens(80_000)), Tokens(16_000));
    }
}
