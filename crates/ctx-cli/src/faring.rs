//! How an engine fared in a command, and what is remembered of earlier ones.

use ctx_core::ContextEngine;
use ctx_runtime::EngineWatch;
use ctx_session::clock;
use ctx_session::engine_health::{EngineHealthFile, EngineTrouble, EngineTroubles};
use ctx_session::paths::Home;
use serde::Serialize;

use crate::out::Out;
use crate::words::{shortened, thousands};

/// Longer reasons are cut.
const REASON_CHARS: usize = 300;

/// How an engine fared in one command, for its JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fared {
    /// The engine that was selected.
    engine: String,
    /// Requests and compactions that it made: 1, or 0 where another engine did.
    engine_answered: u64,
    /// How often it failed, whatever it was asked for.
    engine_failures: u64,
    /// What a person was told of it.
    warnings: Vec<String>,
}

impl Fared {
    /// How an engine fared that has just been asked for one thing. Tells and remembers it.
    pub(crate) fn of(engine: &dyn ContextEngine, out: &Out) -> Self {
        let warnings = tell(engine, out);
        let health = engine.health();
        Self {
            engine: engine.info().id.to_string(),
            engine_answered: health.as_ref().map_or(1, |health| health.answered),
            engine_failures: health.map_or(0, |health| health.failures),
            warnings,
        }
    }
}

/// Tells what a person should know of an engine that was asked, and remembers how it fared. That
/// this cannot be remembered is no failure of the command.
pub(crate) fn tell(engine: &dyn ContextEngine, out: &Out) -> Vec<String> {
    let warnings = engine.take_warnings();
    warnings.iter().for_each(|warning| out.warn(warning));
    let now = clock::now();
    let noted = Home::from_env().and_then(|home| EngineWatch::new(&home).note(engine, now));
    if let Err(error) = noted {
        out.note(format!("how the engine fared is not remembered: {error}"));
    }
    warnings
}

/// What is remembered of engines that failed. A file that cannot be read is worth a warning.
pub(crate) fn troubles(out: &Out) -> EngineTroubles {
    let read = Home::from_env().and_then(|home| EngineHealthFile::of(&home).read());
    read.unwrap_or_else(|error| {
        out.warn(error.told());
        EngineTroubles::new()
    })
}

/// The trouble with the engine of that id, if it is the one that is installed now.
pub(crate) fn trouble_with(id: &str, out: &Out) -> ctx_core::Result<Option<EngineTrouble>> {
    ctx_runtime::engine_trouble(troubles(out), id)
}

/// Forgets an engine that is gone. A trace of it does no harm.
pub(crate) fn forget(id: &str) {
    drop(Home::from_env().and_then(|home| EngineHealthFile::of(&home).forget(id)));
}

/// What is said of an engine in trouble, in one line.
pub(crate) fn said(trouble: &EngineTrouble) -> String {
    let error = &trouble.last_error;
    let at = jiff::Timestamp::from_millisecond(trouble.at.0).ok();
    let at = at.map_or_else(|| "?".to_owned(), |t| t.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let times = match trouble.strikes {
        0 | 1 => String::new(),
        n => format!(", {} times since it last worked", thousands(n)),
    };
    let instead = match &trouble.served_by {
        Some(id) => format!("; '{}' served", shortened(id, REASON_CHARS)),
        None => String::new(),
    };
    let (reason, verb) = (shortened(&error.message, REASON_CHARS), shortened(&error.verb, 40));
    format!("failed at {at}: {reason} (in '{verb}'{times}){instead}")
}
