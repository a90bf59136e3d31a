//! `agents.defaults.contextPruning`.

use std::fmt;
use std::time::Duration;

use ctx_core::{Chars, Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ttl;

/// When tool results are stale, and how they are pruned.
///
/// # Notes
///
/// Ratios are the size of the whole request (system prompt and tools included) divided by the
/// model's context window, measured with the counter in force and corrected by the usage the
/// provider reported. Characters are UTF-16 units.
///
/// These are never pruned, in any mode: everything before the first user message, everything from
/// the `keepLastAssistants`-th last assistant message on, pinned messages, the newest user message,
/// and the tool call in progress.
///
/// # Example
///
/// ```
/// use ctx_pruning::{Config, Mode};
///
/// let config = Config { mode: Mode::CacheTtl, ttl: "1h".parse()?, ..Config::default() };
/// assert_eq!(config.keep_last_assistants, 3);
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// What makes a result stale. Default: `off`.
    pub mode: Mode,
    /// For `cache-ttl`: the time after the last request at which the provider's cache counts as
    /// expired. `"5m"`, `"1h"`, `"90s"`; a bare number is minutes. 0 never prunes; the maximum is a
    /// year. Default: 5m (OpenClaw).
    pub ttl: Ttl,
    /// For `turn-age`: results older than this many user messages are stale. Default: 3.
    pub turns: u32,
    /// For `turn-age`: waits until a stale result is this many turns older still, then prunes all
    /// stale results at once, so that the provider's cached prefix changes only once per batch.
    /// Default: 3.
    pub batch_turns: u32,
    /// The number of last assistant messages that are protected, with everything after the first of
    /// them. A session with fewer is not pruned. Default: 3 (OpenClaw).
    pub keep_last_assistants: u32,
    /// Below this share of the context window nothing is pruned. Default: 0.3 (OpenClaw). At most
    /// `hardClearRatio`.
    #[schemars(range(min = 0, max = 1))]
    pub soft_trim_ratio: f64,
    /// From this share of the window on, the oldest stale results are cleared until the request is
    /// below it. A single result above it is cleared at once. Default: 0.5 (OpenClaw).
    #[schemars(range(min = 0, max = 1))]
    pub hard_clear_ratio: f64,
    /// To reduce the total, results are cleared only while the stale ones still have this many
    /// characters. Default: 50000 (OpenClaw).
    #[schemars(with = "u32")]
    pub min_prunable_tool_chars: Chars,
    /// Trimming a result to its beginning and end.
    pub soft_trim: SoftTrim,
    /// Replacing a result with a placeholder.
    pub hard_clear: HardClear,
    /// The tools whose results may be pruned.
    pub tools: Tools,
}

/// What makes a tool result stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing: pruning is off.
    #[default]
    Off,
    /// Expiry of the provider's cache: the last request is `ttl` ago, so changing the prefix costs
    /// nothing. A session with shorter gaps between its requests is never pruned.
    CacheTtl,
    /// Age in turns: the result is `turns` user messages old, however much time has passed.
    TurnAge,
}

/// Trimming a result to its beginning and end. Images in it are replaced by a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SoftTrim {
    /// Results of at most this many characters are not trimmed. Default: 4000. Raised to at least
    /// `headChars + tailChars + 128`, the maximum size of a trimmed result.
    #[schemars(with = "u32")]
    pub max_chars: Chars,
    /// Characters kept from the beginning. Default: 1500.
    #[schemars(with = "u32")]
    pub head_chars: Chars,
    /// Characters kept from the end. Default: 1500.
    #[schemars(with = "u32")]
    pub tail_chars: Chars,
}

/// Replacing a result with a placeholder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HardClear {
    /// Whether results are cleared. Default: true.
    pub enabled: bool,
    /// The text that replaces a cleared result. Default: `[Old tool result content cleared]`.
    pub placeholder: String,
}

/// The tools whose results may be pruned: case-insensitive patterns of names with `*`, `?`, `[...]`
/// and `{a,b}`. `deny` wins over `allow`; a non-empty `allow` excludes all other tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Tools {
    /// Tools whose results may be pruned. Default: empty, which means all.
    pub allow: Vec<String>,
    /// Tools whose results are never pruned. Default: empty.
    pub deny: Vec<String>,
}

impl Default for SoftTrim {
    fn default() -> Self {
        Self { max_chars: Chars(4_000), head_chars: Chars(1_500), tail_chars: Chars(1_500) }
    }
}

impl Default for HardClear {
    fn default() -> Self {
        Self { enabled: true, placeholder: "[Old tool result content cleared]".to_owned() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            ttl: Ttl::default(),
            turns: 3,
            batch_turns: 3,
            keep_last_assistants: 3,
            soft_trim_ratio: 0.3,
            hard_clear_ratio: 0.5,
            min_prunable_tool_chars: Chars(50_000),
            soft_trim: SoftTrim::default(),
            hard_clear: HardClear::default(),
            tools: Tools::default(),
        }
    }
}

/// The maximum TTL; no provider keeps a cache this long.
const LONGEST_TTL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Config {
    /// Rejects values that are invalid alone or in combination.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |key: &str, value: &dyn fmt::Display, expected: &str, hint: &str| {
            let key = format!("agents.defaults.contextPruning.{key}");
            let text = format!("invalid value for '{key}': expected {expected}");
            Err(Error::new(ErrorKind::Config, text).with("value", value).hint(hint))
        };
        let (soft, hard) = (self.soft_trim_ratio, self.hard_clear_ratio);
        for (key, ratio) in [("softTrimRatio", soft), ("hardClearRatio", hard)] {
            if !(0.0..=1.0).contains(&ratio) {
                let hint = "it is a share of the window, such as 0.3";
                return wrong(key, &ratio, "a number from 0 to 1", hint);
            }
        }
        if soft > hard {
            let expected = format!("at most hardClearRatio, which is {hard}");
            let hint = "results are trimmed before they are cleared; set both";
            return wrong("softTrimRatio", &soft, &expected, hint);
        }
        if self.ttl.duration() > LONGEST_TTL {
            let hint = "set mode to off to prune nothing";
            return wrong("ttl", &self.ttl, "a duration of at most a year", hint);
        }
        if self.hard_clear.placeholder.trim().is_empty() {
            let hint = "set hardClear.enabled to false to clear nothing";
            return wrong("hardClear.placeholder", &"empty", "some text", hint);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_as_documented_and_strict() {
        let text = r#"{ "mode": "cache-ttl", "ttl": "1h", "keepLastAssistants": 2,
            "softTrimRatio": 0.2, "hardClearRatio": 0.4, "minPrunableToolChars": 10,
            "softTrim": { "maxChars": 100, "headChars": 40, "tailChars": 40 },
            "hardClear": { "enabled": false, "placeholder": "[gone]" },
            "tools": { "allow": ["read*"], "deny": ["bash"] } }"#;
        let config: Config = serde_json::from_str(text).unwrap();
        assert_eq!(config.mode, Mode::CacheTtl);
        assert_eq!(config.soft_trim.head_chars, Chars(40));
        assert_eq!(config.hard_clear.placeholder, "[gone]");
        assert_eq!(config.turns, 3);
        for wrong in [r#"{"mode":"ttl"}"#, r#"{"softTrim":{"max":1}}"#, r#"{"keepLast":3}"#] {
            assert!(serde_json::from_str::<Config>(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(feature = "register")]
    #[test]
    fn pruning_is_off_under_every_profile() {
        let mode = |p| ctx_config::Config::for_profile(p).section::<Config>().unwrap().mode;
        assert!(ctx_config::Profile::all().all(|p| mode(p) == Mode::Off));
    }
}
