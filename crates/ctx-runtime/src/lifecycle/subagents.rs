//! `agents.defaults.subagents`.

use std::time::Duration;

use ctx_config::{ConfigSection, Section};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the number, depth and run time of subagents. Names and numbers are OpenClaw's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubagentConfig {
    /// Maximum nesting of subagents: with 1, only a user's session may start one. Default: 1.
    #[schemars(range(min = 1, max = 5))]
    pub max_spawn_depth: u32,
    /// Maximum number of concurrent subagents of one session. Default: 5.
    #[schemars(range(min = 1, max = 20))]
    pub max_children_per_agent: usize,
    /// Maximum number of concurrent subagents in total. Default: 8.
    #[schemars(range(min = 1))]
    pub max_concurrent: usize,
    /// Default run time limit in seconds. Default: 0 (unlimited).
    pub run_timeout_seconds: u32,
    /// Minutes after which the session of a finished subagent is archived. With 0, only
    /// `session.maintenance.pruneAfter` applies. Default: 60.
    pub archive_after_minutes: u32,
}

impl Default for SubagentConfig {
    fn default() -> Self {
        Self {
            max_spawn_depth: 1,
            max_children_per_agent: 5,
            max_concurrent: 8,
            run_timeout_seconds: 0,
            archive_after_minutes: 60,
        }
    }
}

impl SubagentConfig {
    /// Returns the run time limit.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let seconds = Some(self.run_timeout_seconds).filter(|seconds| *seconds > 0);
        seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Returns after how many milliseconds its session is archived.
    pub(crate) fn archive_after(&self) -> Option<i64> {
        let minutes = Some(self.archive_after_minutes).filter(|minutes| *minutes > 0);
        minutes.map(|minutes| i64::from(minutes) * 60_000)
    }
}

impl Section for SubagentConfig {
    const PATH: &'static str = "agents.defaults.subagents";
}

ctx_config::inventory::submit! { ConfigSection::of::<SubagentConfig>(env!("CARGO_PKG_NAME")) }
