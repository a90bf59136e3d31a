//! Which session a call means.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Entry, Error, ErrorKind, Message, Result};
use ctx_runtime::lookup::{Lookup, StoredSession, find_session};
use ctx_runtime::{Archiver, memory_session};
use ctx_session::Transcript;
use ctx_session::discover::FoundSession;
use ctx_session::key::MAX_KEY_BYTES;
use ctx_session::store::SessionStore;

use super::answer::at_most;
use super::{Meant, Setup};

/// The memory's session of who names none: what is remembered without one is recalled without one.
const OF_NOBODY: &str = "mcp";

/// So many sessions are named to who asks for one that is not there.
const NAMED: usize = 5;

/// A session's transcript.
#[derive(Debug)]
pub(super) struct Opened {
    /// What it is called in answers: its key, or the file's name.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) transcript: Transcript,
}

impl Setup {
    /// The memory of the agent.
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

    /// Opens the transcript of the session that is named, else of the one that is meant.
    pub(super) fn open(&self, named: Option<&str>) -> Result<Opened> {
        let (name, path) = match self.meant(named)? {
            Some(Meant::File(path)) => (file_name(&path), path),
            Some(Meant::Named(name)) => match find_session(&self.host.home, &self.agent, &name)? {
                Some(StoredSession { key, path, .. }) => {
                    let path = path.ok_or_else(|| {
                        Error::new(ErrorKind::NotFound, "the session has no transcript")
                            .with("session", &key)
                            .hint("it was reset or archived; `ctx sessions` lists those that are there")
                    })?;
                    (key, path)
                }
                None => self.of_others(&name)?,
            },
            None => {
                let others = self.others.as_ref();
                let newest = others.and_then(|others| others.homes.newest_in(&others.folder));
                let newest = newest.ok_or_else(|| self.without_session())?;
                (newest.session_id, newest.path)
            }
        };
        let transcript = ctx_session::open(&self.host.home, &path)?;
        Ok(Opened { name, path, transcript })
    }

    /// A session of another agent: its name and its transcript, for its id or a beginning of it.
    fn of_others(&self, named: &str) -> Result<(String, PathBuf)> {
        let lookup = self.lookup()?;
        if let Some(session) = lookup.memory.session_named(named)?
            && let Some(path) = lookup.transcript(&session)
        {
            return Ok((session, path));
        }
        let found = self.found(named)?;
        Ok((found.session_id, found.path))
    }

    fn found(&self, named: &str) -> Result<FoundSession> {
        let unknown = || self.unknown(named);
        let found = self.others.as_ref().ok_or_else(unknown)?.homes.named(named);
        found.map_err(|error| if error.kind() == ErrorKind::NotFound { unknown() } else { error })
    }

    /// Messages that are in the archive, for who cites them: their transcript may be gone.
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
            Some(Arc::new(Entry::held(id, message)))
        });
        Ok(Some(entries.collect::<Vec<_>>()).filter(|entries| !entries.is_empty()))
    }

    /// The name under which the session stands in memory that is named, else that of the one that is
    /// meant, else the one that belongs to nobody in particular.
    pub(super) fn remembered(&self, lookup: &Lookup, named: Option<&str>) -> Result<Remembered> {
        let name = match self.meant(named)? {
            Some(Meant::File(path)) => {
                let transcript = ctx_session::open(&self.host.home, &path)?;
                memory_session(transcript.header().id.as_deref(), &path)
            }
            Some(Meant::Named(name)) => {
                match lookup.session(&name) {
                    // One that is not archived yet has a name all the same.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        self.found(&name)?.session_id
                    }
                    known => known?,
                }
            }
            None => return Ok(Remembered { name: OF_NOBODY.to_owned(), is_named: false }),
        };
        Ok(Remembered { name, is_named: true })
    }

    fn meant(&self, named: Option<&str>) -> Result<Option<Meant>> {
        let Some(named) = named else { return Ok(self.session.clone()) };
        at_most("session", named, MAX_KEY_BYTES)?;
        let is_it = |meant: &Meant| match meant {
            Meant::File(path) => file_name(path) == named,
            Meant::Named(name) => name == named,
        };
        let meant = self.session.clone().filter(is_it);
        Ok(Some(meant.unwrap_or_else(|| Meant::Named(named.to_owned()))))
    }

    /// The error of a name that nobody has. It names those that there are.
    fn unknown(&self, name: &str) -> Error {
        let error = Error::new(ErrorKind::NotFound, "there is no session of that name")
            .with("session", name)
            .with("agent", &self.agent);
        let hint = "a session is named by its key, its id or the beginning of that";
        error.hint(format!("{hint}{}", self.newest()))
    }

    fn without_session(&self) -> Error {
        let hint = "give `session`, its key or its id, or start the server with --session";
        Error::new(ErrorKind::InvalidInput, "the call names no session")
            .with("agent", &self.agent)
            .hint(format!("{hint}{}", self.newest()))
    }

    /// The newest sessions, for a hint.
    fn newest(&self) -> String {
        // Where they cannot be read, whoever asks for one is told.
        let keys = self.stored().map(|stored| stored.into_iter().map(|s| s.key));
        let others = self.others.iter().flat_map(|others| others.homes.sessions().sessions);
        let others = others.map(|found| found.session_id);
        let keys: Vec<_> = keys.into_iter().flatten().chain(others).take(NAMED).collect();
        match keys.is_empty() {
            true => String::new(),
            false => format!("; the newest are {}", keys.join(", ")),
        }
    }

    /// The sessions of the agent that have a transcript, newest first.
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
pub(super) struct Remembered {
    pub(super) name: String,
    /// Whether somebody named it, in the call or when the server was started.
    pub(super) is_named: bool,
}

/// What a file is called in answers.
pub(super) fn file_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
