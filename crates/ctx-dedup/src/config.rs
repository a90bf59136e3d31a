//! `agents.defaults.contextDedup`.

use ctx_core::Chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layer's name.
pub(crate) const LAYER: &str = "dedup";

/// Whether repeated lines of tool results are replaced with pointers, and which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Whether repeated lines are replaced. Default: `off`.
    pub mode: Mode,
    /// The number of last assistant messages that are left alone, with everything after the first
    /// of them. With 0 a result is decided when it is sent first; otherwise when it is older, and
    /// only where the cache breaks anyway. Default: 0.
    pub keep_last_assistants: u32,
    /// Runs of lines that are shorter than this are not replaced. Default: 300.
    #[schemars(with = "u32")]
    pub min_chars: Chars,
}

/// Whether repeated lines are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They stay.
    #[default]
    Off,
    /// They are replaced with pointers.
    On,
}

impl Default for Config {
    fn default() -> Self {
        Self { mode: Mode::Off, keep_last_assistants: 0, min_chars: Chars(300) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_as_documented_and_strict() {
        let text = r#"{ "mode": "on", "keepLastAssistants": 3, "minChars": 100 }"#;
        let config: Config = serde_json::from_str(text).unwrap();
        assert_eq!((config.mode, config.keep_last_assistants), (Mode::On, 3));
        assert_eq!(config.min_chars, Chars(100));
        assert!(serde_json::from_str::<Config>(r#"{ "keep": 3 }"#).is_err());
    }

    #[cfg(feature = "register")]
    #[test]
    fn it_is_off_under_every_profile() {
        let mode = |p| ctx_config::Config::for_profile(p).section::<Config>().unwrap().mode;
        assert!(ctx_config::Profile::all().all(|p| mode(p) == Mode::Off));
    }
}
