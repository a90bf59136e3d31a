//! Agents whose sessions and memories one host holds while it erases text from them.
//!
//! ```text
//! leases granted -> files and memory fetched -> text erased from them -> published -> released
//! ```
//!
//! An interrupted run leaves `erasing.json` in the folder of the agent, with the facts that were
//! there before. The next run publishes the facts and segments that went; it fetches all files again,
//! so that it finds in them what has not left the store yet. Logs are published last: they show what
//! to erase. So the same request completes an interrupted one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk as disk;
use ctx_session::key::{FileId, SessionKey};
use ctx_store::{LogName, RecordKind, SessionName};

use crate::cache::{self, CachedLog};
use crate::leases::HeldLease;
use crate::memory::PAGE;
use crate::sync::{locked, spawn_blocking};
use crate::{HostMemory, SharedSession, SharedSessions, log_path, parsed};

/// The agents that a host holds.
pub struct HeldAgents {
    sessions: Arc<SharedSessions>,
    agents: Vec<HeldAgent>,
    renewal: tokio::task::JoinHandle<()>,
}

ctx_core::partial_debug!(HeldAgents, it, agents = it.agents.len());

struct HeldAgent {
    agent: FileId,
    memory: HostMemory,
    /// The lease under which logs are replaced that no session has any more.
    lease: HeldLease,
    logs: Vec<HeldLog>,
}

struct HeldLog {
    path: PathBuf,
    /// Of the file, when it was fetched.
    fingerprint: Option<u64>,
    owner: LogOwner,
}

enum LogOwner {
    Session(SessionKey, Box<SharedSession>),
    /// A log that no session has any more, and whether its file was made for this.
    Nothing(CachedLog, bool),
}

impl SharedSessions {
    /// Waits until this host holds agents, and fetches their files and memories. The leases are
    /// renewed until the result is dropped. `memories` are in the order of the agents.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another host holds one of them for too long; the errors of the
    /// store, and of writing the files. Nothing is held then.
    pub async fn hold_agents(
        self: &Arc<Self>,
        memories: Vec<(FileId, HostMemory)>,
    ) -> Result<HeldAgents> {
        let leases = self.leases.clone();
        let renewal = tokio::spawn(async move {
            loop {
                leases.renew().await;
            }
        });
        let mut held = HeldAgents { sessions: self.clone(), agents: Vec::new(), renewal };
        for (agent, memory) in memories {
            if let Err(error) = held.take(agent, memory).await {
                held.release().await;
                return Err(error);
            }
        }
        Ok(held)
    }
}

impl HeldAgents {
    async fn take(&mut self, agent: FileId, memory: HostMemory) -> Result<()> {
        let sessions = self.sessions.clone();
        let guard = format!("agent:{agent}:store-erasure").parse()?;
        let lease = sessions.leases.acquire(&guard).await?;
        self.agents.push(HeldAgent { agent: agent.clone(), memory, lease, logs: Vec::new() });
        let Some(held) = self.agents.last_mut() else { return Ok(()) };
        let record = ErasureRecord::of(&sessions, &agent);
        let interrupted = record.read().await?;
        if let Some(facts) = &interrupted {
            held.publish_forgotten(&sessions, facts).await?;
        }
        held.take_sessions(&sessions, interrupted.is_some()).await?;
        held.take_other_logs(&sessions, interrupted.is_some()).await?;
        sessions.fetch_memory(&agent, &held.memory).await?;
        spawn_blocking(move || record.remove()).await
    }

    /// Records that erasing begins. From now on, an interrupted run is completed by the next one.
    ///
    /// # Errors
    ///
    /// If the record cannot be written.
    pub async fn begin(&self) -> Result<()> {
        for held in &self.agents {
            let (record, facts) =
                (ErasureRecord::of(&self.sessions, &held.agent), held.facts().await?);
            spawn_blocking(move || record.write(&facts)).await?;
        }
        Ok(())
    }

    /// Erases from the store what is not in the files and memories any more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if a lease was lost; the errors of the store. The same request then
    /// completes it.
    pub async fn publish(&self) -> Result<()> {
        for held in &self.agents {
            let record = ErasureRecord::of(&self.sessions, &held.agent);
            let before = record.read().await?.unwrap_or_default();
            held.publish_forgotten(&self.sessions, &before).await?;
            held.publish_changed(&self.sessions).await?;
            held.publish_logs(&self.sessions).await?;
            spawn_blocking(move || record.remove()).await?;
        }
        Ok(())
    }

    /// Gives the agents back.
    pub async fn release(mut self) {
        for held in std::mem::take(&mut self.agents) {
            for log in held.logs {
                match log.owner {
                    LogOwner::Session(_, session) => (*session).release().await,
                    LogOwner::Nothing(_, true) => {
                        if let Err(error) = cache::delete(&log.path) {
                            tracing::warn!("a fetched session is not deleted: {error}");
                        }
                    }
                    LogOwner::Nothing(_, false) => {}
                }
            }
            self.sessions.leases.release(held.lease).await;
        }
    }
}

impl Drop for HeldAgents {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl HeldAgent {
    /// Holds the sessions of the directory. With `refetch`, their whole logs are read.
    async fn take_sessions(&mut self, sessions: &Arc<SharedSessions>, refetch: bool) -> Result<()> {
        let mut after: Option<String> = None;
        loop {
            let page = sessions.store.list(self.agent.as_str(), after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.key.clone());
            for (SessionName { key, .. }, entry) in page {
                let key: SessionKey = key.parse()?;
                if refetch {
                    let path = sessions.home.transcript(&key, &parsed(&key, &entry.json)?)?;
                    spawn_blocking(move || cache::distrust(&path)).await?;
                }
                let fetched = sessions.fetch(&key).await?;
                let Some(log) = &fetched.log else {
                    fetched.release().await;
                    continue;
                };
                let path = log_path(&sessions.home, &log.name)?;
                let fingerprint = fingerprint(&path).await?;
                let session = sessions.opened(fetched, &key, &path)?;
                let owner = LogOwner::Session(key, Box::new(session));
                self.logs.push(HeldLog { path, fingerprint, owner });
            }
        }
    }

    /// Fetches the logs that no session has any more: a key that was reset has another session.
    async fn take_other_logs(&mut self, sessions: &SharedSessions, refetch: bool) -> Result<()> {
        let taken: BTreeSet<PathBuf> = self.logs.iter().map(|log| log.path.clone()).collect();
        let mut after: Option<String> = None;
        loop {
            let page = sessions.store.logs(self.agent.as_str(), after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.file.clone());
            for (name, head) in page {
                let path = log_path(&sessions.home, &name)?;
                if head.lines > 0 && !taken.contains(&path) {
                    self.take_log(sessions, name, path, refetch).await?;
                }
            }
        }
    }

    async fn take_log(
        &mut self,
        sessions: &SharedSessions,
        name: LogName,
        path: PathBuf,
        refetch: bool,
    ) -> Result<()> {
        let is_new = !path.exists();
        if refetch {
            let path = path.clone();
            spawn_blocking(move || cache::distrust(&path)).await?;
        }
        let log = cache::fetch(&*sessions.store, &sessions.home, &name).await?;
        let fingerprint = fingerprint(&path).await?;
        self.logs.push(HeldLog { path, fingerprint, owner: LogOwner::Nothing(log, is_new) });
        Ok(())
    }

    /// Forgets in the store the segments that this host has forgotten, and the facts of `before`
    /// that it does not have any more.
    async fn publish_forgotten(
        &self,
        sessions: &SharedSessions,
        before: &BTreeSet<String>,
    ) -> Result<()> {
        let (store, agent, now) = (&sessions.store, self.agent.as_str(), self.facts().await?);
        let facts: Vec<String> = before.difference(&now).cloned().collect();
        for ids in facts.chunks(PAGE) {
            store.forget(agent, RecordKind::Fact, ids).await?;
        }
        let memory = self.memory.memory.clone();
        let segments = spawn_blocking(move || memory.forgotten()).await?;
        let segments: Vec<String> = segments.iter().map(ToString::to_string).collect();
        for ids in segments.chunks(PAGE) {
            store.forget(agent, RecordKind::Segment, ids).await?;
        }
        Ok(())
    }

    /// Sends the facts that changed: those that were superseded by others which went.
    async fn publish_changed(&self, sessions: &SharedSessions) -> Result<()> {
        let shared = sessions.memory(&self.agent);
        let mut shared = shared.lock().await;
        shared.send_facts(&*sessions.store, self.agent.as_str(), &self.memory).await
    }

    async fn publish_logs(&self, sessions: &SharedSessions) -> Result<()> {
        for HeldLog { path, fingerprint, owner } in &self.logs {
            let is_changed = self::fingerprint(path).await? != *fingerprint;
            match owner {
                LogOwner::Session(key, session) => {
                    if is_changed {
                        session.replace(path).await?;
                    }
                    session.save_entry(key).await?;
                }
                LogOwner::Nothing(log, _) if is_changed => {
                    let mut log = log.clone();
                    log.replace(&*sessions.store, &self.lease.lease(), path).await?;
                }
                LogOwner::Nothing(..) => {}
            }
        }
        Ok(())
    }

    /// Returns the ids of the facts of this host.
    async fn facts(&self) -> Result<BTreeSet<String>> {
        let Some(facts) = self.memory.facts.clone() else { return Ok(BTreeSet::new()) };
        spawn_blocking(move || {
            let mut facts = locked(&facts);
            facts.refresh()?;
            Ok(facts.facts().map(|fact| fact.id.to_string()).collect())
        })
        .await
    }
}

async fn fingerprint(path: &Path) -> Result<Option<u64>> {
    let path = path.to_owned();
    spawn_blocking(move || cache::fingerprint(&path)).await
}

/// The facts of an agent before text was erased.
struct ErasureRecord(PathBuf);

impl ErasureRecord {
    fn of(sessions: &SharedSessions, agent: &FileId) -> Self {
        Self(sessions.home.agent_dir(agent).join("erasing.json"))
    }

    /// Returns what an interrupted run left.
    async fn read(&self) -> Result<Option<BTreeSet<String>>> {
        let file = self.0.clone();
        let text = spawn_blocking(move || match disk::read(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(disk::io_error("cannot read what was erased", &file, error)),
        });
        let Some(text) = text.await? else { return Ok(None) };
        let facts = serde_json::from_slice(&text).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "the record of an interrupted erasure is damaged")
                .with("path", self.0.display())
                .source(error)
                .hint("delete it, and repeat the request; then check `ctx memory facts`")
        })?;
        Ok(Some(facts))
    }

    fn write(&self, facts: &BTreeSet<String>) -> Result<()> {
        disk::create_private_dir(disk::parent(&self.0))?;
        disk::write_atomic(&self.0, &serde_json::to_vec(facts).unwrap_or_default())
    }

    fn remove(&self) -> Result<()> {
        match disk::remove(&self.0, "cannot delete the record of an erasure")? {
            true => disk::sync_dir(disk::parent(&self.0)),
            false => Ok(()),
        }
    }
}
