//! Resolves the session of a call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Entry, Error, ErrorKind, Message, Result};
use ctx_runtime::lookup::{Archiver, Lookup};
use ctx_runtime::memory_session;
use ctx_session::key::MAX_KEY_BYTES;
use ctx_session::{DiscoveredSession, SessionStore, StoredSession, Transcript, find_session};

use super::output::at_most;
use super::{SessionRef, Setup};

/// The session of memory calls that specify no session. It contains the facts that they store.
const SHARED_SESSION: &str = "mcp";

/// The number of sessions suggested for an unknown name.
const NAMED: usize = 5;

/// A session's transcript.
#[derive(Debug)]
pub(super) struct OpenedTranscript {
    /// The display name: its key, or the file's name.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) transcript: Transcript,
}

impl Setup {
    /// Opens the memory of the agent.
    pub(super) fn lookup(&self) -> Result<Arc<Lookup>> {
        if let Some(archiver) = self.archiver() {
            return archiver.lookup();
        }
        let lookup = Lookup::open(&self.host.config, self.host.home.clone(), self.agent.clone())?;
        lookup.index()?;
        Ok(Arc::new(lookup))
    }

    pub(super) fn archiver(&self) -> Option<&Archiver> {
        self.others.as_ref()?.archiver.as_deref()
    }

    /// Opens the transcript of the specified session, or of the default one.
    pub(super) fn open(&self, named: Option<&str>) -> Result<OpenedTranscript> {
        let (name, path) = match self.session_ref(named)? {
            Some(SessionRef::File(path)) => (file_name(&path), path),
            Some(SessionRef::Named(name)) => {
                match find_session(&self.host.home, &self.agent, &name)? {
                    Some(StoredSession { key, path, .. }) => {
                        let path = path.ok_or_else(|| {
                            let hint =
                                "it was reset or archived; `ctx sessions` lists the available ones";
                            Error::new(ErrorKind::NotFound, "the session has no transcript")
                                .with("session", &key)
                                .hint(hint)
                        })?;
                        (key, path)
                    }
                    None => self.in_other_agents(&name)?,
                }
            }
            None => {
                let others = self.others.as_ref().map(|others| &others.sessions);
                let newest = others.and_then(|others| others.homes.newest_in(&others.folder));
                let newest = newest.ok_or_else(|| self.without_session())?;
                (newest.session_id, newest.path)
            }
        };
        let transcript = ctx_session::open(&self.host.home, &path)?;
        Ok(OpenedTranscript { name, path, transcript })
    }

    /// Finds a session of another agent by its id or a prefix of it. Returns its name and the path
    /// of its transcript.
    fn in_other_agents(&self, named: &str) -> Result<(String, PathBuf)> {
        let lookup = self.lookup()?;
        if let Some(session) = lookup.memory.session_named(named)?
            && let Some(path) = lookup.transcript(&session)
        {
            return Ok((session, path));
        }
        let found = self.found(named)?;
        Ok((found.session_id, found.path))
    }

    fn found(&self, named: &str) -> Result<DiscoveredSession> {
        let unknown = || self.unknown(named);
        let found = self.others.as_ref().ok_or_else(unknown)?.sessions.homes.named(named);
        found.map_err(|error| if error.kind() == ErrorKind::NotFound { unknown() } else { error })
    }

    /// Returns the cited messages from the archive: their transcript may have been deleted.
    pub(super) fn archived(&self, named: &str, cited: &str) -> Result<Option<Vec<Arc<Entry>>>> {
        let lookup = self.lookup()?;
        let Some(session) = lookup.memory.session_named(named)? else { return Ok(None) };
        let ids: Vec<_> = cited.split(|c: char| "[], ".contains(c)).collect();
        let is_cited = |id: &str| {
            let mut ids = ids.iter().map(|cited| cited.strip_prefix("e:").unwrap_or(cited));
            ids.any(|cited| !cited.is_empty() && id.starts_with(cited))
        };
        let entries = lookup.memory.of_session(&session)?.into_iter().filter_map(|segment| {
            let id = segment.entry_id.filter(|id| is_cited(id))?;
            let mut message = Message::text(segment.role, segment.content);
            message.meta.timestamp = Some(segment.timestamp);
            Some(Arc::new(Entry::in_memory(id, message)))
        });
        Ok(Some(entries.collect::<Vec<_>>()).filter(|entries| !entries.is_empty()))
    }

    /// Returns the memory name of the specified session, of the default one, or of the shared
    /// session.
    pub(super) fn memory_name(
        &self,
        lookup: &Lookup,
        named: Option<&str>,
    ) -> Result<MemorySession> {
        let name = match self.session_ref(named)? {
            Some(SessionRef::File(path)) => {
                let transcript = ctx_session::open(&self.host.home, &path)?;
                memory_session(transcript.header.id.as_deref(), &path)
            }
            Some(SessionRef::Named(name)) => {
                match lookup.session(&name) {
                    // A session has a name even before it is archived.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        self.found(&name)?.session_id
                    }
                    known => known?,
                }
            }
            None => return Ok(MemorySession { name: SHARED_SESSION.to_owned(), is_named: false }),
        };
        Ok(MemorySession { name, is_named: true })
    }

    fn session_ref(&self, named: Option<&str>) -> Result<Option<SessionRef>> {
        let Some(named) = named else { return Ok(self.session.clone()) };
        at_most("session", named, MAX_KEY_BYTES)?;
        let is_it = |session_ref: &SessionRef| match session_ref {
            SessionRef::File(path) => file_name(path) == named,
            SessionRef::Named(name) => name == named,
        };
        let session_ref = self.session.clone().filter(is_it);
        Ok(Some(session_ref.unwrap_or_else(|| SessionRef::Named(named.to_owned()))))
    }

    /// Returns the error of an unknown name, with suggestions.
    fn unknown(&self, name: &str) -> Error {
        let error = Error::new(ErrorKind::NotFound, "unknown session")
            .with("session", name)
            .with("agent", &self.agent);
        let hint = "give a session by its key, its id or a prefix of the id";
        error.hint(format!("{hint}{}", self.newest()))
    }

    fn without_session(&self) -> Error {
        let hint = "give `session` (a key or an id) or start the server with --session";
        Error::new(ErrorKind::InvalidInput, "missing session")
            .with("agent", &self.agent)
            .hint(format!("{hint}{}", self.newest()))
    }

    /// Returns the newest sessions, for a hint.
    fn newest(&self) -> String {
        // A read error is reported to calls that open a session.
        let keys = self.stored().map(|stored| stored.into_iter().map(|s| s.key));
        let others =
            self.others.iter().flat_map(|others| others.sessions.homes.sessions().sessions);
        let others = others.map(|found| found.session_id);
        let keys: Vec<_> = keys.into_iter().flatten().chain(others).take(NAMED).collect();
        match keys.is_empty() {
            true => String::new(),
            false => format!("; the newest are {}", keys.join(", ")),
        }
    }

    /// Returns the sessions of the agent that have a transcript, newest first.
    pub(super) fn stored(&self) -> Result<Vec<StoredSession>> {
        let home = &self.host.home;
        let stored = SessionStore::at(home.sessions_file(&self.agent)).load()?;
        let sessions = stored.all().map(|(key, entry)| StoredSession::of(home, key, entry));
        let mut sessions: Vec<_> = sessions.filter(|session| session.path.is_some()).collect();
        sessions.sort_by(|a, b| {
            b.entry.updated_at.cmp(&a.entry.updated_at).then_with(|| a.key.cmp(&b.key))
        });
        Ok(sessions)
    }
}

/// A session of the memory.
#[derive(Debug)]
pub(super) struct MemorySession {
    pub(super) name: String,
    /// Whether it was specified, in the call or at the server's start.
    pub(super) is_named: bool,
}

/// Returns the display name of a file.
pub(super) fn file_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
