//! Sessions and memory in a store that several hosts share.
//!
//! ```text
//! lease granted -> entry and lines fetched into the home -> session opened from its file
//!   turn: lines are appended to the file, and to the store with each commit
//! closed, or wanted by another host and idle: entry saved -> file closed -> lease released
//! ```
//!
//! The session's file is a cache of its log in the store. Its lines count once the store has them;
//! lines after that were never acknowledged, and leave the file when the session is next opened
//! under a lease.

#![forbid(unsafe_code)]

mod cache;
mod derived;
mod erasures;
mod held;
mod journal;
mod leases;
mod memory;
mod sync;
mod transfer;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore};
use ctx_store::{AnyStore, DirectoryEntry, HostOptions, LogHead, LogName, SessionName};

use cache::CachedLog;
use erasures::Erasures;
pub use held::HeldAgents;
use leases::{HeldLease, SharedLeases};
pub use memory::HostMemory;
use memory::SharedMemory;
use sync::{locked, spawn_blocking};
pub use transfer::{SkippedSession, TransferReport, export, import};

/// How often an entry that changed is saved while its session is open. The store's own time of the
/// last append is newer; these are counters.
const ENTRY_INTERVAL: Duration = Duration::from_secs(5);

/// The sessions of a host in a shared store.
pub struct SharedSessions {
    store: AnyStore,
    home: Home,
    timer: Arc<dyn Timer>,
    leases: Arc<SharedLeases>,
    /// Whether turns go on while the store is away.
    journals: bool,
    memories: std::sync::Mutex<HashMap<FileId, Arc<tokio::sync::Mutex<SharedMemory>>>>,
    erasures: Erasures,
}

/// A session that this host holds.
pub struct SharedSession {
    sessions: Arc<SharedSessions>,
    lease: HeldLease,
    state: tokio::sync::Mutex<SharedState>,
}

/// What the store has of a session.
struct SharedState {
    log: CachedLog,
    entry: Option<DirectoryEntry>,
    /// When the entry was last saved.
    saved: Duration,
}

/// A session that was fetched, before its file is opened.
pub struct FetchedSession {
    lease: HeldLease,
    entry: Option<DirectoryEntry>,
    log: Option<CachedLog>,
}

impl SharedSessions {
    /// Creates it for the files of a home.
    pub fn new(store: AnyStore, options: &HostOptions, home: Home, timer: Arc<dyn Timer>) -> Self {
        let leases = SharedLeases::new(store.clone(), options, timer.clone());
        let (memories, erasures) = Default::default();
        let (leases, journals) = (Arc::new(leases), options.journal);
        Self { store, home, timer, leases, journals, memories, erasures }
    }

    /// Waits until this host holds the session, and fetches what its files lack.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another host holds it for too long; the errors of the store, and of
    /// writing the files.
    pub async fn fetch(&self, key: &SessionKey) -> Result<FetchedSession> {
        if let Err(error) = self.apply_erasures(&agent(key), memory::INTERVAL).await {
            tracing::warn!("an erasure of another host is not applied: {error}");
        }
        let lease = self.leases.acquire(key).await?;
        match self.fetch_held(key, lease.session()).await {
            Ok((entry, log)) => Ok(FetchedSession { lease, entry, log }),
            Err(error) => {
                self.leases.release(lease).await;
                Err(error)
            }
        }
    }

    async fn fetch_held(
        &self,
        key: &SessionKey,
        name: &SessionName,
    ) -> Result<(Option<DirectoryEntry>, Option<CachedLog>)> {
        let stored = self.store.get(name).await?;
        let agent = agent(key);
        let index = SessionStore::at(self.home.sessions_file(&agent));
        let (own_key, json) = (key.clone(), stored.as_ref().map(|stored| stored.json.clone()));
        let entry = spawn_blocking(move || match json {
            Some(json) => {
                let entry = parsed(&own_key, &json)?;
                index.update(|all| {
                    if all.get(&own_key) != Some(&entry) {
                        all.insert(&own_key, entry.clone())?;
                    }
                    Ok(())
                })?;
                Ok(Some(entry))
            }
            // The session was made before the host had a store.
            None => Ok(index.load()?.get(&own_key).cloned()),
        })
        .await?;
        let Some(entry) = entry else { return Ok((stored, None)) };
        let path = self.home.transcript(key, &entry)?;
        let log = log_name(&self.home, &agent, &path)?;
        let log = cache::fetch(&*self.store, &self.home, &log).await?;
        if log.is_removed() {
            // The session was erased elsewhere: a new one begins.
            if let Some(stored) = stored {
                self.store.retire(name, stored.version).await?;
            }
            self.drop_entries(&agent, vec![path]).await?;
            return Ok((None, None));
        }
        Ok((stored, Some(log)))
    }

    /// Removes a session and its lines from the store and from this host, under its lease. What its
    /// agent remembers of it stays. Returns whether the store had it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another host holds it for too long; the errors of the store, and of
    /// deleting the file.
    pub async fn remove(&self, key: &SessionKey) -> Result<bool> {
        let held = self.leases.acquire(key).await?;
        let done = async {
            let Some(stored) = self.store.get(held.session()).await? else { return Ok(false) };
            let path = self.home.transcript(key, &parsed(key, &stored.json)?)?;
            let log = log_name(&self.home, &agent(key), &path)?;
            // The entry goes last: until then, a repetition finds the log.
            self.store.remove(&held.lease(), &log).await?;
            cache::fetch(&*self.store, &self.home, &log).await?;
            self.store.retire(held.session(), stored.version).await?;
            self.drop_entries(&agent(key), vec![path]).await?;
            Ok(true)
        };
        let done = done.await;
        self.leases.release(held).await;
        done
    }

    /// Fetches what other hosts have added to the memory of an agent, at most once a second.
    ///
    /// # Errors
    ///
    /// Those of the store, and of writing the memory. What was fetched before can be recalled.
    pub async fn fetch_memory(&self, agent: &FileId, memory: &HostMemory) -> Result<()> {
        let (store, shared) = (&*self.store, self.memory(agent));
        let mut shared = shared.lock().await;
        shared.fetch(store, &*self.timer, agent.as_str(), memory).await
    }

    /// Sends what this host has added to the memory of an agent.
    ///
    /// # Errors
    ///
    /// Those of the store, and of reading the memory. The next call tries again.
    pub async fn send_memory(&self, agent: &FileId, memory: &HostMemory) -> Result<()> {
        let (store, shared) = (&*self.store, self.memory(agent));
        shared.lock().await.send(store, agent.as_str(), memory).await
    }

    fn memory(&self, agent: &FileId) -> Arc<tokio::sync::Mutex<SharedMemory>> {
        locked(&self.memories).entry(agent.clone()).or_default().clone()
    }

    /// Returns the held session for a file that was opened, which may be a new one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the file is not in the folder of the agent's sessions.
    pub fn opened(
        self: &Arc<Self>,
        fetched: FetchedSession,
        key: &SessionKey,
        path: &Path,
    ) -> Result<SharedSession> {
        let name = log_name(&self.home, &agent(key), path)?;
        let fetched_log = fetched.log.filter(|log| log.name == name);
        let log = fetched_log.unwrap_or_else(|| CachedLog::new(name));
        let state = SharedState { log, entry: fetched.entry, saved: Duration::ZERO };
        Ok(SharedSession { sessions: self.clone(), lease: fetched.lease, state: state.into() })
    }
}

impl FetchedSession {
    /// Gives the session back without opening it.
    pub async fn release(self) {
        let leases = self.lease.leases();
        leases.release(self.lease).await;
    }
}

impl SharedSession {
    /// Whether another host waits for the session, or has taken it over.
    pub fn is_leaving(&self) -> bool {
        self.lease.is_wanted() || self.lease.is_lost()
    }

    /// Whether another host has taken it over.
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// Appends the lines to the log that the file has and the log lacks. While the store is away and
    /// [`HostOptions::journal`] is set, the lines stay in the file, as long as the lease is in force
    /// for certain; returns a warning for the user then.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another host has taken the session over; the errors of the store.
    pub async fn commit(&self, path: &Path) -> Result<Option<String>> {
        let mut state = self.state.lock().await;
        match self.send(&mut state.log, path).await {
            Err(error)
                if error.is_retryable() && self.sessions.journals && self.lease.is_certain() =>
            {
                state.log.journal(path).await?;
                Ok(Some(format!("the turn is in a journal of this host only: {error}")))
            }
            done => done.map(|()| None),
        }
    }

    async fn send(&self, log: &mut CachedLog, path: &Path) -> Result<()> {
        let (store, lease) = (&*self.sessions.store, self.lease.lease());
        let mut done = log.commit(store, &lease, path).await;
        // Some of the lines may have arrived when the store seemed to be away.
        if log.is_journaled() && is(&done, ErrorKind::Conflict) {
            log.find_end(store, path).await?;
            done = log.commit(store, &lease, path).await;
        }
        if is(&done, ErrorKind::Locked) {
            self.lease.set_lost();
        }
        done
    }

    /// Replaces all lines of the log by those of the file.
    pub(crate) async fn replace(&self, path: &Path) -> Result<()> {
        let (store, lease) = (&*self.sessions.store, self.lease.lease());
        self.state.lock().await.log.replace(store, &lease, path).await
    }

    /// Saves the session's entry if it changed, unless that was done just now.
    ///
    /// # Errors
    ///
    /// Those of [`save_entry`](Self::save_entry).
    pub async fn save_entry_if_due(&self, key: &SessionKey) -> Result<()> {
        let is_due = {
            let state = self.state.lock().await;
            let since = self.sessions.timer.elapsed().saturating_sub(state.saved);
            state.entry.is_none() || since >= ENTRY_INTERVAL
        };
        if is_due { self.save_entry(key).await } else { Ok(()) }
    }

    /// Saves the session's entry if it changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if another host changed it; the errors of the store.
    pub async fn save_entry(&self, key: &SessionKey) -> Result<()> {
        let mut state = self.state.lock().await;
        let index = SessionStore::at(self.sessions.home.sessions_file(&agent(key)));
        let own_key = key.clone();
        let entry = spawn_blocking(move || Ok(index.load()?.get(&own_key).cloned())).await?;
        let Some(json) = entry.and_then(|entry| serde_json::to_string(&entry).ok()) else {
            return Ok(());
        };
        if state.entry.as_ref().is_none_or(|known| known.json != json) {
            let seen = state.entry.as_ref().map(|known| known.version);
            let session = self.lease.session();
            let version = self.sessions.store.compare_and_put(session, seen, &json).await?;
            state.entry = Some(DirectoryEntry { version, json });
        }
        state.saved = self.sessions.timer.elapsed();
        Ok(())
    }

    /// Gives the session back, once its file is closed.
    pub async fn release(self) {
        if self.lease.is_lost()
            && let Err(error) = self.erase_again().await
        {
            tracing::warn!("an erasure of another host is not applied: {error}");
        }
        self.sessions.leases.release(self.lease).await;
    }

    /// Applies an erasure of another host, after which a turn without a lease may have written the
    /// file again.
    async fn erase_again(&self) -> Result<()> {
        let SharedSessions { store, home, .. } = &*self.sessions;
        let name = self.state.lock().await.log.name.clone();
        let Some(head) = store.head(&name).await? else { return Ok(()) };
        if head.generation != LogHead::NEW.generation {
            let path = log_path(home, &name)?;
            spawn_blocking(move || cache::distrust(&path)).await?;
            cache::apply_erasure(&**store, home, &name, head.generation).await?;
        }
        Ok(())
    }
}

ctx_core::partial_debug!(SharedSessions, it, home = it.home);
ctx_core::partial_debug!(SharedSession, it, session = it.lease.session());
ctx_core::partial_debug!(FetchedSession, it, session = it.lease.session());

/// Whether a call failed with an error of that kind.
fn is<T>(done: &Result<T>, kind: ErrorKind) -> bool {
    done.as_ref().is_err_and(|error| error.kind() == kind)
}

fn agent(key: &SessionKey) -> FileId {
    key.agent().cloned().unwrap_or_else(FileId::main)
}

fn session_name(key: &SessionKey) -> SessionName {
    SessionName { agent: agent(key).to_string(), key: key.to_string() }
}

fn parsed(key: &SessionKey, json: &str) -> Result<SessionEntry> {
    serde_json::from_str(json).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "the session's entry in the shared store is damaged")
            .with("session", key)
            .source(error)
            .hint("`ctx store check` lists damaged entries")
    })
}

/// Returns the name of the log of a transcript.
fn log_name(home: &Home, agent: &FileId, path: &Path) -> Result<LogName> {
    let folder = home.sessions_dir(agent);
    let inside = path.strip_prefix(&folder).ok().and_then(Path::to_str);
    let Some(file) = inside.and_then(|name| name.strip_suffix(".jsonl")) else {
        return Err(Error::new(ErrorKind::InvalidInput, "a shared session has its file elsewhere")
            .with("path", path.display())
            .with("folder", folder.display())
            .hint("remove sessionFile from the session's entry"));
    };
    Ok(LogName { agent: agent.to_string(), file: file.replace('\\', "/") })
}

/// Returns the file of a log.
pub(crate) fn log_path(home: &Home, log: &LogName) -> Result<PathBuf> {
    let file = format!("{}.jsonl", log.file);
    if Path::new(&file).components().all(|part| matches!(part, Component::Normal(_))) {
        return Ok(home.sessions_dir(&FileId::new(&log.agent)?).join(file));
    }
    Err(Error::new(ErrorKind::Corrupt, "the shared store has a log with an invalid name")
        .with("log", format_args!("{}/{}", log.agent, log.file))
        .hint("another program wrote its rows: delete them"))
}
