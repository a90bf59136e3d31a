//! The health of an engine that can fail independently of its host.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The state of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EngineState {
    /// It is in use, or starts when it is first needed.
    #[default]
    Ok,
    /// A fallback replaces it until it is restarted.
    Degraded,
    /// A fallback replaces it permanently.
    Failed,
}

impl EngineState {
    /// Returns the name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// The state of the compaction lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeaseState {
    /// The engine does not request it.
    #[default]
    NotAsked,
    /// The configuration leaves compaction to the host.
    Refused,
    /// The engine compacts.
    Granted,
    /// It was revoked in at least one session, where the default engine now compacts.
    Withdrawn,
}

/// The last failure of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineFailure {
    /// The called method.
    pub verb: String,
    /// The failure's stable name: `deadline`, `unknownId` ...
    pub name: Cow<'static, str>,
    /// A message for the user.
    pub message: String,
    /// The time of the turn in which it happened.
    pub at: Timestamp,
}

/// The health of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineHealth {
    /// The id that selects the engine in the config.
    pub id: String,
    /// The transport: `dylib` or `process`.
    pub carrier: Cow<'static, str>,
    /// The version, if known.
    pub version: String,
    /// The hash of its file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its state.
    pub state: EngineState,
    /// The number of failures since the last start.
    pub strikes: u32,
    /// The state of the compaction lease.
    pub lease: LeaseState,
    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<EngineFailure>,
    /// The number of restarts.
    pub restarts: u32,
    /// The number of requests and compactions it answered.
    #[serde(default)]
    pub answered: u64,
    /// The total number of failures.
    #[serde(default)]
    pub failures: u64,
    /// Whether the most recent call of any method failed.
    #[serde(default)]
    pub failing: bool,
    /// The fallback that replaces it; `None` if failures are reported as errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<Cow<'static, str>>,
}

/// The manifest's record of the external engine of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EngineNote {
    /// The id of the engine.
    pub id: String,
    /// Its state.
    pub state: EngineState,
    /// Why a fallback made this request, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
