//! Lists the available transcripts.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ctx_core::{Result, Timestamp, Tokens};
use ctx_session::key::SessionKey;
use ctx_session::{AgentHomes, DiscoveredSession, Home, SessionEntry, SessionStore};

use super::{id_of, number_of, stamp_of};
use crate::shape::{SessionHead, SourceKind};

/// The files and folders to search.
pub(super) struct Listing {
    pub(super) home: Home,
    pub(super) files: Vec<PathBuf>,
    /// Whether to list the sessions of the home.
    pub(super) of_home: bool,
    pub(super) agents: AgentHomes,
    /// The values read from files by the last listing.
    pub(super) cache: Mutex<Cache>,
}

#[derive(Default)]
pub(super) struct Cache {
    /// Sessions of other agents; `None` for a file without one.
    agents: FileCache<Option<ListedSession>>,
    /// The prompt tokens of the last request of each session of the home.
    sent_tokens: FileCache<Option<u64>>,
}

/// Values read from files. A value is valid while the time and the size of its file are unchanged.
#[derive(Default)]
struct FileCache<T> {
    last: HashMap<PathBuf, CachedFile<T>>,
    current: HashMap<PathBuf, CachedFile<T>>,
}

type CachedFile<T> = (Timestamp, u64, T);

impl<T: Clone> FileCache<T> {
    /// Returns the value of a file. Reads it if the file is new or changed.
    fn get(
        &mut self,
        file: &mut DiscoveredSession,
        read: impl FnOnce(&mut DiscoveredSession) -> T,
    ) -> T {
        let (modified, bytes) = (file.modified, file.bytes);
        let value = match self.last.remove(&file.path) {
            Some((at, size, value)) if (at, size) == (modified, bytes) => value,
            _ => read(file),
        };
        self.current.insert(file.path.clone(), (modified, bytes, value.clone()));
        value
    }

    /// Ends a listing: drops the values of files that it did not find.
    fn end_listing(&mut self) {
        self.last = std::mem::take(&mut self.current);
    }
}

/// A transcript that can be opened.
#[derive(Clone)]
pub(super) struct ListedSession {
    pub(super) head: SessionHead,
    pub(super) path: PathBuf,
    /// Its key and its id in the store: a user may give either.
    names: Vec<String>,
}

impl ListedSession {
    pub(super) fn is_named(&self, named: &str) -> bool {
        self.head.id == named
            || self.names.iter().any(|name| name == named)
            || Path::new(named).canonicalize().as_deref().unwrap_or(Path::new(named)) == self.path
    }
}

impl Listing {
    pub(super) fn read(&self) -> Result<Vec<ListedSession>> {
        let mut found: Vec<ListedSession> = self.files.iter().map(|path| of_file(path)).collect();
        let mut known: HashSet<PathBuf> = found.iter().map(|listed| listed.path.clone()).collect();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let Cache { agents, sent_tokens } = &mut *cache;
        if self.of_home {
            for agent in self.home.agents().unwrap_or_default() {
                // A damaged list of one agent hides only its own sessions.
                let Ok(stored) = SessionStore::at(self.home.sessions_file(&agent)).load() else {
                    continue;
                };
                for (key, entry) in stored.all() {
                    let listed = self.of_store(key, entry, sent_tokens);
                    found.extend(listed.filter(|listed| known.insert(listed.path.clone())));
                }
            }
        }
        for mut file in self.agents.files().sessions {
            let listed = agents
                .get(&mut file, |file| file.complete().unwrap_or(false).then(|| of_agent(file)));
            found.extend(listed.filter(|listed| !known.contains(&listed.path)));
        }
        agents.end_listing();
        sent_tokens.end_listing();
        Ok(found)
    }

    /// Returns a number that changes when a session is added, removed or used.
    pub(super) fn stamp(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        if self.of_home {
            for agent in self.home.agents().unwrap_or_default() {
                let stamp = stamp_of(&self.home.sessions_file(&agent)).unwrap_or(0);
                hasher.update(&stamp.to_le_bytes());
            }
        }
        for path in &self.files {
            hasher.update(&stamp_of(path).unwrap_or(0).to_le_bytes());
        }
        for file in self.agents.files().sessions {
            hasher.update(file.path.as_os_str().as_encoded_bytes());
            hasher.update(&file.modified.0.to_le_bytes());
            hasher.update(&file.bytes.to_le_bytes());
        }
        number_of(&hasher)
    }

    fn of_store(
        &self,
        key: &str,
        entry: &SessionEntry,
        sent_tokens: &mut FileCache<Option<u64>>,
    ) -> Option<ListedSession> {
        // The key may be of another version.
        let parsed: SessionKey = key.parse().ok()?;
        let path = self.home.transcript(&parsed, entry).ok()?;
        let path = path.canonicalize().ok()?;
        let agent = parsed.agent().map_or_else(|| "main".to_owned(), ToString::to_string);
        let named = [&entry.display_name, &entry.subject].into_iter().flatten().next();
        let head = SessionHead {
            id: id_of("store", &[agent.as_bytes(), key.as_bytes()]),
            source: SourceKind::Store,
            title: named.cloned().unwrap_or_else(|| key.to_owned()),
            path: Some(path.display().to_string()),
            agent: Some(agent),
            session_id: Some(entry.session_id.clone()),
            model: entry.model_override.clone(),
            compactions: entry.compaction_count,
            bytes: path.metadata().ok().map(|metadata| metadata.len()),
            last_at: Some(entry.updated_at).filter(|at| *at != Timestamp::default()),
            sent_tokens: DiscoveredSession::at(&path).and_then(|mut file| {
                sent_tokens.get(&mut file, |file| Some(file.last_usage()?.prompt_tokens))
            }),
            ..SessionHead::default()
        };
        Some(ListedSession { head, path, names: vec![key.to_owned(), entry.session_id.clone()] })
    }
}

/// Returns a session of another agent, with the reported usage of its last request.
fn of_agent(session: &DiscoveredSession) -> ListedSession {
    let ListedSession { head, path, .. } = of_file(&session.path);
    let usage = session.last_usage();
    let project = session.project.as_ref();
    let folder = project.and_then(|project| project.file_name());
    let head = SessionHead {
        title: folder.map_or(head.title, |folder| folder.to_string_lossy().into_owned()),
        agent: Some(session.agent.name().to_owned()),
        session_id: Some(session.session_id.clone()),
        project: project.map(|project| project.display().to_string()),
        window: usage.as_ref().and_then(|usage| usage.window).map(Tokens),
        sent_tokens: usage.as_ref().map(|usage| usage.prompt_tokens),
        model: usage.and_then(|usage| usage.model),
        ..head
    };
    ListedSession { head, path, names: vec![session.session_id.clone()] }
}

fn of_file(path: &Path) -> ListedSession {
    // A missing file is reported when it is opened.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let found = DiscoveredSession::at(&path);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let head = SessionHead {
        id: id_of("file", &[path.as_os_str().as_encoded_bytes()]),
        source: SourceKind::File,
        title: name.to_string_lossy().into_owned(),
        path: Some(path.display().to_string()),
        bytes: found.as_ref().map(|found| found.bytes),
        last_at: found.map(|found| found.modified),
        ..SessionHead::default()
    };
    ListedSession { head, path, names: Vec::new() }
}
