//! What a runtime is made of.

use std::sync::Arc;
use std::time::Duration;

use ctx_core::{
    ChatModel, Embedder, Error, ErrorKind, IdSource, MemoryStore, Result, SummaryModels, Timer,
    Timestamp, Tokens,
};
use ctx_engine_registry::{Config, MemoryContext, Registry};
use ctx_layers::memory::workspace::Access as WorkspaceAccess;
use ctx_model::TokioTimer;
use ctx_session::clock;
use ctx_session::group_commit::GroupCommit;
use ctx_session::log::RandomIds;
use ctx_session::paths::Home;
use serde_json::json;

use super::idle::{most_at_once, most_open};
use super::{Inner, Lifecycle, Runtime};
use crate::lanes::{GLOBAL_LIMIT, Lanes};
use crate::lifecycle::Resets;

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Makes the memory of a session.
pub(crate) type MakeMemory =
    Arc<dyn Fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>> + Send + Sync>;

/// What switches memory on.
const MEMORY: [&str; 2] = ["plugins.slots.memory", "agents.defaults.memoryContext.enabled"];

/// How long a model may say nothing before it is given up, by default.
pub const SILENCE: Duration = Duration::from_secs(300);

/// How long a provider is waited for that says when to come again, by default.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What is linked, and what is installed in the home.
fn all_of(home: &Home) -> Result<Registry> {
    let registry = Registry::collect()?;
    #[cfg(feature = "plugins")]
    let search = registry.search().clone().with_user(home.root());
    #[cfg(feature = "plugins")]
    let registry = registry.with_search(search);
    #[cfg(not(feature = "plugins"))]
    let _ = home;
    Ok(registry)
}

/// Makes a [`Runtime`].
#[must_use]
pub struct Builder {
    pub(super) home: Home,
    pub(super) config: Config,
    pub(super) models: Vec<Arc<dyn ChatModel>>,
    pub(super) settings: Settings,
    pub(super) lifecycle: Option<Arc<dyn Lifecycle>>,
    pub(super) limit: Option<usize>,
    pub(super) registry: Option<Registry>,
}

/// What every turn of a runtime is run with.
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
    pub(crate) silence: Duration,
    pub(crate) longest_wait: Duration,
    pub(crate) open_sessions: usize,
    pub(crate) summary_models: Option<SummaryModels>,
    pub(crate) memory: Option<MakeMemory>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
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
            silence: SILENCE,
            longest_wait: LONGEST_WAIT,
            open_sessions: most_open(),
            summary_models: None,
            memory: None,
            embedder: None,
        };
        let models = Vec::new();
        Self { home, config, models, settings, lifecycle: None, limit: None, registry: None }
    }

    /// The model that answers.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.insert(0, model);
        self
    }

    /// One that answers when those before it cannot.
    pub fn fallback(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.push(model);
        self
    }

    /// What the model is told it is.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.settings.system = Some(text.into());
        self
    }

    /// The window, whatever models and configuration say.
    pub fn window(mut self, tokens: Tokens) -> Self {
        self.settings.window = Some(tokens);
        self
    }

    /// The engine, whatever the configuration says.
    pub fn engine(mut self, id: impl Into<String>) -> Self {
        self.settings.engine = Some(id.into());
        self
    }

    /// The models that write summaries, whatever the configuration says.
    pub fn summary_models(mut self, models: SummaryModels) -> Self {
        self.settings.summary_models = Some(models);
        self
    }

    /// Which engines, layers and memories there are. Default: [`Registry::collect`], all that are
    /// linked, and with the feature `plugins` those that are installed.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// The long-term memory of each session, in the place of the one that the configuration names. It
    /// is switched on, unless the configuration says otherwise.
    pub fn memory(
        mut self,
        make: impl Fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>> + Send + Sync + 'static,
    ) -> Self {
        self.settings.memory = Some(Arc::new(make));
        self
    }

    /// The model that makes the vectors of long-term memory, whatever the configuration says.
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.settings.embedder = Some(embedder);
        self
    }

    /// Where the time of day comes from.
    pub fn clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// By what waiting is done.
    pub fn timer(mut self, timer: Arc<dyn Timer>) -> Self {
        self.settings.timer = timer;
        self
    }

    /// Where ids come from.
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.settings.ids = ids;
        self
    }

    /// What the agent may do in its workspace, at most: `agents.defaults.workspaceAccess` may allow
    /// less. A memory flush writes there.
    pub fn workspace_access(mut self, access: WorkspaceAccess) -> Self {
        self.settings.access = access;
        self
    }

    /// Whether the compaction that follows a turn runs after the answer was handed out. Default:
    /// no; it needs a process that goes on.
    pub fn background(mut self, background: bool) -> Self {
        self.settings.background = background;
        self
    }

    /// How long a model may say nothing; [`SILENCE`] by default.
    pub fn silence(mut self, longest: Duration) -> Self {
        self.settings.silence = longest;
        self
    }

    /// How long a provider is waited for that says when to come again; [`LONGEST_WAIT`] by default.
    /// One that wants more time is given up for now: the next model is asked, or the caller told.
    pub fn longest_wait(mut self, longest: Duration) -> Self {
        self.settings.longest_wait = longest;
        self
    }

    /// How many turns run at once; [`GLOBAL_LIMIT`] by default, or an eighth of the files that the
    /// process may have open, where that is less.
    pub fn limit(mut self, turns: usize) -> Self {
        self.limit = Some(turns);
        self
    }

    /// How many sessions are open at once. Beyond that, those that nobody works on are closed, the one
    /// used least lately first; it is opened again when it is wanted, which takes reading its file.
    /// Default: a quarter of the files that the process may have open, as each session has two, and
    /// 4,096 at most.
    pub fn open_sessions(mut self, most: usize) -> Self {
        self.settings.open_sessions = most;
        self
    }

    /// Who says when a session begins anew. Default: [`Resets`], by `session.reset`.
    pub fn lifecycle(mut self, lifecycle: Arc<dyn Lifecycle>) -> Self {
        self.lifecycle = Some(lifecycle);
        self
    }

    /// The runtime. What a crashed one left in the journals of the home is put in place first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] without a model; [`ErrorKind::Io`] and [`ErrorKind::Locked`] of
    /// the home; a configuration or an engine that makes no sense.
    pub fn build(mut self) -> Result<Runtime> {
        if self.models.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "the runtime has no model")
                .hint("give one with Builder::model"));
        }
        if self.settings.memory.is_some() && MEMORY.iter().all(|key| !self.config.is_explicit(key))
        {
            let on = json!({"agents": {"defaults": {"memoryContext": {"enabled": true}}}});
            self.config = self.config.overlaid(on)?;
        }
        let registry = match self.registry.take() {
            Some(registry) => registry,
            None => all_of(&self.home)?,
        };
        let group = GroupCommit::open(&self.home)?;
        let lanes = Lanes::new(self.limit.unwrap_or_else(|| GLOBAL_LIMIT.min(most_at_once())));
        let lifecycle = match &self.lifecycle {
            Some(lifecycle) => lifecycle.clone(),
            None => Arc::new(Resets::of(&self.config)?),
        };
        Ok(Runtime { inner: Arc::new(Inner::new(self, registry, lifecycle, group, lanes)) })
    }
}
