//! Which engine a command runs with.

use std::path::Path;

use ctx_core::ErrorKind;
use ctx_engine_registry::{Config, Registry, SelectFor, Selection, selected_engine};
use ctx_session::paths::Home;

use crate::args::Fit;
use crate::failure::misuse;

/// The engine for a session and its model: `--engine`, else as the configuration says.
pub(crate) fn engine(
    config: &Config,
    fit: &Fit,
    session: &Path,
    model: Option<&str>,
) -> anyhow::Result<Selection> {
    let agent = fit.agent.clone().or_else(|| agent_of(session));
    // One that is there and refused is a failure; to name one that is not makes no sense.
    if let Some(id) = &fit.engine {
        Registry::collect()?.check_engine(id).map_err(|error| {
            let lists_known = error.context().iter().any(|(key, _)| *key == "known");
            let is_unknown = error.kind() == ErrorKind::NotFound && lists_known;
            if is_unknown { misuse(error) } else { error.into() }
        })?;
    }
    let (engine, agent) = (fit.engine.as_deref(), agent.as_deref());
    Ok(selected_engine(config, SelectFor { engine, agent, provider: None, model })?)
}

/// The agent whose session a file is: `agents/<agent>/sessions/<session>` in ctx's home.
fn agent_of(session: &Path) -> Option<String> {
    let home = Home::from_env().ok()?.root().canonicalize().ok()?;
    let session = session.canonicalize().ok()?;
    let mut parts = session.strip_prefix(home.join("agents")).ok()?.components();
    let agent = parts.next()?.as_os_str().to_str()?.to_owned();
    (parts.next()?.as_os_str() == "sessions").then_some(agent)
}
