//! Which engine a command runs with: the one that is named, or that of the agent it works for.

use std::path::Path;

use ctx_core::ErrorKind;
use ctx_engine_registry::Registry;
use ctx_session::paths::Home;

use crate::args::Fit;
use crate::failure::misuse;

/// Refuses an `--engine` that cannot run.
pub(crate) fn check(fit: &Fit) -> anyhow::Result<()> {
    check_id(fit.engine.as_deref())
}

/// As [`check`], for an id.
pub(crate) fn check_id(engine: Option<&str>) -> anyhow::Result<()> {
    let Some(id) = engine else { return Ok(()) };
    // One that is there and refused is a failure; to name one that is not makes no sense.
    Registry::collect()?.check_engine(id).map_err(|error| {
        let lists_known = error.context().iter().any(|(key, _)| *key == "known");
        let is_unknown = error.kind() == ErrorKind::NotFound && lists_known;
        if is_unknown { misuse(error) } else { error.into() }
    })
}

/// The agent of a session: `--agent`, else the one whose folder it is in.
pub(crate) fn agent(fit: &Fit, session: &Path) -> Option<String> {
    fit.agent.clone().or_else(|| agent_of(session))
}

/// The agent whose session a file is: `agents/<agent>/sessions/<session>` in ctx's home.
fn agent_of(session: &Path) -> Option<String> {
    let home = Home::from_env().ok()?.root().canonicalize().ok()?;
    let session = session.canonicalize().ok()?;
    let mut parts = session.strip_prefix(home.join("agents")).ok()?.components();
    let agent = parts.next()?.as_os_str().to_str()?.to_owned();
    (parts.next()?.as_os_str() == "sessions").then_some(agent)
}
