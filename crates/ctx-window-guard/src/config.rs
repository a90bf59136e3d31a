//! Settings of the window guard.

use ctx_core::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ContextWindowSource;

/// Windows below this are rejected (OpenClaw 2026.4, Pi engine).
const CONTEXT_WINDOW_HARD_MIN_TOKENS: Tokens = Tokens(16_000);

/// Windows below this cause a warning (OpenClaw 2026.4, Pi engine).
const CONTEXT_WINDOW_WARN_BELOW_TOKENS: Tokens = Tokens(32_000);

/// Under the proportional rule, windows below this are rejected (OpenClaw 2026.9).
const PROPORTIONAL_HARD_MIN: Tokens = Tokens(4_000);
const PROPORTIONAL_HARD_MIN_SHARE: f64 = 0.1;

/// Under the proportional rule, windows below this cause a warning (OpenClaw 2026.9).
const PROPORTIONAL_WARN_BELOW: Tokens = Tokens(8_000);
const PROPORTIONAL_WARN_SHARE: f64 = 0.2;

/// The order of the sources of the window size, and the minimum size of the window.
///
/// # Notes
///
/// The numbers of the fixed rule are those of OpenClaw 2026.4. OpenClaw 2026.9 (`rule:
/// "proportional"`) takes shares of the model's native window instead, so that a deliberately low
/// cap on a large model causes a warning and not an error.
///
/// # Example
///
/// ```
/// use ctx_core::Tokens;
/// use ctx_window_guard::{Config, SourceOrder};
///
/// let config = Config::default();
/// assert_eq!((config.order, config.default_tokens), (SourceOrder::AgentFirst, Tokens(200_000)));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// How the minimum is computed: `fixed` takes the two numbers below, `proportional` a tenth of
    /// the model's native window (at least 4000) and a fifth of it (at least 8000) for the warning.
    /// Default: `fixed` (OpenClaw 2026.4); `proportional` is OpenClaw 2026.9.
    pub rule: MinimumRule,
    /// Windows below this many tokens are rejected. Default: 16000. Only for `rule: "fixed"`.
    #[schemars(with = "u32", range(min = 1))]
    pub hard_min_tokens: Tokens,
    /// Windows below this many tokens cause a warning; at least `hardMinTokens`. Default: 32000.
    /// Only for `rule: "fixed"`.
    #[schemars(with = "u32", range(min = 1))]
    pub warn_below_tokens: Tokens,
    /// The window in tokens when no source gives one. Default: 200000; 80000 under `ponybunny`;
    /// 131072 under `copaw`, where `agents.running.max_input_length` overrides it.
    #[schemars(with = "u32", range(min = 1))]
    pub default_tokens: Tokens,
    /// The order of the sources. Default: `agentFirst` (Pi engine); `modelFirst` under `ponybunny`.
    pub order: SourceOrder,
}

/// How the minimum window is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MinimumRule {
    /// From `hardMinTokens` and `warnBelowTokens`.
    #[default]
    Fixed,
    /// From shares of the model's native window. A deliberate cap above 4000 is never rejected.
    Proportional,
}

/// The order in which sources of the window size are used. One that is missing or zero is skipped;
/// `default` is last in both orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SourceOrder {
    /// `agentContextTokens`, `modelsConfig`, `model`.
    #[default]
    AgentFirst,
    /// `model`, `modelsConfig`, `agentContextTokens`.
    ModelFirst,
}

impl SourceOrder {
    /// Returns the sources in this order, without the default.
    pub(crate) fn sources(self) -> [ContextWindowSource; 3] {
        use ContextWindowSource::{AgentContextTokens, Model, ModelsConfig};
        match self {
            Self::AgentFirst => [AgentContextTokens, ModelsConfig, Model],
            Self::ModelFirst => [Model, ModelsConfig, AgentContextTokens],
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rule: MinimumRule::Fixed,
            hard_min_tokens: CONTEXT_WINDOW_HARD_MIN_TOKENS,
            warn_below_tokens: CONTEXT_WINDOW_WARN_BELOW_TOKENS,
            default_tokens: Tokens(200_000),
            order: SourceOrder::AgentFirst,
        }
    }
}

impl Config {
    /// Returns the smallest accepted window, given a window of `tokens` and the model's native
    /// window, if known.
    pub(crate) fn minimum(&self, tokens: Tokens, native: Option<Tokens>) -> Tokens {
        match self.rule {
            MinimumRule::Fixed => self.hard_min_tokens,
            MinimumRule::Proportional => {
                let share = native.unwrap_or(tokens).scale(PROPORTIONAL_HARD_MIN_SHARE);
                // A cap below the share is deliberate, so it lowers the minimum.
                share.max(PROPORTIONAL_HARD_MIN).min(tokens.max(PROPORTIONAL_HARD_MIN))
            }
        }
    }

    /// Returns the smallest window that causes no warning.
    pub(crate) fn warn_below(&self, tokens: Tokens, native: Option<Tokens>) -> Tokens {
        match self.rule {
            MinimumRule::Fixed => self.warn_below_tokens,
            MinimumRule::Proportional => {
                let share = native.unwrap_or(tokens).scale(PROPORTIONAL_WARN_SHARE);
                share.max(PROPORTIONAL_WARN_BELOW)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_camel_case_and_strict() {
        let config: Config =
            serde_json::from_str(r#"{"rule":"proportional","hardMinTokens":8000}"#).unwrap();
        assert_eq!(
            config,
            Config {
                rule: MinimumRule::Proportional,
                hard_min_tokens: Tokens(8_000),
                ..Config::default()
            }
        );
        assert!(serde_json::from_str::<Config>(r#"{"hardMin":8000}"#).is_err());
    }
}
