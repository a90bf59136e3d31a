//! `plugins`: which plugins fill the slots, and how each is treated.

use std::collections::BTreeMap;
use std::time::Duration;

use ctx_core::{Profile, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigSection, EngineSettings, Section, wrong_value};
use crate::name::{EngineName, NAME_RULE};

/// `plugins`: which plugins fill the slots, and how each is treated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Plugins {
    /// The slots.
    pub slots: Slots,
    /// What becomes of a turn in which an engine fails: `fallback` (default): the default engine
    /// serves it; `strict`: it is an error.
    pub on_failure: OnFailure,
    /// Engines that are not built in, by id.
    pub engines: BTreeMap<String, EngineConfig>,
}

/// The slots, each filled by one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Slots {
    /// The engine that decides what the model sees. An agent or a model may have another: see
    /// `contextEngine` in `agents.list` and in the rows of `models.providers`. Default: `legacy`.
    pub context_engine: String,
    /// Long-term memory, for whatever engine is in the other slot: `memory-context`, or that of a
    /// crate that is linked, switches it on, unless `agents.defaults.memoryContext.enabled` is false;
    /// `none` switches it off. Default: as `agents.defaults.memoryContext.enabled` says.
    pub memory: Option<String>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { context_engine: crate::DEFAULT_ENGINE.to_owned(), memory: None }
    }
}

/// How an engine that is not built in is treated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct EngineConfig {
    /// Where a library runs: `process`: apart, where it can hurt nobody; `in-process`: inside of the
    /// host, which is faster, and dies with it. An engine that is a program runs apart either way.
    /// Only this file grants trust: nothing that a plugin brings along can. Default: `process`, but
    /// in programs other than `ctx` that have nothing to run a library in.
    pub trust: Option<Trust>,
    /// What becomes of a turn in which it fails. Default: `plugins.onFailure`.
    pub on_failure: Option<OnFailure>,
    /// Who compacts, if it asks for that: `engine` (default) grants it the lease on compaction,
    /// `host` does not.
    pub compaction: CompactionBy,
    /// An engine that runs first, to which this one only adds: `legacy`. Default: as its manifest
    /// says, else none.
    pub base: Option<String>,
    /// Given to the engine as it is. Where the configuration is printed, texts whose keys look like
    /// those of secrets are hidden; most engines need none, as they ask the host for models.
    pub config: EngineSettings,
    /// How long each of its answers may take.
    pub deadlines_ms: Deadlines,
    /// How much memory its process may use, in MiB, where the system can limit it. Default: 1024.
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_limit_mb: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            trust: None,
            on_failure: None,
            compaction: CompactionBy::default(),
            base: None,
            config: EngineSettings::default(),
            deadlines_ms: Deadlines::default(),
            memory_limit_mb: 1024,
        }
    }
}

/// Where the code of a library runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// In a process of its own.
    #[default]
    Process,
    /// In the host's.
    InProcess,
}

/// What becomes of a turn in which an engine fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The default engine serves it.
    #[default]
    Fallback,
    /// It is an error.
    Strict,
}

/// Who compacts, where an engine asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompactionBy {
    /// The engine, as long as it does so well.
    #[default]
    Engine,
    /// The default engine, always.
    Host,
}

/// How long an answer may take, in milliseconds, by what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Deadlines {
    /// The first call, in which an engine starts. Default: 5000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub hello: u64,
    /// Making a request fit. Default: 10000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub assemble: u64,
    /// Compacting a session, models included. Default: 300000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub compact: u64,
    /// Taking in new messages. Default: 2000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub ingest: u64,
    /// The last call. Default: 10000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub dispose: u64,
    /// Everything else. Default: 5000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub other: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            hello: 5_000,
            assemble: 10_000,
            compact: 300_000,
            ingest: 2_000,
            dispose: 10_000,
            other: 5_000,
        }
    }
}

impl Deadlines {
    /// The deadline of a verb of the engine protocol, `assemble` for example.
    #[must_use]
    pub fn of(&self, verb: &str) -> Duration {
        Duration::from_millis(match verb {
            "hello" => self.hello,
            "assemble" => self.assemble,
            "compact" => self.compact,
            "ingest" => self.ingest,
            "dispose" => self.dispose,
            _ => self.other,
        })
    }
}

impl Plugins {
    /// How the engine `id` is treated: what the file says of it, else the defaults.
    #[must_use]
    pub fn engine(&self, id: &str) -> EngineConfig {
        self.engines.get(id).cloned().unwrap_or_default()
    }

    /// What becomes of a turn in which the engine `id` fails.
    #[must_use]
    pub fn on_failure(&self, id: &str) -> OnFailure {
        self.engines.get(id).and_then(|engine| engine.on_failure).unwrap_or(self.on_failure)
    }
}

impl Section for Plugins {
    const PATH: &'static str = "plugins";
    fn for_profile(_: Profile) -> Self {
        Self::default()
    }
    fn check(&self) -> Result<()> {
        for (id, engine) in &self.engines {
            if EngineName::new(id).is_err() {
                return Err(wrong_value::<Self>("engines", format!("{id:?}"), NAME_RULE));
            }
            if engine.base.as_deref() == Some(id) {
                let key = format!("engines.{id}.base");
                return Err(wrong_value::<Self>(&key, id, "another engine than itself"));
            }
        }
        Ok(())
    }
}

inventory::submit! { ConfigSection::of::<Plugins>(env!("CARGO_PKG_NAME")) }
