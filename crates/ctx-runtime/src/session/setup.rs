//! The setup of a session: budget, engine and memory, for one model and one set of tools.

use std::sync::Arc;

use ctx_core::{
    BootstrapRequest, ContextEngine, Error, ErrorKind, ModelCard, Result, Services, SummaryModels,
    TokenLedger, ToolSpec, WorkspaceSearch,
};
use ctx_dialect::json::{ObjectWriter, array};
use ctx_layers::tool_guard::{Config as GuardConfig, ToolGuard, ToolHooks, WriteGuard};
use ctx_memory::Config as MemoryConfig;
use ctx_session::key::FileId;
use ctx_workspace::{WorkspaceAccess, WorkspaceFolder};

use super::{Session, SessionPool};
use crate::engine_health::EngineHealthRecorder;
use crate::memory::MemoryWorker;
use crate::models::{SummaryModelChain, summary_models};
use crate::spec::{ModelSource, Resolved, SessionSpec};
use crate::stores::Stores;

/// The setup of a session.
pub(crate) struct SessionSetup {
    /// Index of the model in the chain.
    pub(crate) model: usize,
    /// The tools, as sent with each request.
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) resolved: Resolved,
    pub(crate) ledger: TokenLedger,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) health: EngineHealthRecorder,
    pub(crate) hooks: ToolHooks,
    _guard: Arc<WriteGuard>,
    pub(crate) memory: MemoryWorker,
    pub(crate) workspace: Option<Arc<dyn WorkspaceSearch>>,
    /// The agent's working folder and its access to it.
    pub(crate) folder: WorkspaceFolder,
    pub(crate) access: WorkspaceAccess,
    pub(crate) summary_models: Option<SummaryModels>,
    services: Services,
    /// Warnings for the user, shown once.
    pub(crate) warnings: Vec<String>,
}

impl SessionSetup {
    /// Disposes of the engine. A failure is only logged.
    pub(super) async fn dispose_engine(&self, session: &str) {
        if let Err(error) = self.engine.dispose().await {
            tracing::warn!(session, "cannot dispose of the engine: {error}");
        }
    }

    /// Changes the tools and their size. The engine stays, as nothing else differs.
    fn set_tools(
        &mut self,
        specs: &[ToolSpec],
        resolved: Resolved,
        ledger: TokenLedger,
    ) -> Result<()> {
        self.ledger = ledger;
        self.hooks = ToolHooks::default();
        self._guard = guard(&resolved, &self.services, &self.hooks, &self.ledger)?;
        self.resolved = resolved;
        self.specs = specs.into();
        Ok(())
    }
}

/// Installs the limit on tool results.
fn guard(
    resolved: &Resolved,
    services: &Services,
    hooks: &ToolHooks,
    ledger: &TokenLedger,
) -> Result<Arc<WriteGuard>> {
    let guard = ToolGuard::new(GuardConfig::resolve(&resolved.config)?);
    Ok(guard.with_services(services).install(hooks, ledger))
}

/// Returns the tools as JSON text, for counting their tokens.
pub(crate) fn tools_json(tools: &[ToolSpec]) -> String {
    array(tools.iter().map(|tool| {
        let json = ObjectWriter::new().text("name", &tool.name);
        let json = json.text("description", &tool.description);
        json.raw("parameters", tool.parameters.as_str()).end()
    }))
}

/// Resolves the settings for a model of the chain.
pub(crate) fn resolve(
    pool: &SessionPool,
    agent: &FileId,
    card: &ModelCard,
    specs: &[ToolSpec],
) -> Result<Resolved> {
    let settings = &pool.settings;
    let spec = SessionSpec {
        engine: settings.engine.clone(),
        agent: Some(agent.to_string()),
        provider: Some(card.provider.clone()),
        model: Some(card.name.clone()),
        model_source: ModelSource::Recorded,
        window: settings.window,
        native: card.window,
        system: settings.system.clone(),
        tools: (!specs.is_empty()).then(|| tools_json(specs)),
        ..SessionSpec::default()
    };
    spec.resolve(&pool.config)
}

impl Session {
    /// Returns the setup.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] if it is not resolved yet.
    pub(crate) fn setup(&self) -> Result<&SessionSetup> {
        self.setup.as_ref().ok_or_else(not_prepared)
    }

    /// Resolves the setup for the first model of the chain whose window is large enough.
    ///
    /// # Errors
    ///
    /// See [`prepare`](Self::prepare). If no model is suitable, the error of the first.
    pub(crate) async fn prepare_any(
        &mut self,
        pool: &SessionPool,
        specs: &[ToolSpec],
    ) -> Result<()> {
        let mut refused = None;
        for at in 0..self.overrides.models.len() {
            match self.prepare(pool, at, specs).await {
                Err(error) if error.kind() == ErrorKind::WindowTooSmall => {
                    refused.get_or_insert(error);
                }
                prepared => return prepared,
            }
        }
        Err(refused.unwrap_or_else(not_prepared))
    }

    /// Resolves the setup for a model of the chain and these tools. Parts that do not change are
    /// kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WindowTooSmall`] from the window guard, and errors from building the engine.
    pub(crate) async fn prepare(
        &mut self,
        pool: &SessionPool,
        model: usize,
        specs: &[ToolSpec],
    ) -> Result<()> {
        let is_known = |known: &&mut SessionSetup| known.model == model;
        if self.setup.as_mut().filter(is_known).is_some_and(|known| *known.specs == *specs) {
            return Ok(());
        }
        let Some(chosen) = self.overrides.models.get(model).cloned() else {
            return Err(not_prepared());
        };
        let resolved = resolve(pool, &self.agent, chosen.card(), specs)?;
        resolved.check_window(None)?;
        let ledger = self.ledger(&resolved, model);
        if let Some(known) = self.setup.as_mut().filter(is_known) {
            self.view = None;
            return known.set_tools(specs, resolved, ledger);
        }
        let setup = self.build(pool, model, specs, resolved, ledger).await?;
        self.view = None;
        if let Some(before) = self.setup.replace(setup) {
            before.dispose_engine(&self.id).await;
        }
        self.archive(&[]).await;
        Ok(())
    }

    /// Opens the memory and builds the engine.
    async fn build(
        &self,
        pool: &SessionPool,
        model: usize,
        specs: &[ToolSpec],
        resolved: Resolved,
        ledger: TokenLedger,
    ) -> Result<SessionSetup> {
        let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
        let summary_models = match &pool.settings.summary_models {
            Some(models) => Some(models.clone()),
            None => {
                let chain = summary_models(&resolved.config, None, resolved.model.as_deref())?;
                warnings.extend(chain.iter().flat_map(SummaryModelChain::warnings));
                chain.map(|chain| chain.models)
            }
        };
        let models = summary_models.as_ref();
        let (shared, opening) = pool.agents.of(pool, &self.agent, &resolved, models).await?;
        warnings.extend(opening);
        let config = MemoryConfig::for_engine(&resolved.config, &resolved.engine.id)?;
        let folder: WorkspaceFolder = resolved.config.section()?;
        let access: WorkspaceAccess = resolved.config.section()?;
        let access = access.min(pool.settings.access);
        let stores = Stores::of(&pool.home, &self.agent);
        let (names, settings) = ((self.agent.as_str(), &*self.id), &pool.settings);
        let of_host = (settings.memory.as_ref(), settings.embedder.as_ref());
        let own = || Arc::new(shared.memory.of_session(&self.id, resolved.counter)) as _;
        let memory = match config.enabled {
            true => resolved
                .linked_memory(&pool.registry, &stores.memory, names, models, of_host)?
                .or_else(|| Some(own())),
            false => None,
        };
        let mut services =
            stores.services(memory.clone(), shared.workspace.clone(), summary_models.clone());
        services.embedder.clone_from(&pool.settings.embedder);
        let engine = resolved.engine_of(&pool.registry, &services)?;
        let file = Some(self.path.display().to_string());
        let bootstrap = BootstrapRequest { session_id: self.id.clone(), session_file: file };
        engine.bootstrap(bootstrap).await?;
        pool.engines.note(&self.key, &engine);
        let hooks = ToolHooks::default();
        let guard = guard(&resolved, &services, &hooks, &ledger)?;
        Ok(SessionSetup {
            model,
            specs: specs.into(),
            health: EngineHealthRecorder::new(&pool.home),
            workspace: shared.workspace,
            folder,
            access,
            _guard: guard,
            resolved,
            ledger,
            engine,
            hooks,
            memory: MemoryWorker::new(memory),
            summary_models,
            services,
            warnings,
        })
    }
}

fn not_prepared() -> Error {
    Error::new(ErrorKind::Contract, "no model was selected for the session")
        .hint("this is an error of ctx: please report it")
}
