//! Erases from the files of this host what other hosts erased from the store.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::Result;
use ctx_session::SessionStore;
use ctx_session::key::{FileId, SessionKey};
use ctx_store::{LogName, Record, RecordKind};

use crate::memory::PAGE;
use crate::sync::{locked, read_number, spawn_blocking, write_number};
use crate::{SharedSessions, cache, log_path};

/// A host without turns looks for erasures this often.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);

/// How far the erasures of each agent were applied, and the task that applies them.
#[derive(Debug, Default)]
pub(crate) struct Erasures {
    agents: std::sync::Mutex<HashMap<FileId, Arc<tokio::sync::Mutex<Applied>>>>,
    task: Arc<tokio::sync::Mutex<()>>,
}

/// How far the erasures of an agent were applied.
#[derive(Debug, Default)]
struct Applied {
    /// The number of the last erasure.
    position: Option<u64>,
    /// When the store was last asked.
    asked: Option<Duration>,
}

impl SharedSessions {
    /// Waits until the leases have to be renewed, and renews them. Returns the sessions that other
    /// hosts wait for or have taken over. In the background, erasures of other hosts are applied, and
    /// the memories that turns use are kept up to date.
    pub async fn keep(self: &Arc<Self>) -> Vec<SessionKey> {
        let leaving = self.leases.renew().await;
        if let Ok(only) = self.erasures.task.clone().try_lock_owned() {
            let sessions = self.clone();
            tokio::spawn(async move {
                let _only = only;
                sessions.catch_up().await;
            });
        }
        leaving
    }

    async fn catch_up(&self) {
        let home = self.home.clone();
        let agents = spawn_blocking(move || home.agents()).await;
        for agent in agents.unwrap_or_default() {
            let mut done = self.apply_erasures(&agent, IDLE_INTERVAL).await;
            let memory = locked(&self.memories).get(&agent).cloned();
            if let (Ok(()), Some(memory)) = (&done, memory) {
                let (store, timer, id) = (&*self.store, &*self.timer, agent.as_str());
                done = memory.lock().await.fetch_again(store, timer, id, IDLE_INTERVAL).await;
            }
            if let Err(error) = done {
                tracing::warn!(%agent, "an erasure of another host is not applied: {error}");
            }
        }
    }

    /// Applies the erasures of other hosts to the sessions of an agent, unless the store was asked
    /// for them within `interval`. One that fails does not stop the others; the next call tries it
    /// again.
    pub(crate) async fn apply_erasures(&self, agent: &FileId, interval: Duration) -> Result<()> {
        let applied = locked(&self.erasures.agents).entry(agent.clone()).or_default().clone();
        let (mut applied, now) = (applied.lock().await, self.timer.elapsed());
        if applied.asked.is_some_and(|asked| now.saturating_sub(asked) < interval) {
            return Ok(());
        }
        applied.asked = Some(now);
        let file = self.home.agent_dir(agent).join("erasures");
        let before = match applied.position {
            Some(position) => position,
            None => read_number(&file, 0)?,
        };
        let (mut after, mut position, mut failed) = (before, before, None);
        loop {
            let found = self.store.since(agent.as_str(), RecordKind::Erasure, after, PAGE).await?;
            if found.next == after {
                break;
            }
            if let Err(error) = self.apply_page(agent, &found.records).await {
                failed.get_or_insert(error);
            }
            after = found.next;
            if failed.is_none() {
                position = after;
            }
        }
        // A home without the agent is not given one.
        if position != before && self.home.agent_dir(agent).is_dir() {
            spawn_blocking(move || write_number(&file, position)).await?;
        }
        applied.position = Some(position);
        failed.map_or(Ok(()), Err)
    }

    async fn apply_page(&self, agent: &FileId, erasures: &[Record]) -> Result<()> {
        let (mut removed, mut failed) = (Vec::new(), None);
        for Record { id, bytes } in erasures {
            let name = LogName { agent: agent.to_string(), file: id.clone() };
            let generation = String::from_utf8_lossy(bytes).parse().unwrap_or_default();
            match cache::apply_erasure(&*self.store, &self.home, &name, generation).await {
                Ok(true) => removed.push(log_path(&self.home, &name)?),
                Ok(false) => {}
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        if !removed.is_empty() {
            self.drop_entries(agent, removed).await?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Removes the entries of sessions whose logs were removed from the index of this host.
    pub(crate) async fn drop_entries(&self, agent: &FileId, removed: Vec<PathBuf>) -> Result<()> {
        let (home, index) = (self.home.clone(), self.home.sessions_file(agent));
        spawn_blocking(move || {
            SessionStore::at(index).update(|all| {
                let own = |key: &SessionKey, entry| {
                    home.transcript(key, entry).is_ok_and(|path| removed.contains(&path))
                };
                let keys = all.iter().filter(|(key, entry)| own(key, entry));
                for key in keys.map(|(key, _)| key).collect::<Vec<_>>() {
                    all.remove(&key);
                }
                Ok(())
            })
        })
        .await
    }
}
