//! The sessions of a runtime: what they share, and which of them are open.
//!
//! ```text
//! key -> acquire (idle, or opened) -> turn -> release (idle again; closed after an error)
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{
    ChatModel, Embedder, Error, IdSource, Result, SummaryModels, Timer, Timestamp, Tokens,
};
use ctx_engine_registry::Registry;
use ctx_session::key::SessionKey;
use ctx_session::{GroupCommit, Home};
use ctx_shared::{HostMemory, SharedSessions};
use ctx_workspace::WorkspaceAccess;

use super::idle::IdleSessions;
use super::lease::SessionLeases;
use super::{
    AgentResources, BackgroundCompaction, OpenReason, Session, SessionEngines, UsageCounters, open,
};
use crate::host::LayerCounts;
use crate::lifecycle::{Lifecycle, MaintenanceMode, SessionConfig, SessionTimes};
use crate::memory::{MakeMemory, MemoryWorker};
use crate::sync::{locked, spawn_blocking};

/// The source of the time.
pub(super) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The settings of every turn of a runtime.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) system: Option<String>,
    pub(crate) window: Option<Tokens>,
    pub(crate) engine: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) access: WorkspaceAccess,
    pub(crate) background: bool,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_retry_wait: Duration,
    pub(crate) open_sessions: usize,
    pub(crate) summary_models: Option<SummaryModels>,
    pub(crate) memory: Option<MakeMemory>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

/// The sessions of a runtime.
#[derive(Clone)]
pub(crate) struct SessionPool {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) models: Vec<Arc<dyn ChatModel>>,
    pub(crate) settings: Settings,
    pub(crate) registry: Registry,
    pub(crate) lifecycle: Arc<dyn Lifecycle>,
    pub(crate) group: Arc<GroupCommit>,
    pub(crate) agents: Arc<AgentResources>,
    pub(crate) usage: Arc<UsageCounters>,
    pub(crate) engines: Arc<SessionEngines>,
    pub(crate) layers: Arc<LayerCounts>,
    pub(super) idle: Arc<IdleSessions>,
    pub(super) leases: SessionLeases,
    /// The store that other hosts share, if there is one.
    pub(crate) shared: Option<Arc<SharedSessions>>,
    /// Set once the leases of this pool are renewed.
    keeper: OnceLock<()>,
    /// Compactions that run in the background.
    pub(crate) background: Arc<Mutex<HashMap<SessionKey, BackgroundCompaction>>>,
}

impl SessionPool {
    pub(crate) fn new(
        home: Home,
        config: Config,
        models: Vec<Arc<dyn ChatModel>>,
        settings: Settings,
        registry: Registry,
        lifecycle: Arc<dyn Lifecycle>,
        group: Arc<GroupCommit>,
    ) -> Self {
        Self {
            usage: Arc::new(UsageCounters::new(home.clone())),
            home,
            config,
            models,
            settings,
            registry,
            lifecycle,
            group,
            agents: Arc::default(),
            engines: Arc::default(),
            layers: Arc::default(),
            idle: Arc::default(),
            leases: SessionLeases::default(),
            shared: None,
            keeper: OnceLock::new(),
            background: Arc::default(),
        }
    }

    /// Returns a pool over the same home with another configuration, other models and settings.
    pub(crate) fn derived(
        &self,
        config: Config,
        models: Vec<Arc<dyn ChatModel>>,
        settings: Settings,
    ) -> Self {
        let (idle, leases, background) = (Arc::default(), SessionLeases::default(), Arc::default());
        let keeper = OnceLock::new();
        Self { config, models, settings, idle, leases, keeper, background, ..self.clone() }
    }

    /// Returns the session of a key, opened if it is not open, and notices from opening it. The
    /// caller is in the session's lane.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        key: &SessionKey,
        reason: OpenReason,
    ) -> Result<(Session, Vec<String>)> {
        if let Some(session) = self.idle.take(key) {
            let now = (self.settings.clock)();
            let times = SessionTimes { began: session.began, last: session.newest };
            if session.shared.as_ref().is_some_and(|shared| shared.is_lost()) {
                self.leave(session).await;
            } else if self.is_over(key, reason, times, now) {
                self.closed(key, Some(session)).await?;
            } else {
                // If its file is missing, the session in memory must not be used.
                session.check_file()?;
                return Ok((session, Vec::new()));
            }
        }
        // A dropped turn may still be working on the disk.
        let lease = self.leases.acquire(key).await;
        self.close_excess().await;
        let Some(shared) = &self.shared else {
            let (pool, key) = (self.clone(), key.clone());
            return spawn_blocking(move || open(&pool, &key, reason, lease)).await;
        };
        self.keeper.get_or_init(|| drop(tokio::spawn(keep_leases(Arc::downgrade(self)))));
        let fetched = shared.fetch(key).await?;
        let (pool, own_key) = (self.clone(), key.clone());
        let opened = spawn_blocking(move || open(&pool, &own_key, reason, lease)).await;
        let (mut session, notices) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                fetched.release().await;
                return Err(error);
            }
        };
        session.shared = Some(shared.opened(fetched, key, &session.path)?);
        let opened = async {
            session.commit().await?;
            session.save_entry_if_due().await
        };
        match opened.await {
            Ok(()) => Ok((session, notices)),
            Err(error) => {
                self.leave(session).await;
                Err(error)
            }
        }
    }

    /// Whether a session is replaced by a new one when it is opened.
    pub(super) fn is_over(
        &self,
        key: &SessionKey,
        reason: OpenReason,
        times: SessionTimes,
        now: Timestamp,
    ) -> bool {
        match reason {
            OpenReason::NewSession => true,
            OpenReason::Existing => false,
            OpenReason::Message => self.lifecycle.is_over(key, times, now),
        }
    }

    /// Takes a session back. After an error the session is closed: memory may differ from the disk,
    /// and calls may be open. The session is repaired when it is next opened.
    pub(crate) async fn release(&self, mut session: Session, error: Option<&Error>) {
        if let Some(setup) = &mut session.setup {
            setup.memory.maintain();
        }
        if error.is_some() {
            session.dispose_engine().await;
            // The first error is more useful than an error of closing.
            return self.leave(session).await;
        }
        if let Err(error) = session.save_entry_if_due().await {
            tracing::warn!("the entry of a session is not saved: {error}");
        }
        if session.shared.as_ref().is_some_and(|shared| shared.is_leaving()) {
            session.dispose_engine().await;
            return self.leave(session).await;
        }
        self.send_memory(&session).await;
        self.idle.put(session, self.held_by_background());
    }

    /// Closes a session and returns its memory, whose background work continues.
    pub(crate) async fn close(&self, key: &SessionKey) -> Result<MemoryWorker> {
        self.closed(key, self.idle.take(key)).await
    }

    async fn closed(&self, key: &SessionKey, mut session: Option<Session>) -> Result<MemoryWorker> {
        locked(&self.background).remove(key);
        if let Some(session) = &session {
            session.dispose_engine().await;
        }
        let setup = session.as_mut().and_then(|session| session.setup.as_mut());
        let memory = setup.map(|setup| std::mem::take(&mut setup.memory));
        let committed = match &session {
            Some(session) => session.commit().await.map(drop),
            None => Ok(()),
        };
        // Written while the session is locked: the next process that locks it sees when it was last
        // used.
        let usage = self.usage.clone();
        let written = spawn_blocking(move || usage.write()).await;
        if let Some(session) = session {
            self.leave(session).await;
        }
        written?;
        committed?;
        Ok(memory.unwrap_or_default())
    }

    /// Returns the store and the memory of a session's agent, if the memory is shared.
    fn shared_memory(&self, session: &Session) -> Option<(&SharedSessions, HostMemory)> {
        let shared = self.shared.as_deref()?;
        Some((shared, self.agents.memory(&session.agent)?.on_disk()?))
    }

    /// Fetches what other hosts remember for the agent of a session. If that fails, the memory of
    /// this host is used as it is; returns a warning for the user.
    pub(crate) async fn fetch_memory(&self, session: &Session) -> Option<String> {
        let (shared, memory) = self.shared_memory(session)?;
        let fetched = shared.fetch_memory(&session.agent, &memory).await;
        fetched.err().map(|error| format!("memory of other hosts is not up to date: {error}"))
    }

    /// Sends what a session's agent has remembered, after all archiving.
    async fn send_memory(&self, session: &Session) {
        let Some((shared, memory)) = self.shared_memory(session) else { return };
        if let Err(error) = shared.send_memory(&session.agent, &memory).await {
            tracing::warn!("memory is not shared yet: {error}");
        }
    }

    /// Closes a session, whose lines are on disk. A shared one is handed over to other hosts.
    async fn leave(&self, mut session: Session) {
        self.send_memory(&session).await;
        let shared = session.shared.take();
        if let Some(shared) = &shared
            && !shared.is_lost()
        {
            let usage = self.usage.clone();
            let saved = async {
                spawn_blocking(move || usage.write()).await?;
                shared.save_entry(&session.key).await
            };
            if let Err(error) = saved.await {
                tracing::warn!("the entry of a session is not saved: {error}");
            }
        }
        drop_session(session).await;
        if let Some(shared) = shared {
            shared.release().await;
        }
    }

    /// Closes idle sessions if too many are open.
    async fn close_excess(&self) {
        let excess = self.idle.excess(self.leases.len(), self.settings.open_sessions);
        if excess.is_empty() {
            return;
        }
        for mut closing in excess {
            if let Some(session) = closing.dispose_engine().await {
                locked(&self.background).remove(&session.key);
                self.leave(session).await;
            }
        }
        let (usage, now) = (self.usage.clone(), self.settings.timer.elapsed());
        if let Err(error) = spawn_blocking(move || usage.write_if_due(now)).await {
            tracing::warn!("cannot write the usage counters of sessions: {error}");
        }
    }

    /// Returns the open sessions that were idle for so long that maintenance removes them.
    pub(crate) fn expired(&self, now: Timestamp) -> Vec<SessionKey> {
        let config = self.config.section::<SessionConfig>().unwrap_or_default().maintenance;
        if config.mode == MaintenanceMode::Warn {
            return Vec::new();
        }
        let oldest = now.0.saturating_sub(config.prune_after.millis());
        self.idle.unused_since(Timestamp(oldest))
    }

    /// Number of message tokens that background compactions keep in memory.
    pub(crate) fn held_by_background(&self) -> u64 {
        locked(&self.background).values().map(BackgroundCompaction::held).sum()
    }
}

/// Renews leases while the pool exists, and hands idle sessions over to hosts that wait for them.
async fn keep_leases(pool: Weak<SessionPool>) {
    loop {
        let shared = pool.upgrade().and_then(|pool| pool.shared.clone());
        let Some(shared) = shared else { return };
        let leaving = shared.keep().await;
        let Some(pool) = pool.upgrade() else { return };
        for key in leaving {
            if let Some(session) = pool.idle.take(&key) {
                locked(&pool.background).remove(&key);
                session.dispose_engine().await;
                pool.leave(session).await;
            }
        }
    }
}

/// Closes a session. Acknowledged entries are already on disk.
async fn drop_session(session: Session) {
    let done = spawn_blocking(move || {
        drop(session);
        Ok(())
    });
    if let Err(error) = done.await {
        tracing::warn!("cannot close a session: {error}");
    }
}
