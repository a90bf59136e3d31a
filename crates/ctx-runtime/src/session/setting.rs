//! What a session is run with: budget, engine, memory, for one model and one set of tools.

use std::sync::Arc;

use ctx_core::{
    BootstrapRequest, ContextEngine, Error, ErrorKind, Installed, ModelCard, Result, Services,
    SummaryModels, TokenLedger, ToolHooks, ToolSpec, WorkspaceSearch,
};
use ctx_layers::memory::Config as MemoryConfig;
use ctx_layers::memory::workspace::Folder;
use ctx_layers::tool_guard::{Config as GuardConfig, ToolGuard};
use ctx_session::key::FileId;

use super::Session;
use crate::runtime::{Inner, WorkspaceAccess};
use crate::{Asked, EngineWatch, Remembering, Resolved, Stores, Wanted, Writers, summary_models};

/// What a session is run with.
pub(crate) struct Setting {
    /// Which model of the chain.
    pub(crate) model: usize,
    /// The tools, as the model is told of them with each request.
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) resolved: Resolved,
    pub(crate) ledger: TokenLedger,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) watch: EngineWatch,
    pub(crate) hooks: ToolHooks,
    _guard: Installed,
    pub(crate) memory: Remembering,
    pub(crate) workspace: Option<Arc<dyn WorkspaceSearch>>,
    /// The folder that the agent works in, and what it may do there.
    pub(crate) folder: Folder,
    pub(crate) access: WorkspaceAccess,
    pub(crate) summary_models: Option<SummaryModels>,
    services: Services,
    /// What a person should be told, once.
    pub(crate) warnings: Vec<String>,
}

impl Setting {
    /// The engine is not needed any more. That it could not end well matters to nobody by then.
    pub(super) async fn let_go(&self, session: &str) {
        if let Err(error) = self.engine.dispose().await {
            tracing::warn!(session, "the engine did not end well: {error}");
        }
    }

    /// The same with other tools: what they measure is all that differs, so the engine stays.
    fn take_tools(
        &mut self,
        specs: &[ToolSpec],
        resolved: Resolved,
        ledger: TokenLedger,
    ) -> Result<()> {
        self.ledger = ledger;
        self.hooks = ToolHooks::new();
        self._guard = guard(&resolved, &self.services, &self.hooks, &self.ledger)?;
        self.resolved = resolved;
        self.specs = specs.into();
        Ok(())
    }
}

/// Has the results of tools bounded.
fn guard(
    resolved: &Resolved,
    services: &Services,
    hooks: &ToolHooks,
    ledger: &TokenLedger,
) -> Result<Installed> {
    let guard = ToolGuard::new(GuardConfig::resolve(&resolved.config)?);
    Ok(guard.with_services(services).install(hooks, ledger))
}

/// The tools as JSON text: what is counted for them.
pub(crate) fn tools_json(tools: &[ToolSpec]) -> String {
    let mut json = String::from("[");
    for (at, tool) in tools.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json.push_str("{\"name\":");
        json.push_str(&ctx_dialect::json::quote(&tool.name));
        json.push_str(",\"description\":");
        json.push_str(&ctx_dialect::json::quote(&tool.description));
        json.push_str(",\"parameters\":");
        json.push_str(tool.parameters.as_str());
        json.push('}');
    }
    json.push(']');
    json
}

/// Settles what a model of the chain is run with.
pub(crate) fn resolve(
    inner: &Inner,
    agent: &FileId,
    card: &ModelCard,
    specs: &[ToolSpec],
) -> Result<Resolved> {
    let settings = &inner.settings;
    let wanted = Wanted {
        engine: settings.engine.clone(),
        agent: Some(agent.to_string()),
        provider: Some(card.provider.clone()),
        model: Some(card.name.clone()),
        asked: Asked::InPassing,
        window: settings.window,
        native: card.window,
        system: settings.system.clone(),
        tools: (!specs.is_empty()).then(|| tools_json(specs)),
        ..Wanted::default()
    };
    wanted.resolve(&inner.config)
}

impl Session {
    /// What it is run with.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] before anything was settled.
    pub(crate) fn setting(&self) -> Result<&Setting> {
        self.setting.as_ref().ok_or_else(unsettled)
    }

    /// Settles what the session is run with, for the first model of the chain whose window is big
    /// enough.
    ///
    /// # Errors
    ///
    /// As [`settle`](Self::settle), for the first model where none will do.
    pub(crate) async fn settle_any(&mut self, inner: &Inner, specs: &[ToolSpec]) -> Result<()> {
        let mut refused = None;
        for at in 0..self.own.models.len() {
            match self.settle(inner, at, specs).await {
                Err(error) if error.kind() == ErrorKind::WindowTooSmall => {
                    refused.get_or_insert(error);
                }
                settled => return settled,
            }
        }
        Err(refused.unwrap_or_else(unsettled))
    }

    /// Settles what the session is run with, for a model of the chain and these tools. What is
    /// settled already stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WindowTooSmall`] by the guard, and what building an engine may give.
    pub(crate) async fn settle(
        &mut self,
        inner: &Inner,
        model: usize,
        specs: &[ToolSpec],
    ) -> Result<()> {
        let is_known = |known: &&mut Setting| known.model == model;
        if self.setting.as_mut().filter(is_known).is_some_and(|known| *known.specs == *specs) {
            return Ok(());
        }
        let Some(chosen) = self.own.models.get(model).cloned() else { return Err(unsettled()) };
        let resolved = resolve(inner, &self.agent, chosen.card(), specs)?;
        resolved.check_window(None)?;
        let ledger = self.ledger(&resolved, model);
        if let Some(known) = self.setting.as_mut().filter(is_known) {
            self.view = None;
            return known.take_tools(specs, resolved, ledger);
        }
        let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
        let summary_models = match &inner.settings.summary_models {
            Some(models) => Some(models.clone()),
            None => {
                let writers = summary_models(&resolved.config, None, resolved.model.as_deref())?;
                warnings.extend(writers.iter().flat_map(Writers::left_out));
                writers.map(|writers| writers.models)
            }
        };
        let models = summary_models.as_ref();
        let (shared, said) = inner.agents.of(inner, &self.agent, &resolved, models).await?;
        warnings.extend(said);
        let config = MemoryConfig::for_engine(&resolved.config, &resolved.engine.id)?;
        let folder: Folder = resolved.config.section()?;
        let access: WorkspaceAccess = resolved.config.section()?;
        let access = access.min(inner.settings.access);
        let stores = Stores::of(&inner.home, &self.agent);
        let (names, settings) = ((self.agent.as_str(), &*self.id), &inner.settings);
        let of_host = (settings.memory.as_ref(), settings.embedder.as_ref());
        let own = || Arc::new(shared.memory.of_session(&self.id, resolved.counter)) as _;
        let memory = match config.enabled {
            true => resolved
                .linked_memory(&inner.registry, &stores.memory, names, models, of_host)?
                .or_else(|| Some(own())),
            false => None,
        };
        let mut services =
            stores.services(memory.clone(), shared.workspace.clone(), summary_models.clone());
        services.embedder.clone_from(&inner.settings.embedder);
        let engine = resolved.engine_of(&inner.registry, &services)?;
        let file = Some(self.path.display().to_string());
        let bootstrap = BootstrapRequest { session_id: self.id.clone(), session_file: file };
        engine.bootstrap(bootstrap).await?;
        inner.engines.note(&self.key, &engine);
        let hooks = ToolHooks::new();
        let guard = guard(&resolved, &services, &hooks, &ledger)?;
        self.view = None;
        let before = self.setting.replace(Setting {
            model,
            specs: specs.into(),
            watch: EngineWatch::new(&inner.home),
            workspace: shared.workspace,
            folder,
            access,
            _guard: guard,
            resolved,
            ledger,
            engine,
            hooks,
            memory: Remembering::new(memory),
            summary_models,
            services,
            warnings,
        });
        if let Some(before) = before {
            before.let_go(&self.id).await;
        }
        self.archive(&[]).await;
        Ok(())
    }
}

fn unsettled() -> Error {
    Error::new(ErrorKind::Contract, "no model was settled for the session")
        .hint("this is an error of ctx: please report it")
}
