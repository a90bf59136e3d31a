//! What the guard asks of a window.

use ctx_core::{Profile, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ContextWindowSource;

/// Windows under this are refused (OpenClaw 2026.4, Pi engine).
pub const CONTEXT_WINDOW_HARD_MIN_TOKENS: Tokens = Tokens(16_000);

/// Windows under this are warned of (OpenClaw 2026.4, Pi engine).
pub const CONTEXT_WINDOW_WARN_BELOW_TOKENS: Tokens = Tokens(32_000);

/// Under the proportional rule, windows under this are refused (OpenClaw 2026.9).
const PROPORTIONAL_HARD_MIN: Tokens = Tokens(4_000);
const PROPORTIONAL_HARD_MIN_SHARE: f64 = 0.1;

/// Under the proportional rule, windows under this are warned of (OpenClaw 2026.9).
const PROPORTIONAL_WARN_BELOW: Tokens = Tokens(8_000);
const PROPORTIONAL_WARN_SHARE: f64 = 0.2;

/// Which statement about the window wins, and how large the window must be.
///
/// # Notes
///
/// The numbers of the fixed rule are those of OpenClaw 2026.4. OpenClaw 2026.9 takes shares of the
/// model's native window instead, so that a deliberately low cap on a large model is a warning and
/// not a refusal: `rule: "proportional"`.
///
/// # Example
///
/// ```
/// use ctx_core::{Profile, Tokens};
/// use ctx_window_guard::{Config, Order};
///
/// assert_eq!(Config::default().order, Order::AgentFirst);
/// let ponybunny = Config::for_profile(Profile::Ponybunny);
/// assert_eq!((ponybunny.order, ponybunny.default_tokens), (Order::ModelFirst, Tokens(80_000)));
/// let strict = Config { hard_min_tokens: Tokens(64_000), ..Config::default() };
/// assert_eq!(strict.hard_min_tokens, Tokens(64_000));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// How the minimum is found: `fixed` takes the two numbers below, `proportional` a tenth of the
    /// model's native window (at least 4000) and a fifth of it (at least 8000) for the warning.
    /// Default: `fixed` (OpenClaw 2026.4); `proportional` is OpenClaw 2026.9.
    pub rule: Rule,
    /// Windows under this many tokens are refused. Default: 16000. Only for `rule: "fixed"`.
    #[schemars(with = "u32", range(min = 1))]
    pub hard_min_tokens: Tokens,
    /// Windows under this many tokens are warned of; not less than `hardMinTokens`. Default: 32000.
    /// Only for `rule: "fixed"`.
    #[schemars(with = "u32", range(min = 1))]
    pub warn_below_tokens: Tokens,
    /// The window, in tokens, when nobody states one. Default: 200000; 80000 under `ponybunny`;
    /// 131072 under `copaw`, where `agents.running.max_input_length` takes its place.
    #[schemars(with = "u32", range(min = 1))]
    pub default_tokens: Tokens,
    /// Which statement wins. Default: `agentFirst` (Pi engine); `modelFirst` under
    /// `ponybunny`.
    pub order: Order,
}

/// How the smallest acceptable window is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// By `hardMinTokens` and `warnBelowTokens`.
    #[default]
    Fixed,
    /// By shares of the model's native window. A cap set on purpose is never refused above 4000.
    Proportional,
}

/// Which statement about the window wins. A missing one, or zero, is passed over; `default` is
/// last in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// `agentContextTokens`, `modelsConfig`, `model`.
    #[default]
    AgentFirst,
    /// `model`, `modelsConfig`, `agentContextTokens`.
    ModelFirst,
}

impl Order {
    /// The sources in this order, without the default.
    #[must_use]
    pub fn sources(self) -> [ContextWindowSource; 3] {
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
            rule: Rule::Fixed,
            hard_min_tokens: CONTEXT_WINDOW_HARD_MIN_TOKENS,
            warn_below_tokens: CONTEXT_WINDOW_WARN_BELOW_TOKENS,
            default_tokens: Tokens(200_000),
            order: Order::AgentFirst,
        }
    }
}

impl Config {
    /// The values of a profile's system.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        let base = Self::default();
        match profile {
            Profile::Ponybunny => {
                Self { default_tokens: Tokens(80_000), order: Order::ModelFirst, ..base }
            }
            Profile::Copaw => Self { default_tokens: Tokens(131_072), ..base },
            Profile::Openclaw | Profile::MemoryContext | Profile::Pi => base,
        }
    }

    /// The smallest window that is not refused, for a window of `tokens` on a model whose native
    /// window, where known, is `native`.
    pub(crate) fn minimum(&self, tokens: Tokens, native: Option<Tokens>) -> Tokens {
        match self.rule {
            Rule::Fixed => self.hard_min_tokens,
            Rule::Proportional => {
                let share = native.unwrap_or(tokens).scale(PROPORTIONAL_HARD_MIN_SHARE);
                // A cap below the share is somebody's choice: it moves the minimum down with it.
                share.max(PROPORTIONAL_HARD_MIN).min(tokens.max(PROPORTIONAL_HARD_MIN))
            }
        }
    }

    /// The smallest window that is not warned of.
    pub(crate) fn warn_below(&self, tokens: Tokens, native: Option<Tokens>) -> Tokens {
        match self.rule {
            Rule::Fixed => self.warn_below_tokens,
            Rule::Proportional => {
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
                rule: Rule::Proportional,
                hard_min_tokens: Tokens(8_000),
                ..Config::default()
            }
        );
        assert!(serde_json::from_str::<Config>(r#"{"hardMin":8000}"#).is_err());
    }
}
