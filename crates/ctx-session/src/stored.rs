//! Finds stored sessions by the names that users give.

use std::path::PathBuf;

use crate::key::{FileId, SessionKey};
use crate::{Home, SessionEntry, SessionStore};
use ctx_core::Result;

/// A session of an agent, as stored.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Its key, which may have a format unknown to this version.
    pub key: String,
    /// Its entry in the store.
    pub entry: SessionEntry,
    /// Its transcript; absent if the file does not exist.
    pub path: Option<PathBuf>,
}

impl StoredSession {
    /// Creates it from a store entry, with the transcript if that exists.
    pub fn of(home: &Home, key: &str, entry: &SessionEntry) -> Self {
        let path = key.parse().ok().and_then(|key: SessionKey| home.transcript(&key, entry).ok());
        let path = path.filter(|path| path.is_file());
        Self { key: key.to_owned(), entry: entry.clone(), path }
    }
}

/// Finds the agent's session with that key or id. Paths are not accepted.
///
/// # Errors
///
/// If the sessions of the agent cannot be read.
pub fn find_session(home: &Home, agent: &FileId, named: &str) -> Result<Option<StoredSession>> {
    let stored = SessionStore::at(home.sessions_file(agent)).load()?;
    let canonical = named.parse::<SessionKey>().map_or(named.to_owned(), |key| key.to_string());
    let by_key = stored.all().find(|(key, _)| *key == canonical);
    let found = by_key.or_else(|| stored.all().find(|(_, entry)| entry.session_id == named));
    Ok(found.map(|(key, entry)| StoredSession::of(home, key, entry)))
}
