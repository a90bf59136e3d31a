//! How an engine fares that may fail apart from its host.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Whether an engine serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EngineState {
    /// It does, or will when it is first needed.
    #[default]
    Ok,
    /// Another serves for it, until it is started again.
    Degraded,
    /// Another serves for it, for good.
    Failed,
}

impl EngineState {
    /// As it stands in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// What became of the lease on compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseState {
    /// The engine does not ask for it.
    #[default]
    NotAsked,
    /// The configuration leaves compaction to the host.
    Refused,
    /// The engine compacts.
    Granted,
    /// It was taken back in one session at least, where the default engine compacts now.
    Withdrawn,
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineFailure {
    /// What the engine was asked.
    pub verb: String,
    /// The failure's stable name: `deadline`, `unknownId` ...
    pub name: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// The time of the turn it happened in.
    pub at: Timestamp,
}

/// How an engine fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineHealth {
    /// The id the config selects it by.
    pub id: String,
    /// How it is carried: `dylib` or `process`.
    pub carrier: Cow<'static, str>,
    /// Its version, as far as it is known.
    pub version: String,
    /// The hash of its file, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Whether it serves.
    pub state: EngineState,
    /// How often it failed since it was started.
    pub strikes: u32,
    /// Who compacts.
    pub lease: LeaseState,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<EngineFailure>,
    /// How often it was started again.
    pub restarts: u32,
    /// How many requests and compactions it made.
    #[serde(default)]
    pub answered: u64,
    /// How often it failed in all.
    #[serde(default)]
    pub failures: u64,
    /// Whether anything it is asked for failed when it was last asked for it.
    #[serde(default)]
    pub failing: bool,
    /// Who serves where it does not; nobody where failures are errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<Cow<'static, str>>,
}

/// What the manifest of a request says of the engine that was to make it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineNote {
    /// The engine.
    pub id: String,
    /// How it fares.
    pub state: EngineState,
    /// Why another one made this request, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
