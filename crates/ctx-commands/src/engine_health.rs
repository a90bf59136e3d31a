//! The health of an engine in a command, and records of earlier failures.

use ctx_core::ContextEngine;
use ctx_runtime::EngineHealthRecorder;
use ctx_session::{EngineHealthFile, FailedEngine, FailedEngines, Home, clock};
use ctx_terminal::format::{minute, shortened, thousands};
use ctx_terminal::out::Out;
use serde::Serialize;

/// Maximum length of a reason.
const REASON_CHARS: usize = 300;

/// The health of an engine in one command, for its JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EngineHealthReport {
    /// The selected engine.
    engine: String,
    /// Number of requests and compactions that it made: 1, or 0 if another engine did.
    engine_answered: u64,
    /// Number of its failures of any kind.
    engine_failures: u64,
    /// The warnings shown to the user.
    warnings: Vec<String>,
}

impl EngineHealthReport {
    /// Reports and records the health of an engine after one call.
    pub(crate) fn of(engine: &dyn ContextEngine, out: &Out) -> Self {
        let warnings = report(engine, out);
        let health = engine.health();
        Self {
            engine: engine.info().id.to_string(),
            engine_answered: health.as_ref().map_or(1, |health| health.answered),
            engine_failures: health.map_or(0, |health| health.failures),
            warnings,
        }
    }
}

/// Warns of an engine's failures, and records its health. If the record cannot be written, a note
/// says so, and the command continues.
pub(crate) fn report(engine: &dyn ContextEngine, out: &Out) -> Vec<String> {
    let warnings = engine.take_warnings();
    warnings.iter().for_each(|warning| out.warn(warning));
    let now = clock::now();
    let recorded =
        Home::from_env().and_then(|home| EngineHealthRecorder::new(&home).record(engine, now));
    if let Err(error) = recorded {
        out.note(format!("the engine's health was not recorded: {error}"));
    }
    warnings
}

/// Returns the recorded failures of engines. An unreadable file causes a warning.
pub(crate) fn troubles(out: &Out) -> FailedEngines {
    let read = Home::from_env().and_then(|home| EngineHealthFile::of(&home).read());
    read.unwrap_or_else(|error| {
        out.warn(error.told());
        FailedEngines::new()
    })
}

/// Returns the recorded failures of the engine with that id, if they are of the installed version.
pub(crate) fn trouble_with(id: &str, out: &Out) -> ctx_core::Result<Option<FailedEngine>> {
    ctx_runtime::engine_trouble(troubles(out), id)
}

/// Removes the records of an engine that was removed. Errors are harmless.
pub(crate) fn forget(id: &str) {
    drop(Home::from_env().and_then(|home| EngineHealthFile::of(&home).forget(id)));
}

/// Describes the failures of an engine in one line.
pub(crate) fn describe(trouble: &FailedEngine) -> String {
    let (error, at) = (&trouble.last_error, minute(trouble.at));
    let times = match trouble.strikes {
        0 | 1 => String::new(),
        n => format!(", {} times since it last worked", thousands(n)),
    };
    let instead = trouble.served_by.as_ref();
    let instead = instead.map(|id| format!("; '{}' served", shortened(id, REASON_CHARS)));
    let instead = instead.unwrap_or_default();
    let (reason, verb) = (shortened(&error.message, REASON_CHARS), shortened(&error.verb, 40));
    format!("failed at {at} UTC: {reason} (in '{verb}'{times}){instead}")
}
