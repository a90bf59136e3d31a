//! Sessions of the store, by the names that people give them.

use std::path::PathBuf;

use ctx_core::Result;
use ctx_session::key::{FileId, SessionKey};
use ctx_session::paths::Home;
use ctx_session::store::{SessionEntry, SessionStore};

/// A session of an agent, as the store has it.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Its key. It may be of a shape that this version does not know.
    pub key: String,
    /// What the store knows of it.
    pub entry: SessionEntry,
    /// Its transcript; absent where there is no such file.
    pub path: Option<PathBuf>,
}

impl StoredSession {
    /// A session of the store, with its transcript where there is one.
    #[must_use]
    pub fn of(home: &Home, key: &str, entry: &SessionEntry) -> Self {
        let path = key.parse().ok().and_then(|key: SessionKey| home.transcript(&key, entry).ok());
        let path = path.filter(|path| path.is_file());
        Self { key: key.to_owned(), entry: entry.clone(), path }
    }
}

/// The session of that key or that id, where the agent has one. A path is no name of a session.
///
/// # Errors
///
/// Where the sessions of the agent cannot be read.
pub fn find_session(home: &Home, agent: &FileId, named: &str) -> Result<Option<StoredSession>> {
    let stored = SessionStore::at(home.sessions_file(agent)).load()?;
    let canonical = named.parse::<SessionKey>().map_or(named.to_owned(), |key| key.to_string());
    let by_key = stored.all().find(|(key, _)| *key == canonical);
    let found = by_key.or_else(|| stored.all().find(|(_, entry)| entry.session_id == named));
    Ok(found.map(|(key, entry)| StoredSession::of(home, key, entry)))
}
