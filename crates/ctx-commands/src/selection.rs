//! Selects the engine of a command: the named engine, or the engine of the agent.

use std::path::Path;

use ctx_core::ErrorKind;
use ctx_engine_registry::Registry;
use ctx_session::Home;
use ctx_session::key::FileId;
use ctx_terminal::failure::misuse;

use crate::args::Fit;

/// Rejects an `--engine` that cannot run.
pub(crate) fn check(engine: Option<&str>) -> anyhow::Result<()> {
    let Some(id) = engine else { return Ok(()) };
    // A rejected existing engine is a failure. An unknown engine is an argument error.
    Registry::collect()?.check_engine(id).map_err(|error| {
        let lists_known = error.context().iter().any(|(key, _)| *key == "known");
        let is_unknown = error.kind() == ErrorKind::NotFound && lists_known;
        if is_unknown { misuse(error) } else { error.into() }
    })
}

/// Returns the named agent, else all agents.
pub(crate) fn agents(home: &Home, named: Option<&str>) -> anyhow::Result<Vec<FileId>> {
    match named {
        Some(agent) => Ok(vec![agent.parse().map_err(misuse)?]),
        None => Ok(home.agents()?),
    }
}

/// Returns the agent of a session: `--agent`, else the agent whose folder contains it.
pub(crate) fn agent(fit: &Fit, session: &Path) -> Option<String> {
    let of_folder = || Some(Home::from_env().ok()?.agent_of(session)?.to_string());
    fit.agent.clone().or_else(of_folder)
}
