//! Which engine a command runs with.

use std::path::Path;

use ctx_engine_registry::{Config, SelectFor, Selection, selected_engine};
use ctx_session::paths::Home;

use crate::args::Fit;

/// The engine for a session and its model: `--engine`, else as the configuration says.
pub(crate) fn engine(
    config: &Config,
    fit: &Fit,
    session: &Path,
    model: Option<&str>,
) -> anyhow::Result<Selection> {
    let agent = fit.agent.clone().or_else(|| agent_of(session));
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
