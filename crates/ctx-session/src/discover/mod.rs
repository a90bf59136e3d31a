//! Where agents keep their sessions, and which there are.
//!
//! Only the beginning of each file is read, and its end where somebody asks how full the context is; a
//! database is asked. Nothing is written. Symbolic links below an agent's folder are not followed: they may lead out of it.

mod agent;
mod peek;
mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Timestamp};

pub use agent::Agent;
pub use peek::LastUsage;

use crate::opencode_db;
use crate::paths::Home;

/// The folders in which agents keep their sessions.
#[derive(Clone, Debug, Default)]
pub struct AgentHomes {
    roots: Vec<(Agent, PathBuf)>,
}

/// A session of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// Its transcript: a file, or what stands for one in a database, `DATABASE/ID`.
    pub path: PathBuf,
    /// Whose session it is.
    pub agent: Agent,
    /// The id that the agent gave it; else the name of its file.
    pub session_id: String,
    /// The folder that the agent was started in, where the transcript says so.
    pub project: Option<PathBuf>,
    /// When it was last written.
    pub modified: Timestamp,
    /// Its size.
    pub bytes: u64,
}

/// What was found, and what could not be read.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The sessions, newest first.
    pub sessions: Vec<FoundSession>,
    /// Folders and files that cannot be read.
    pub problems: Vec<Error>,
}

impl AgentHomes {
    /// The folders of all agents but ctx, as the environment names them: `CLAUDE_CONFIG_DIR`, `CODEX_HOME`,
    /// `PI_CODING_AGENT_DIR`, `PI_CODING_AGENT_SESSION_DIR`, `OPENCLAW_STATE_DIR`, `OPENCLAW_HOME`,
    /// `GEMINI_CLI_HOME`, `XDG_DATA_HOME`; else the agents' defaults in the user's own folder.
    #[must_use]
    pub fn from_env() -> Self {
        Self { roots: agent::roots_of_env() }
    }

    /// The same, with the sessions that ctx keeps in `home`.
    #[must_use]
    pub fn with_ctx(self, home: &Home) -> Self {
        self.with(Agent::Ctx, home.root().join("agents"))
    }

    /// The same, with a folder of `agent`. It is the one that holds the sessions: `~/.claude/projects`,
    /// `~/.codex/sessions`, `~/.pi/agent/sessions`, `~/.openclaw/agents`, `~/.gemini/tmp`,
    /// `~/.local/share/opencode`.
    #[must_use]
    pub fn with(mut self, agent: Agent, folder: impl Into<PathBuf>) -> Self {
        self.roots.push((agent, folder.into()));
        self
    }

    /// The folders that are looked in, with the agent of each.
    #[must_use]
    pub fn folders(&self) -> &[(Agent, PathBuf)] {
        &self.roots
    }

    /// All sessions, newest first. What cannot be read is a problem, and hides nothing else.
    #[must_use]
    pub fn sessions(&self) -> Discovery {
        self.files().completed()
    }

    /// The newest session of a project: of the folder itself, else of the closest folder above it that has
    /// any. The user's own folder and the root are no projects of what is below them.
    #[must_use]
    pub fn newest_in(&self, project: &Path) -> Option<FoundSession> {
        let project = real(project);
        let home = std::env::home_dir().map(|home| real(&home));
        let mut best: Option<(usize, FoundSession)> = None;
        for mut found in self.files().sessions {
            if !found.complete().unwrap_or(false) {
                continue;
            }
            let Some(of) = found.project.as_deref().map(real) else { continue };
            let depth = of.components().count();
            if of == project {
                return Some(found);
            }
            let is_above = project.starts_with(&of) && depth > 1 && home.as_ref() != Some(&of);
            if is_above && best.as_ref().is_none_or(|(known, _)| depth > *known) {
                best = Some((depth, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// The session of that id, or of the only id that begins so. Of several files of one id it is the newest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is none, [`ErrorKind::Conflict`] if several ids begin so.
    pub fn named(&self, id: &str) -> Result<FoundSession> {
        named(self.sessions().sessions, id)
    }

    /// The files that may be sessions, newest first: nothing of them is read. What they are
    /// [`FoundSession::complete`] tells.
    #[must_use]
    pub fn files(&self) -> Discovery {
        let mut found = Discovery::default();
        for (agent, folder) in &self.roots {
            walk::expand(*agent, folder, agent.layout(), &mut found);
            if *agent == Agent::Opencode {
                walk::expand(*agent, folder, &["opencode*.db"], &mut found);
            }
        }
        // opencode leaves the files of sessions where they are when it takes them into its database.
        let known: HashSet<_> = found.sessions.iter().map(|s| s.session_id.clone()).collect();
        found.sessions.retain(|s| !s.session_id.is_empty() || !known.contains(s.stem()));
        found.sort();
        found
    }
}

impl Discovery {
    /// What of the files is a session.
    fn completed(mut self) -> Self {
        self.sessions.retain_mut(|session| match session.complete() {
            Ok(is_session) => is_session,
            Err(error) => {
                self.problems.push(error);
                false
            }
        });
        self
    }
}

/// The sessions below a folder, newest first: files that begin like an agent's transcript.
///
/// # Errors
///
/// Where the folder itself cannot be listed.
pub fn in_folder(folder: &Path) -> Result<Discovery> {
    let mut found = Discovery::default();
    walk::below(folder, &mut found)?;
    found.sort();
    Ok(found.completed())
}

/// How many sessions an error lists.
const LISTED: usize = 5;

/// The session among these whose id is `id`, or the only one whose id begins so.
///
/// # Errors
///
/// As [`AgentHomes::named`].
pub fn named(sessions: Vec<FoundSession>, id: &str) -> Result<FoundSession> {
    let mut begun: Vec<FoundSession> = Vec::new();
    let begins = |session: &FoundSession| {
        !id.is_empty() && (session.session_id.starts_with(id) || session.stem().starts_with(id))
    };
    for session in sessions.into_iter().filter(begins) {
        if session.session_id == id || session.stem() == id {
            return Ok(session);
        }
        if begun.iter().all(|known| known.session_id != session.session_id) {
            begun.push(session);
        }
    }
    if begun.len() > 1 {
        let mut ids: Vec<_> = begun.iter().take(LISTED).map(|s| s.session_id.as_str()).collect();
        ids.extend((begun.len() > LISTED).then_some("..."));
        return Err(Error::new(ErrorKind::Conflict, "several sessions have an id that begins so")
            .with("id", id)
            .with("sessions", ids.join(", "))
            .hint("write more of the id"));
    }
    begun.pop().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "no session has that id")
            .with("id", id)
            .hint("`ctx sessions` lists the sessions with their ids")
    })
}

impl FoundSession {
    /// Reads the beginning of the file, for agent, id and project. Whether it is a session.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn complete(&mut self) -> Result<bool> {
        // What is known has been read from a database.
        if self.session_id.is_empty() { peek::complete(self) } else { Ok(true) }
    }

    /// What is at a path, as far as it can be told without reading a file.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        match opencode_db::parts(path) {
            Some((database, id)) => walk::rows(database, Some(id)).ok()?.pop(),
            None => Some(walk::file(path.to_owned(), Agent::Pi, &path.metadata().ok()?)),
        }
    }

    /// What the provider reported of the last request, read from the end of the file; `None` where the end
    /// does not say.
    #[must_use]
    pub fn last_usage(&self) -> Option<LastUsage> {
        peek::last_usage(self)
    }

    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
