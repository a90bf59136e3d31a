//! `agents.defaults.subagents`.

use std::time::Duration;

use ctx_core::Profile;
use ctx_engine_registry::{ConfigSection, Section};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many subagents there may be, and how long. Names and numbers are OpenClaw's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SubagentConfig {
    /// How deep subagents may start others: with 1, only a session of a user may start one.
    /// Default: 1.
    #[schemars(range(min = 1, max = 5))]
    pub max_spawn_depth: u32,
    /// How many of one session may run at once. Default: 5.
    #[schemars(range(min = 1, max = 20))]
    pub max_children_per_agent: usize,
    /// How many may run at once in all. Default: 8.
    #[schemars(range(min = 1))]
    pub max_concurrent: usize,
    /// How many seconds one may run where nothing else is said. Default: 0, which is no limit.
    pub run_timeout_seconds: u32,
    /// After how many minutes the session of one that is done is archived; 0 is never before
    /// `session.maintenance.pruneAfter`. Default: 60.
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
    /// How long one may run.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let seconds = Some(self.run_timeout_seconds).filter(|seconds| *seconds > 0);
        seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// After how many milliseconds its session is archived.
    pub(crate) fn archive_after(&self) -> Option<i64> {
        let minutes = Some(self.archive_after_minutes).filter(|minutes| *minutes > 0);
        minutes.map(|minutes| i64::from(minutes) * 60_000)
    }
}

impl Section for SubagentConfig {
    const PATH: &'static str = "agents.defaults.subagents";

    fn for_profile(_: Profile) -> Self {
        Self::default()
    }
}

ctx_engine_registry::inventory::submit! { ConfigSection::of::<SubagentConfig>(env!("CARGO_PKG_NAME")) }
