//! Folders, engines and memory.

use std::path::Path;

use ctx_engine_registry::{EngineEntry, EngineState, Registry};
use ctx_session::Home;
use ctx_store_postgres::StoreConfig;
use ctx_terminal::format::{counted, thousands};

use super::Finding;
use crate::args::Global;
use crate::{commands, setup};

/// Whether the home folder can be written, is private, and has space.
pub(super) fn home(home: &Home) -> Vec<Finding> {
    let path = &home.root;
    let shown = path.display();
    // A folder that is missing is created in the nearest one that exists.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let existing = absolute.ancestors().find(|folder| folder.exists()).unwrap_or(path);
    let mut findings = Vec::new();
    match tempfile::tempfile_in(existing) {
        Ok(_) if existing != absolute => {
            return vec![Finding::ok("home", format!("{shown} does not exist yet"))];
        }
        Ok(_) => findings.push(Finding::ok("home", shown.to_string())),
        Err(error) => findings.push(Finding::error(
            "home",
            format!("{shown} cannot be written: {error}"),
            "make it writable for this user, or set CTX_HOME to another folder",
        )),
    }
    findings.extend(readable_by_others(path));
    findings.extend(free_space(path));
    findings
}

/// Whether the shared store can be used, and has all that this host wrote; empty without a store.
pub(super) fn store(global: &Global, home: &Home) -> Vec<Finding> {
    // An invalid configuration is a finding of its own.
    let Some(section) = setup::config(global).ok().and_then(|config| StoreConfig::of(&config).ok())
    else {
        return Vec::new();
    };
    if section.url.is_none() {
        return Vec::new();
    }
    // The counts of `ctx store status` read all rows.
    let opened = match setup::block_on(section.open()) {
        Ok(store) => Finding::ok("store", format!("tenant {} can be used", store.tenant())),
        Err(error) => match error.downcast_ref() {
            Some(error) => Finding::of_error("store", error),
            None => Finding::error("store", error.to_string(), "`ctx store check` says more"),
        },
    };
    [opened].into_iter().chain(unstored(home)).collect()
}

/// Names the files with lines that the shared store refused.
fn unstored(home: &Home) -> Option<Finding> {
    let agents = home.agents().unwrap_or_default();
    let folders =
        agents.iter().filter_map(|agent| std::fs::read_dir(home.sessions_dir(agent)).ok());
    let paths = folders.flatten().flatten().map(|file| file.path());
    let mut unstored: Vec<_> =
        paths.filter(|path| path.to_string_lossy().contains(".jsonl.unstored-")).collect();
    unstored.sort();
    let first = unstored.first()?.display();
    let text =
        format!("{} with lines that the store lacks: {first}", counted(unstored.len(), "file"));
    let hint = "another host had taken over the session; read them, and delete the files";
    Some(Finding::warning("store", text, hint))
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let text = format!("other users may read {}, which has your conversations", path.display());
        Finding::warning("home", text, format!("chmod 700 {}", path.display()))
    })
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> Option<Finding> {
    None
}

#[cfg(unix)]
fn free_space(path: &Path) -> Option<Finding> {
    /// Less is an error: a transcript could not be written.
    const LEAST: u64 = 100 << 20;
    let found = rustix::fs::statvfs(path).ok()?;
    let free = found.f_bavail * found.f_frsize;
    let text = format!("{} of disk are free", ctx_terminal::format::bytes(free));
    Some(match free {
        LEAST.. => Finding::ok("home", text),
        _ => Finding::error("home", text, "free some space: transcripts could not be written"),
    })
}

#[cfg(not(unix))]
fn free_space(_: &Path) -> Option<Finding> {
    None
}

/// What to do about an engine that does not load.
const REFUSED: &str = "`ctx engines` says what to do; without its folder it is not found";

/// The state of each engine that is installed or selected.
pub(super) fn engines(global: &Global) -> Vec<Finding> {
    let listed =
        || -> anyhow::Result<_> { Ok(Registry::collect()?.engine_list(&setup::config(global)?)?) };
    let engines = match listed() {
        Ok(engines) => engines,
        // An invalid configuration is reported by its own check.
        Err(_) => return Vec::new(),
    };
    let mut findings = Vec::new();
    if !engines.iter().any(|engine| engine.selected) {
        let hint = "`ctx engines --trace` shows where it was searched for";
        findings.push(Finding::error("engine", "the selected engine was not found", hint));
    }
    let is_shown = |engine: &&EngineEntry| {
        engine.selected || engine.sha256.is_some() || engine.state == EngineState::Refused
    };
    for engine in engines.iter().filter(is_shown) {
        let reason = engine.reason.as_deref().unwrap_or("no reason given");
        let text = format!("{}: {reason}", engine.id);
        findings.push(match engine.state {
            EngineState::Ok => Finding::ok("engine", engine.id.clone()),
            EngineState::Degraded => Finding::warning("engine", text, "`ctx engines check`"),
            EngineState::Refused if engine.selected => Finding::error("engine", text, REFUSED),
            EngineState::Refused => Finding::warning("engine", text, REFUSED),
        });
    }
    findings
}

/// Whether the memory of each agent can be opened.
pub(super) fn memory(global: &Global, home: &Home) -> Vec<Finding> {
    let agents = match home.agents() {
        Ok(agents) => agents,
        Err(error) => return vec![Finding::of_error("memory", &error)],
    };
    let has_memory = |agent: &&ctx_session::key::FileId| home.memory_dir(agent).exists();
    let findings = agents.iter().filter(has_memory).map(|agent| {
        let opened =
            commands::memory::open(global, agent.as_str(), &ctx_terminal::out::Out::silent());
        match opened.and_then(|memory| Ok(memory.memory.stats()?)) {
            Ok(stats) => {
                let segments = thousands(u64::try_from(stats.segments).unwrap_or(u64::MAX));
                Finding::ok("memory", format!("agent {agent}: {segments} segments"))
            }
            Err(error) => {
                let text = format!("agent {agent}: {error}");
                Finding::error("memory", text, format!("`ctx memory rebuild --agent {agent}`"))
            }
        }
    });
    findings.collect()
}
