//! How much room tool results get.

use ctx_core::{Chars, Profile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of the window one tool result, and all of them together, may take.
///
/// # Notes
///
/// A share of 0 switches its cap off. Shares are of the model's window, by the counter in force;
/// characters are UTF-16 units. An image counts as 1,200 tokens or 4,800 characters.
///
/// No cap goes under 256 characters, so that every notice fits.
///
/// # Example
///
/// ```
/// use ctx_core::{Chars, Profile};
/// use ctx_tool_guard::Config;
///
/// let config = Config { max_result_chars: Some(Chars(8_000)), preemptive_share: 0.0, ..Config::default() };
/// assert_eq!(config.max_context_share, 0.3);
/// assert!(!Config::for_profile(Profile::Copaw).offload.enabled);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The share of the window that one result may take; a larger one is cut to its beginning, or
    /// to both ends where the end matters. Default: 0.3 (OpenClaw); 0 under `copaw` and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub max_context_share: f64,
    /// The most characters of one result, whatever the window. Default: not set, which means 16000,
    /// 32000 from a window of 100000 tokens, 64000 from 200000 (OpenClaw). Not used when
    /// `maxContextShare` is 0.
    #[schemars(with = "Option<u32>")]
    pub max_result_chars: Option<Chars>,
    /// A result that alone takes more than this share of the window is replaced by a placeholder,
    /// unseen; but one of the tool call in progress is cut to the cap for a single result, and to
    /// this share at most. Default: 0.5 (OpenClaw 2026.4); 0 under `copaw` and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub preemptive_share: f64,
    /// All results together may take this share of the window, or four results of the largest size,
    /// whichever is more; beyond it the oldest are elided until three quarters of that are left, or
    /// less, so that three more results of the usual size fit. Default: 0.5 (OpenClaw); 0 under `copaw`
    /// and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub aggregate_share: f64,
    /// Moving older results to files.
    pub offload: Offload,
}

/// Moving older results to files, as CoPaw does (`compact_tool_result`).
///
/// # Notes
///
/// Results are looked at when they stop being among the newest `keepN`. Each that is longer than
/// the threshold is cut to it and ends in the path of a file that holds all of it. That changes the
/// request a few messages before its end on most turns; the provider's cache keeps what is before.
///
/// The texts go to the host's blob store (`tool-results/<uuid>.txt`). Without one, results are cut
/// all the same, and the manifest says that nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Offload {
    /// Whether it is done. Default: false. CoPaw's own key is
    /// `agents.running.enable_tool_result_compact`.
    pub enabled: bool,
    /// How many of the newest results stay whole. Default: 5. CoPaw's own key is
    /// `agents.running.tool_result_compact_keep_n`.
    pub keep_n: u32,
    /// The most characters of text of an older result, notices included. Default: 1000; CoPaw's
    /// document names no number.
    #[schemars(with = "u32")]
    pub threshold_chars: Chars,
    /// Files older than this many days are removed. Default: 7; CoPaw's document names no number.
    pub retention_days: u32,
}

impl Default for Offload {
    fn default() -> Self {
        Self { enabled: false, keep_n: 5, threshold_chars: Chars(1_000), retention_days: 7 }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_context_share: 0.3,
            max_result_chars: None,
            preemptive_share: 0.5,
            aggregate_share: 0.5,
            offload: Offload::default(),
        }
    }
}

impl Config {
    /// The values of a profile's system. CoPaw bounds results by age only, and pi's own tools bound
    /// what they print.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        let base = Self::default();
        match profile {
            Profile::Openclaw | Profile::Ponybunny | Profile::MemoryContext => base,
            Profile::Copaw | Profile::Pi => {
                Self { max_context_share: 0.0, preemptive_share: 0.0, aggregate_share: 0.0, ..base }
            }
        }
    }
}
