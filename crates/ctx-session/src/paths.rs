//! Where everything is kept, below one folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use crate::key::{FileId, SessionKey};
use crate::store::SessionEntry;

/// The folder everything is kept in: `$CTX_HOME`, by default `~/.ctx`.
///
/// The names in it are made of [`FileId`]s only, so no agent, session or thread can reach outside.
/// Nothing is created until something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// A home at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The home the environment names: `$CTX_HOME`, else `.ctx` in the user's own folder.
    pub fn from_env() -> Result<Self> {
        if let Some(root) = std::env::var_os("CTX_HOME").filter(|root| !root.is_empty()) {
            return Ok(Self::at(root));
        }
        match std::env::home_dir() {
            Some(home) if !home.as_os_str().is_empty() => Ok(Self::at(home.join(".ctx"))),
            _ => Err(Error::new(ErrorKind::NotFound, "there is no home folder to keep files in")
                .hint("set CTX_HOME to a folder that ctx may write to")),
        }
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `ctx.json5`.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.root.join("ctx.json5")
    }

    /// `agents/<agent>`.
    #[must_use]
    pub fn agent_dir(&self, agent: &FileId) -> PathBuf {
        self.root.join("agents").join(agent.as_str())
    }

    /// The agents that have a folder, by name. A folder whose name is no agent id is none of ours;
    /// a home without any has no agents.
    ///
    /// # Errors
    ///
    /// A folder that cannot be listed.
    pub fn agents(&self) -> Result<Vec<FileId>> {
        let folder = self.root.join("agents");
        let failed = |error: io::Error| {
            let failed = Error::new(ErrorKind::Io, "the agents' folder cannot be listed");
            of_home(failed.with("path", folder.display()).source(error))
        };
        let listing = match std::fs::read_dir(&folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut agents = Vec::new();
        for item in listing {
            let name = item.map_err(failed)?.file_name();
            agents.extend(name.to_str().and_then(|name| name.parse::<FileId>().ok()));
        }
        agents.sort();
        Ok(agents)
    }

    /// `agents/<agent>/sessions`.
    #[must_use]
    pub fn sessions_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("sessions")
    }

    /// `agents/<agent>/sessions/sessions.json`.
    #[must_use]
    pub fn sessions_file(&self, agent: &FileId) -> PathBuf {
        self.sessions_dir(agent).join("sessions.json")
    }

    /// `agents/<agent>/sessions/<session>.jsonl`.
    #[must_use]
    pub fn session_file(&self, agent: &FileId, session: &FileId) -> PathBuf {
        self.sessions_dir(agent).join(format!("{session}.jsonl"))
    }

    /// `agents/<agent>/sessions/<session>-topic-<thread>.jsonl`.
    #[must_use]
    pub fn topic_file(&self, agent: &FileId, session: &FileId, thread: &FileId) -> PathBuf {
        self.sessions_dir(agent).join(format!("{session}-topic-{thread}.jsonl"))
    }

    /// The transcript of a stored session. `sessionFile` wins where it is set: an absolute path is
    /// taken as it is, a relative one is looked for in the sessions folder and may not leave it.
    /// Keys that name no agent belong to the agent `main`.
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
        Ok(match key.thread() {
            Some(thread) => self.topic_file(agent, &session, thread.id()),
            None => self.session_file(agent, &session),
        })
    }

    /// `agents/<agent>/tool-results`.
    #[must_use]
    pub fn tool_results_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("tool-results")
    }

    /// `agents/<agent>/memory/context`: what the agent's long-term memory keeps.
    #[must_use]
    pub fn memory_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("memory").join("context")
    }

    /// Where what engines keep of an agent's sessions is, a folder for each engine below
    /// `engines`.
    #[must_use]
    pub fn store_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("store")
    }

    /// What is remembered of engines that failed. The folder also holds the engines themselves.
    #[must_use]
    pub fn engine_health_file(&self) -> PathBuf {
        self.root.join("engines").join("health.json")
    }

    /// `agents/<agent>/workspaces`: indexes of the folders that the agent works in.
    #[must_use]
    pub fn workspaces_dir(&self, agent: &FileId) -> PathBuf {
        self.agent_dir(agent).join("workspaces")
    }

    /// `overlays`: what ctx adds to files that are not its own.
    #[must_use]
    pub fn overlays_dir(&self) -> PathBuf {
        self.root.join("overlays")
    }

    /// `journals`: entries that are durable there before their session files are. See
    /// [`GroupCommit`](crate::group_commit::GroupCommit).
    #[must_use]
    pub fn journals_dir(&self) -> PathBuf {
        self.root.join("journals")
    }
}

/// An error of a file in the home folder, with the way to another home where that may help: not
/// where the disk is full, or where it is no matter of the place.
#[must_use]
pub fn of_home(error: Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let cause = std::error::Error::source(&error);
    match cause.and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind) {
        None | Some(StorageFull | QuotaExceeded | FileTooLarge) => error,
        Some(_) => error.hint(
            "this is in the folder of ctx: make it one that you may write to, or set CTX_HOME to \
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
    fn agents_are_the_folders_that_bear_an_id() {
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
    fn session_file_overrides_and_nothing_escapes() {
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
