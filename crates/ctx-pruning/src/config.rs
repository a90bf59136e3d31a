//! `agents.defaults.contextPruning`.

use std::fmt;
use std::time::Duration;

use ctx_core::{Chars, Error, ErrorKind, Profile, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Ttl;

/// When tool results are stale, and what is done with them.
///
/// # Notes
///
/// Ratios are of the whole request (system prompt, tools and all) to the model's window, by the
/// counter in force, corrected by what the provider reported. Characters are UTF-16 units.
///
/// Whatever the mode, these stay as they are: everything before the first user message, everything
/// from the `keepLastAssistants`-th last assistant message on, pinned messages, the newest user
/// message, and the tool call in progress.
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
    /// For `cache-ttl`: how long after the last request the provider's cache is taken to be gone.
    /// `"5m"`, `"1h"`, `"90s"`; a bare number is minutes. 0 never prunes; a year is the most.
    /// Default: 5m (OpenClaw).
    pub ttl: Ttl,
    /// For `turn-age`: results from before this many of the last user messages are stale.
    /// Default: 3.
    pub turns: u32,
    /// For `turn-age`: wait until a stale result is this many turns older still, then prune all
    /// stale ones at once, so that the provider's cached prefix breaks once in so many turns.
    /// Default: 3.
    pub batch_turns: u32,
    /// This many of the last assistant messages, and all after the first of them, are left alone.
    /// With fewer in the session nothing is pruned. Default: 3 (OpenClaw).
    pub keep_last_assistants: u32,
    /// Below this share of the window nothing is done. Default: 0.3 (OpenClaw).
    /// Not more than `hardClearRatio`.
    #[schemars(range(min = 0, max = 1))]
    pub soft_trim_ratio: f64,
    /// From this share of the window on, the oldest stale results are cleared until the request is
    /// below it; a single result that alone exceeds it is cleared at once. Default: 0.5 (OpenClaw).
    #[schemars(range(min = 0, max = 1))]
    pub hard_clear_ratio: f64,
    /// Results are cleared for the sake of the total only when the stale ones still hold this many
    /// characters. Default: 50000 (OpenClaw).
    #[schemars(with = "u32")]
    pub min_prunable_tool_chars: Chars,
    /// Showing both ends of a result.
    pub soft_trim: SoftTrim,
    /// Showing only that there was a result.
    pub hard_clear: HardClear,
    /// Whose results may be pruned.
    pub tools: Tools,
}

/// What makes a tool result stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing does.
    #[default]
    Off,
    /// The provider's cache has expired: the last request is `ttl` ago, so that changing the prefix
    /// costs nothing. A session whose requests follow each other faster is never pruned.
    CacheTtl,
    /// It is `turns` user messages old, whatever the time.
    TurnAge,
}

/// Showing both ends of a result. Images in it are replaced by a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SoftTrim {
    /// Results with at most this many characters stay whole. Default: 4000. Taken as at least
    /// `headChars + tailChars + 128`, the most that a trimmed result measures.
    #[schemars(with = "u32")]
    pub max_chars: Chars,
    /// Characters shown of the beginning. Default: 1500.
    #[schemars(with = "u32")]
    pub head_chars: Chars,
    /// Characters shown of the end. Default: 1500.
    #[schemars(with = "u32")]
    pub tail_chars: Chars,
}

/// Showing only that there was a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HardClear {
    /// Whether it is done. Default: true.
    pub enabled: bool,
    /// What stands in place of a cleared result. Default: `[Old tool result content cleared]`.
    pub placeholder: String,
}

/// Whose results may be pruned: patterns of tool names with `*`, `?`, `[...]` and `{a,b}`, upper or
/// lower case. A tool that `deny` names is never pruned; where `allow` names any, only those are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Tools {
    /// Only these, if any. Default: none, which means all.
    pub allow: Vec<String>,
    /// Never these. Default: none.
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

/// No provider's cache lives as long, and no cache is waited for longer.
const LONGEST_TTL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Config {
    /// Refuses values that make no sense, alone or together.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |key: &str, value: &dyn fmt::Display, expected: &str, hint: &str| {
            let key = format!("agents.defaults.contextPruning.{key}");
            let text = format!("wrong value for '{key}': expected {expected}");
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
            let expected = format!("no more than hardClearRatio, which is {hard}");
            let hint = "results are trimmed before they are cleared; set both";
            return wrong("softTrimRatio", &soft, &expected, hint);
        }
        if self.ttl.duration() > LONGEST_TTL {
            let hint = "set mode to off to prune nothing";
            return wrong("ttl", &self.ttl, "a duration of a year at most", hint);
        }
        if self.hard_clear.placeholder.trim().is_empty() {
            let hint = "set hardClear.enabled to false to clear nothing";
            return wrong("hardClear.placeholder", &"empty", "some text", hint);
        }
        Ok(())
    }

    /// The values of a profile's system: off in all of them, as in the systems themselves.
    #[must_use]
    pub fn for_profile(_: Profile) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_the_seeds_and_strict() {
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

    #[test]
    fn it_is_off_under_every_profile() {
        assert!(Profile::ALL.iter().all(|p| Config::for_profile(*p).mode == Mode::Off));
    }
}
