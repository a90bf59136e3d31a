//! The builder of a runtime.

use std::sync::Arc;
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{
    ChatModel, Embedder, Error, ErrorKind, IdSource, MemoryStore, Result, SummaryModels, Timer,
    Timestamp, Tokens,
};
use ctx_engine_registry::{MemoryContext, Registry};
use ctx_model::TokioTimer;
use ctx_session::{GroupCommit, Home, RandomIds, clock};
use ctx_shared::SharedSessions;
use ctx_store::{AnyStore, HostOptions};
use ctx_workspace::WorkspaceAccess;
use serde_json::json;

use super::{Inner, Runtime};
use crate::lanes::{GLOBAL_LIMIT, Lanes};
use crate::lifecycle::{Lifecycle, Resets};
use crate::session::{SessionPool, Settings, max_concurrent_turns, max_open_sessions};

/// The settings that enable memory.
const MEMORY: [&str; 2] = ["plugins.slots.memory", "agents.defaults.memoryContext.enabled"];

/// Default time for which a model may send nothing before its request is cancelled.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Default maximum wait for a provider that says when to retry.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);

/// Returns linked engines and those installed in the home.
fn linked_and_installed(home: &Home) -> Result<Registry> {
    let registry = Registry::collect()?;
    #[cfg(feature = "plugins")]
    let search = registry.search().clone().with_user(&home.root);
    #[cfg(feature = "plugins")]
    let registry = registry.with_search(search);
    #[cfg(not(feature = "plugins"))]
    let _ = home;
    Ok(registry)
}

/// Builds a [`Runtime`].
#[must_use]
pub struct Builder {
    pub(super) home: Home,
    pub(super) config: Config,
    pub(super) models: Vec<Arc<dyn ChatModel>>,
    pub(super) settings: Settings,
    pub(super) lifecycle: Option<Arc<dyn Lifecycle>>,
    pub(super) limit: Option<usize>,
    pub(super) registry: Option<Registry>,
    pub(super) shared: Option<(AnyStore, HostOptions)>,
}

impl Builder {
    pub(super) fn new(home: Home, config: Config) -> Self {
        let settings = Settings {
            system: None,
            window: None,
            engine: None,
            clock: Arc::new(clock::now),
            timer: Arc::new(TokioTimer::default()),
            ids: Arc::new(RandomIds),
            access: WorkspaceAccess::default(),
            background: false,
            idle_timeout: IDLE_TIMEOUT,
            max_retry_wait: MAX_RETRY_WAIT,
            open_sessions: max_open_sessions(),
            summary_models: None,
            memory: None,
            embedder: None,
        };
        let models = Vec::new();
        Self {
            home,
            config,
            models,
            settings,
            lifecycle: None,
            limit: None,
            registry: None,
            shared: None,
        }
    }

    /// Sets the primary model.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.insert(0, model);
        self
    }

    /// Adds a fallback for the models before it.
    pub fn fallback(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.push(model);
        self
    }

    /// Sets the system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.settings.system = Some(text.into());
        self
    }

    /// Sets the window, overriding models and configuration.
    pub fn window(mut self, tokens: Tokens) -> Self {
        self.settings.window = Some(tokens);
        self
    }

    /// Sets the engine, overriding the configuration.
    pub fn engine(mut self, id: impl Into<String>) -> Self {
        self.settings.engine = Some(id.into());
        self
    }

    /// Sets the models that write summaries, overriding the configuration.
    pub fn summary_models(mut self, models: SummaryModels) -> Self {
        self.settings.summary_models = Some(models);
        self
    }

    /// Sets the available engines, layers and memories. Default: [`Registry::collect`], all linked
    /// ones, and with the feature `plugins` also installed ones.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Sets the long-term memory of each session, replacing the configured one. It is enabled
    /// unless the configuration disables memory.
    pub fn memory(
        mut self,
        make: impl Fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>> + Send + Sync + 'static,
    ) -> Self {
        self.settings.memory = Some(Arc::new(make));
        self
    }

    /// Sets the embedding model of long-term memory, overriding the configuration.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.settings.embedder = Some(embedder);
        self
    }

    /// Sets the source of the time of day.
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Sets the timer used for waiting.
    pub fn timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.settings.timer = timer;
        self
    }

    /// Sets the source of ids.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.settings.ids = ids;
        self
    }

    /// Sets the maximum access of the agent to its workspace; `agents.defaults.workspaceAccess` may
    /// allow less. A memory flush writes there.
    pub fn workspace_access(mut self, access: WorkspaceAccess) -> Self {
        self.settings.access = access;
        self
    }

    /// Whether the compaction after a turn runs after the answer is returned. Default: no; it needs
    /// a process that keeps running.
    pub fn background(mut self, background: bool) -> Self {
        self.settings.background = background;
        self
    }

    /// Sets how long a model may send nothing; 300 seconds by default.
    pub fn idle_timeout(mut self, longest: Duration) -> Self {
        self.settings.idle_timeout = longest;
        self
    }

    /// Sets the maximum wait for a provider that says when to retry; 30 seconds by default.
    /// If the provider requires a longer wait, the next model is called, or the caller gets the
    /// error.
    pub fn max_retry_wait(mut self, longest: Duration) -> Self {
        self.settings.max_retry_wait = longest;
        self
    }

    /// Sets the maximum number of turns that run at once; the default is 64 or an eighth of
    /// the process's open file limit, whichever is less.
    pub fn limit(mut self, turns: usize) -> Self {
        self.limit = Some(turns);
        self
    }

    /// Sets the maximum number of open sessions. Beyond that, idle sessions are closed, least
    /// recently used first. Opening one again reads its file. Default: a quarter of the process's
    /// open file limit, as each session uses two files, and 4,096 at most.
    pub fn open_sessions(mut self, most: usize) -> Self {
        self.settings.open_sessions = most;
        self
    }

    /// Sets when a session is reset. Default: [`Resets`], from `session.reset`.
    pub fn lifecycle(mut self, lifecycle: Arc<dyn Lifecycle>) -> Self {
        self.lifecycle = Some(lifecycle);
        self
    }

    /// Keeps sessions in a store that other hosts share. Default: none, they are files of the home.
    pub fn shared(mut self, store: AnyStore, options: HostOptions) -> Self {
        self.shared = Some((store, options));
        self
    }

    /// Builds the runtime. First it recovers what a crashed process left in the journals of the
    /// home.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] without a model; [`ErrorKind::Io`] and [`ErrorKind::Locked`] of
    /// the home; an invalid configuration or engine.
    pub fn build(mut self) -> Result<Runtime> {
        if self.models.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "missing model")
                .hint("give one with Builder::model"));
        }
        if self.settings.memory.is_some() && MEMORY.iter().all(|key| !self.config.is_explicit(key))
        {
            let on = json!({"agents": {"defaults": {"memoryContext": {"enabled": true}}}});
            self.config = self.config.overlaid(on)?;
        }
        let own = self.registry.take();
        let registry = own.map_or_else(|| linked_and_installed(&self.home), Ok)?;
        let group = GroupCommit::open(&self.home.journals_dir())?;
        let lanes =
            Lanes::new(self.limit.unwrap_or_else(|| GLOBAL_LIMIT.min(max_concurrent_turns())));
        let lifecycle = match &self.lifecycle {
            Some(lifecycle) => lifecycle.clone(),
            None => Arc::new(Resets::of(&self.config)?),
        };
        let Self { home, config, models, settings, .. } = self;
        let shared = self.shared.map(|(store, options)| {
            let timer = settings.timer.clone();
            Arc::new(SharedSessions::new(store, &options, home.clone(), timer))
        });
        let mut sessions =
            SessionPool::new(home, config, models, settings, registry, lifecycle, group);
        sessions.shared = shared;
        let sessions = Arc::new(sessions);
        let (subagents, maintenance) = (Arc::default(), Arc::default());
        Ok(Runtime { inner: Arc::new(Inner { sessions, lanes, subagents, maintenance }) })
    }
}
