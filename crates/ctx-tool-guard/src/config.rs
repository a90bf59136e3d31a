//! Size limits for tool results.

use ctx_core::Chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shares of the context window that one tool result and all tool results may take.
///
/// # Notes
///
/// A share of 0 switches its cap off. Shares are of the model's context window, measured with the
/// counter in force; characters are UTF-16 units. An image counts as 1,200 tokens or 4,800
/// characters.
///
/// Every cap is at least 256 characters, so that every notice fits.
///
/// # Example
///
/// ```
/// use ctx_tool_guard::Config;
///
/// let config = Config { preemptive_share: 0.0, ..Config::default() };
/// assert_eq!(config.max_context_share, 0.3);
/// assert!(!config.offload.enabled);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The share of the window that one result may take; a larger one is truncated to its
    /// beginning, or to both ends where the end matters. Default: 0.3 (OpenClaw); 0 under `copaw`
    /// and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub max_context_share: f64,
    /// The maximum characters of one result, independent of the window. Default: unset, which means
    /// 16000, 32000 from a window of 100000 tokens, 64000 from 200000 (OpenClaw); no limit under
    /// `proxy`. Ignored when `maxContextShare` is 0.
    #[schemars(with = "Option<u32>")]
    pub max_result_chars: Option<Chars>,
    /// A result that alone exceeds this share of the window is replaced by a placeholder. In the
    /// tool call in progress it is truncated instead, to the cap for a single result and at most
    /// this share. Default: 0.5 (OpenClaw 2026.4); 0 under `copaw` and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub preemptive_share: f64,
    /// The share of the context window that all results together may take; at least four results of
    /// the maximum size. Above it the oldest are elided until three quarters of it are left.
    /// Default: 0.5 (OpenClaw); 0 under `copaw` and `pi`.
    #[schemars(range(min = 0, max = 1))]
    pub aggregate_share: f64,
    /// Moving older results to files.
    pub offload: Offload,
}

/// Moving older results to files, as CoPaw does (`compact_tool_result`).
///
/// # Notes
///
/// A result is processed when it leaves the newest `keepN`. One longer than the threshold is
/// truncated to it and ends in the path of a file that contains the full text. On most turns this
/// changes the request a few messages before its end; the part before that stays in the provider's
/// cache.
///
/// The texts go to the host's blob store (`tool-results/<uuid>.txt`). Without one, results are
/// still truncated, and the manifest says that nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Offload {
    /// Whether results are moved to files. Default: false. CoPaw's own key is
    /// `agents.running.enable_tool_result_compact`.
    pub enabled: bool,
    /// The number of newest results that stay whole. Default: 5. CoPaw's own key is
    /// `agents.running.tool_result_compact_keep_n`.
    pub keep_n: u32,
    /// The maximum characters of an older result's text, notices included. Default: 1000; CoPaw's
    /// documentation gives no number.
    #[schemars(with = "u32")]
    pub threshold_chars: Chars,
    /// Files older than this many days are removed. Default: 7; CoPaw's documentation has no
    /// number.
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
