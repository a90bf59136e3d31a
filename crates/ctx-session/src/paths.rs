//! The paths of ctx's files, all below one folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use crate::disk;
use crate::key::{FileId, SessionKey};
use crate::store::{SessionEntry, SessionStore};

/// The home folder of ctx: `$CTX_HOME`, by default `~/.ctx`.
///
/// Variable parts of names in it are [`FileId`]s, so no agent, session or thread can reach outside.
/// Nothing is created until something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The folder itself.
    pub root: PathBuf,
}

impl Home {
    /// Returns the home at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the home from the environment: `$CTX_HOME`, otherwise `.ctx` in the user's home.
    pub fn from_env() -> Result<Self> {
        if let Some(root) = std::env::var_os("CTX_HOME").filter(|root| !root.is_empty()) {
            return Ok(Self::at(root));
        }
        match std::env::home_dir() {
            Some(home) if !home.as_os_str().is_empty() => Ok(Self::at(home.join(".ctx"))),
            _ => Err(Error::new(ErrorKind::NotFound, "missing home folder")
                .hint("set CTX_HOME to a folder that ctx may write to")),
        }
    }

    /// `ctx.json5`.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("ctx.json5")
    }

    /// `agents/<agent>`.
    pub fn agent_dir(&self, agent: &FileId) -> PathBuf {
        self.root.join("agents").join(agent.as_str())
    }

    /// Returns the agents that have a folder, sorted by name; none if the folder of all agents is
    /// missing. A folder whose name is not an agent id is ignored.
    ///
    /// # Errors
    ///
    /// If a folder cannot be listed.
    pub fn agents(&self) -> Result<Vec<FileId>> {
        let folder = self.root.join("agents");
        let failed = |error: io::Error| {
            let failed = Error::new(ErrorKind::Io, "cannot list the agents' folder");
            with_home_hint(failed.with("path", folder.display()).source(error))
        };
        let folders = disk::list(&folder).map_err(failed)?;
        let agent = |folder: &PathBuf| folder.file_name()?.to_str()?.parse().ok();
        let mut agents: Vec<FileId> = folders.iter().filter_map(agent).collect();
        agents.sort();
        Ok(agents)
    }

    /// `agents/<agent>/sessions`.
    pub fn sessions_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("sessions")
    }

    /// `agents/<agent>/sessions/sessions.json`.
    pub fn sessions_file(&self, agent: &FileId) -> PathBuf {
        self.sessions_dir(agent).join("sessions.json")
    }

    /// Returns the transcript of a stored session, `agents/<agent>/sessions/<session>.jsonl` or
    /// `agents/<agent>/sessions/<session>-topic-<thread>.jsonl`. `sessionFile` takes precedence if it is set: an
    /// absolute path is used as it is, a relative one is resolved in the sessions folder and must
    /// not leave it. Keys without an agent belong to the agent `main`.
    pub fn transcript(&self, key: &SessionKey, entry: &SessionEntry) -> Result<PathBuf> {
        let main = FileId::main();
        let agent = key.agent().unwrap_or(&main);
        if let Some(file) = &entry.session_file {
            let file = Path::new(file);
            let inside = file.components().all(|c| matches!(c, Component::Normal(_)));
            if file.is_absolute() {
                return Ok(file.to_owned());
            } else if inside {
                return Ok(self.sessions_dir(agent).join(file));
            }
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "sessionFile leaves the sessions folder",
            )
            .with("session key", key)
            .with("sessionFile", file.display())
            .hint("use an absolute path, or a name inside the sessions folder"));
        }
        let session = FileId::new(&entry.session_id)
            .map_err(|e| e.with("session key", key).with("field", "sessionId"))?;
        Ok(self.sessions_dir(agent).join(match key.thread() {
            Some(thread) => format!("{session}-topic-{}.jsonl", thread.id()),
            None => format!("{session}.jsonl"),
        }))
    }

    /// Returns the agent of this home whose sessions folder contains a transcript.
    pub fn agent_of(&self, transcript: &Path) -> Option<FileId> {
        let path = transcript.canonicalize().ok()?;
        let agents = self.root.canonicalize().ok()?.join("agents");
        let mut parts = path.strip_prefix(agents).ok()?.components();
        let agent = parts.next()?.as_os_str().to_str()?.parse().ok()?;
        (parts.next()?.as_os_str() == "sessions").then_some(agent)
    }

    /// Returns the entry in the store of `agent` for the session with this transcript.
    pub fn stored_session(&self, agent: &FileId, transcript: &Path) -> Option<SessionEntry> {
        let name = transcript.file_name()?;
        let path = transcript.canonicalize().ok()?;
        let is_path = |of: PathBuf| {
            of.file_name() == Some(name) && of.canonicalize().is_ok_and(|of| of == path)
        };
        let stored = SessionStore::at(self.sessions_file(agent)).load().ok()?;
        let mut sessions = stored.iter();
        let found = sessions.find(|(key, entry)| self.transcript(key, entry).is_ok_and(is_path));
        found.map(|(_, entry)| entry.clone())
    }

    /// `agents/<agent>/tool-results`.
    pub fn tool_results_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("tool-results")
    }

    /// `agents/<agent>/memory/context`: the agent's long-term memory.
    pub fn memory_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("memory").join("context")
    }

    /// Returns the folder of the values that engines store for an agent's sessions. Its subfolder
    /// `engines` contains one folder per engine.
    pub fn store_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("store")
    }

    /// Returns the file that records failed engines. Its folder also contains the engines.
    pub(crate) fn engine_health_file(&self) -> PathBuf {
        self.root.join("engines").join("health.json")
    }

    /// `agents/<agent>/workspaces`: indexes of the folders that the agent works in.
    pub fn workspaces_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("workspaces")
    }

    /// `overlays`: ctx's additions to files of other programs.
    pub fn overlays_dir(&self) -> PathBuf {
        self.root.join("overlays")
    }

    /// `journals`: entries that are durable before their session files are synced. See
    /// [`GroupCommit`](crate::GroupCommit).
    pub fn journals_dir(&self) -> PathBuf {
        self.root.join("journals")
    }
}

/// Adds to an error in the home folder the hint to choose another one. Adds nothing if that would
/// not help: the disk is full, or the error does not depend on the location.
pub fn with_home_hint(error: Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let cause = std::error::Error::source(&error);
    match cause.and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind) {
        None | Some(StorageFull | QuotaExceeded | FileTooLarge) => error,
        Some(_) => error.hint(
            "this is in the home folder of ctx: make it writable, or set CTX_HOME to \
             another",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(session_id: &str) -> SessionEntry {
        SessionEntry { session_id: session_id.into(), ..SessionEntry::default() }
    }

    #[test]
    fn transcripts_are_where_the_layout_says() {
        let home = Home::at("/h");
        let key: SessionKey = "agent:a:main".parse().unwrap();
        let topic: SessionKey = "agent:a:telegram:group:1:topic:7".parse().unwrap();
        let global = SessionKey::Global;
        let path = |key: &SessionKey, entry: &SessionEntry| home.transcript(key, entry);
        assert_eq!(path(&key, &entry("s")).unwrap(), Path::new("/h/agents/a/sessions/s.jsonl"));
        assert_eq!(
            path(&topic, &entry("s")).unwrap(),
            Path::new("/h/agents/a/sessions/s-topic-7.jsonl")
        );
        assert_eq!(
            path(&global, &entry("s")).unwrap(),
            Path::new("/h/agents/main/sessions/s.jsonl")
        );
    }

    #[test]
    fn agents_are_the_folders_named_by_an_id() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        assert!(home.agents().unwrap().is_empty());
        for name in ["b", "a", ".trash"] {
            std::fs::create_dir_all(dir.path().join("agents").join(name)).unwrap();
        }
        let names: Vec<_> = home.agents().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "b"]);
        std::fs::remove_dir_all(dir.path().join("agents")).unwrap();
        std::fs::write(dir.path().join("agents"), "").unwrap();
        assert_eq!(home.agents().unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn session_file_takes_precedence_and_cannot_leave_the_folder() {
        let home = Home::at("/h");
        let key: SessionKey = "agent:a:main".parse().unwrap();
        let with = |file: &str| SessionEntry { session_file: Some(file.into()), ..entry("s") };
        let path = |entry: &SessionEntry| home.transcript(&key, entry);
        assert_eq!(path(&with("/x/y.jsonl")).unwrap(), Path::new("/x/y.jsonl"));
        assert_eq!(path(&with("y.jsonl")).unwrap(), Path::new("/h/agents/a/sessions/y.jsonl"));
        for bad in [with("../y.jsonl"), with("a/../../y"), entry("../x"), entry(""), entry("a/b")] {
            assert_eq!(path(&bad).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad:?}");
        }
    }
}
