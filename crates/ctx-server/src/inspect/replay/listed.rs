//! Which transcripts there are.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ctx_core::{Result, Timestamp, Tokens};
use ctx_session::discover::{AgentHomes, FoundSession};
use ctx_session::paths::Home;
use ctx_session::store::{SessionEntry, SessionStore};

use super::{id_of, key_of, number_of, stamp_of};
use crate::inspect::shape::{SessionHead, SourceKind};

/// Where to look.
pub(super) struct Listing {
    pub(super) home: Home,
    pub(super) files: Vec<PathBuf>,
    /// Whether the sessions of the home are listed, and where else agents keep theirs.
    pub(super) of_home: bool,
    pub(super) agents: AgentHomes,
    /// The files of agents that were looked at.
    pub(super) known: Mutex<HashMap<PathBuf, Known>>,
}

/// A file at a time and a size, and the session in it; `None` where it holds none.
type Known = (Timestamp, u64, Option<Listed>);

/// A transcript that can be opened.
#[derive(Clone)]
pub(super) struct Listed {
    pub(super) head: SessionHead,
    pub(super) path: PathBuf,
    /// Its key and its id in the store, by which people name it.
    names: Vec<String>,
}

impl Listed {
    pub(super) fn is_named(&self, named: &str) -> bool {
        self.head.id == named
            || self.names.iter().any(|name| name == named)
            || Path::new(named).canonicalize().is_ok_and(|path| path == self.path)
    }
}

impl Listing {
    pub(super) fn read(&self) -> Result<Vec<Listed>> {
        let mut found: Vec<Listed> = self.files.iter().map(|path| of_file(path)).collect();
        let mut known: HashSet<PathBuf> = found.iter().map(|listed| listed.path.clone()).collect();
        if self.of_home {
            for agent in self.home.agents().unwrap_or_default() {
                // One agent's damaged list hides its sessions, not those of the others.
                let Ok(stored) = SessionStore::at(self.home.sessions_file(&agent)).load() else {
                    continue;
                };
                let of_store = stored.all().filter_map(|(key, entry)| self.of_store(key, entry));
                for listed in of_store {
                    if known.insert(listed.path.clone()) {
                        found.push(listed);
                    }
                }
            }
        }
        let mut seen = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::new();
        for mut file in self.agents.files().sessions {
            let state = (file.modified, file.bytes);
            let listed = match seen.remove(&file.path) {
                Some((modified, bytes, listed)) if (modified, bytes) == state => listed,
                _ => file.complete().unwrap_or(false).then(|| of_agent(&file)),
            };
            found.extend(listed.clone().filter(|listed| !known.contains(&listed.path)));
            now.insert(file.path, (state.0, state.1, listed));
        }
        *seen = now;
        Ok(found)
    }

    /// A number that changes when a session comes, goes or is used.
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

    fn of_store(&self, key: &str, entry: &SessionEntry) -> Option<Listed> {
        let parsed = key_of(key)?;
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
            sent_tokens: entry.context_tokens,
            ..SessionHead::default()
        };
        Some(Listed { head, path, names: vec![key.to_owned(), entry.session_id.clone()] })
    }
}

/// A session of another agent, with what the provider reported of its last request.
fn of_agent(session: &FoundSession) -> Listed {
    let Listed { head, path, .. } = of_file(&session.path);
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
    Listed { head, path, names: vec![session.session_id.clone()] }
}

fn of_file(path: &Path) -> Listed {
    // One that went away since is told of when it is opened.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let found = FoundSession::at(&path);
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
    Listed { head, path, names: Vec::new() }
}
