//! Finding the sessions of agents.
//!
//! Reads only the beginning of a file, and its end for the context size; queries a database. Writes
//! nothing. Symbolic links below an agent's folder are not followed: they may lead out of it.

mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Timestamp};

use crate::formats::{self, Agent, Beginning, Environment, LastUsage, in_database};

/// The folders in which agents store their sessions.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AgentHomes {
    roots: Vec<(Agent, PathBuf)>,
}

/// A session of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredSession {
    /// The path of its transcript: a file, or `DATABASE/ID` for a session in a database.
    pub path: PathBuf,
    /// The agent that wrote it.
    pub agent: Agent,
    /// The id from the agent; otherwise the file name.
    pub session_id: String,
    /// The folder in which the agent was started, if the transcript records it.
    pub project: Option<PathBuf>,
    /// When it was last written.
    pub modified: Timestamp,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The sessions found, and the errors.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The sessions, newest first.
    pub sessions: Vec<DiscoveredSession>,
    /// Errors for folders and files that cannot be read.
    pub problems: Vec<Error>,
}

impl AgentHomes {
    /// Returns the folders of all agents except ctx: those in the variables that the agents read,
    /// otherwise the agents' defaults.
    pub fn from_env() -> Self {
        let environment = Environment::current();
        let with_agent = |agent: Agent| {
            let folders = (agent.0.folders)(&environment).into_iter().flatten();
            folders.map(move |folder| (agent, folder))
        };
        Self { roots: Agent::all().flat_map(with_agent).collect() }
    }

    /// Adds a folder that contains sessions of `agent`, such as `~/.claude/projects`.
    pub fn with(mut self, agent: Agent, folder: impl Into<PathBuf>) -> Self {
        self.roots.push((agent, folder.into()));
        self
    }

    /// Returns all sessions, newest first. A file or folder that cannot be read is reported as a
    /// problem; the others are still listed.
    pub fn sessions(&self) -> Discovery {
        self.files().completed()
    }

    /// Returns the newest session of a project: of the folder itself, otherwise of the closest
    /// parent folder that has any. The user's home and the root do not count as parent projects.
    pub fn newest_in(&self, project: &Path) -> Option<DiscoveredSession> {
        let project = real(project);
        let home = std::env::home_dir().map(|home| real(&home));
        let mut best: Option<(usize, DiscoveredSession)> = None;
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

    /// Returns the session with this id or unambiguous prefix of an id; the newest if several have
    /// the id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if the id is unknown, [`ErrorKind::Conflict`] if the prefix is
    /// ambiguous.
    pub fn named(&self, id: &str) -> Result<DiscoveredSession> {
        named(self.sessions().sessions, id)
    }

    /// Returns the files that may be sessions, newest first, without reading them.
    /// [`DiscoveredSession::complete`] reads their details.
    pub fn files(&self) -> Discovery {
        let mut found = Discovery::default();
        for (agent, folder) in &self.roots {
            for layout in agent.0.layouts {
                walk::expand(*agent, folder, layout, &mut found);
            }
        }
        // opencode does not remove the files of sessions that it moves into its database.
        let known: HashSet<_> = found.sessions.iter().map(|s| s.session_id.clone()).collect();
        found.sessions.retain(|s| !s.session_id.is_empty() || !known.contains(s.stem()));
        found.sort();
        found
    }
}

impl Discovery {
    /// Returns the sessions below a folder, newest first: files that begin like an agent's
    /// transcript.
    ///
    /// # Errors
    ///
    /// If the folder itself cannot be listed.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let mut found = Self::default();
        walk::below(folder, &mut found)?;
        found.sort();
        Ok(found.completed())
    }

    /// Keeps the files that are sessions.
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

/// The maximum number of sessions listed in an error.
const LISTED: usize = 5;

/// Returns the session with the id `id`, or the only one whose id begins with it.
///
/// # Errors
///
/// Those of [`AgentHomes::named`].
pub(crate) fn named(sessions: Vec<DiscoveredSession>, id: &str) -> Result<DiscoveredSession> {
    let mut matching: Vec<DiscoveredSession> = Vec::new();
    let begins = |session: &DiscoveredSession| {
        !id.is_empty() && (session.session_id.starts_with(id) || session.stem().starts_with(id))
    };
    for session in sessions.into_iter().filter(begins) {
        if session.session_id == id || session.stem() == id {
            return Ok(session);
        }
        if matching.iter().all(|known| known.session_id != session.session_id) {
            matching.push(session);
        }
    }
    if matching.len() > 1 {
        let mut ids: Vec<_> = matching.iter().take(LISTED).map(|s| s.session_id.as_str()).collect();
        ids.extend((matching.len() > LISTED).then_some("..."));
        return Err(Error::new(ErrorKind::Conflict, "ambiguous session id")
            .with("id", id)
            .with("sessions", ids.join(", "))
            .hint("specify more of the id"));
    }
    matching.pop().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "unknown session id")
            .with("id", id)
            .hint("`ctx sessions` lists the sessions with their ids")
    })
}

impl DiscoveredSession {
    /// Reads agent, id and project from the beginning of the file. Returns whether it is a session.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn complete(&mut self) -> Result<bool> {
        /// The bytes to read at first, and at most.
        const BEGINNINGS: [usize; 2] = [16 << 10, 1 << 20];
        // Known sessions come from a database, which was already read.
        if !self.session_id.is_empty() {
            return Ok(true);
        }
        let source = formats::open(&self.path)?;
        for look in BEGINNINGS {
            let bytes = source.beginning(look)?;
            let known = Beginning::of(&bytes, self.agent);
            if known.is_whole() || bytes.len() < look || look == BEGINNINGS[1] {
                // A file with only titles and snapshots is not a conversation.
                let is_chat = known.has_message || bytes.len() == look;
                let Some(agent) = known.agent.filter(|_| is_chat && !known.is_subagent) else {
                    break;
                };
                self.agent = agent;
                let id = known.id.filter(|id| !id.is_empty());
                self.session_id = id.unwrap_or_else(|| self.stem().to_owned());
                self.project = match agent.format().project {
                    Some(project) => project(&self.path),
                    None => known.cwd.map(PathBuf::from),
                };
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Describes the session at a path. A file is not read.
    pub fn at(path: &Path) -> Option<Self> {
        match in_database(path) {
            Some((database, file, id)) => walk::rows(database, file, Some(id)).ok()?.pop(),
            None => Some(walk::file(path.to_owned(), Agent::PI, &path.metadata().ok()?)),
        }
    }

    /// Returns the usage of the last request, read from the end of the file; `None` if it is not
    /// found there.
    pub fn last_usage(&self) -> Option<LastUsage> {
        (self.agent.format().last_usage)(&self.path)
    }

    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// Resolves the links of a path; returns it unchanged if it does not exist.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
