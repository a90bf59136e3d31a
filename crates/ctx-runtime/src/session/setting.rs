//! What a session is run with: budget, engine, memory, for one model and one set of tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_core::{
    BootstrapRequest, ContextEngine, Error, ErrorKind, Installed, MemoryStore, ModelCard, Result,
    Services, SummaryModels, TokenLedger, ToolHooks, ToolSpec, WorkspaceSearch,
};
use ctx_layers::memory::Config as MemoryConfig;
use ctx_layers::tool_guard::{Config as GuardConfig, ToolGuard};
use ctx_session::blobs::FileBlobs;
use ctx_session::key::FileId;
use ctx_session::values::FileStore;

use super::{Session, locked};
use crate::runtime::Inner;
use crate::{AgentMemory, Asked, EngineWatch, Resolved, Wanted, summary_models, workspace_search};

/// What a session is run with.
pub(crate) struct Setting {
    /// Which model of the chain.
    pub(crate) model: usize,
    /// The tools, as the model is told of them.
    tools: String,
    pub(crate) resolved: Resolved,
    pub(crate) ledger: TokenLedger,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) watch: EngineWatch,
    pub(crate) hooks: ToolHooks,
    _guard: Installed,
    pub(crate) memory: Option<Arc<dyn MemoryStore>>,
    pub(crate) workspace: Option<Arc<dyn WorkspaceSearch>>,
    pub(crate) summary_models: Option<SummaryModels>,
    /// What a person should be told, once.
    pub(crate) warnings: Vec<String>,
}

/// What the sessions of one agent share.
#[derive(Default)]
pub(crate) struct Agents {
    shared: Mutex<HashMap<FileId, Shared>>,
}

#[derive(Clone)]
struct Shared {
    memory: AgentMemory,
    workspace: Option<Arc<dyn WorkspaceSearch>>,
}

impl Agents {
    fn of(
        &self,
        inner: &Inner,
        agent: &FileId,
        resolved: &Resolved,
        models: Option<&SummaryModels>,
    ) -> Result<(Shared, Vec<String>)> {
        let mut all = locked(&self.shared);
        if let Some(shared) = all.get(agent) {
            return Ok((shared.clone(), Vec::new()));
        }
        let config = MemoryConfig::for_engine(&resolved.config, &resolved.engine.id)?;
        let folder = inner.home.memory_dir(agent);
        let mut memory = match config.enabled {
            true => AgentMemory::configured(&resolved.config, &config, &folder, agent.as_str()),
            // Nothing but what is asked for by hand: no model is worth connecting to.
            false => AgentMemory::open(&config, Some(&folder), agent.as_str(), None),
        };
        let mut warnings = std::mem::take(&mut memory.warnings);
        let indexes = inner.home.workspaces_dir(agent);
        let mut said = Vec::new();
        let warn = |words| said.push(words);
        let workspace = workspace_search(&resolved.config, &indexes, resolved.counter, warn);
        warnings.extend(said);
        let workspace = workspace.unwrap_or_else(|error| {
            warnings.push(format!("the workspace is left out: {error}"));
            None
        });
        let shared = Shared { memory: memory.with_models(models.cloned()), workspace };
        all.insert(agent.clone(), shared.clone());
        Ok((shared, warnings))
    }

    /// The memory of an agent, where a session of it was run.
    pub(crate) fn memory(&self, agent: &FileId) -> Option<AgentMemory> {
        locked(&self.shared).get(agent).map(|shared| shared.memory.clone())
    }
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
    tools: &str,
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
        tools: (tools != "[]").then(|| tools.to_owned()),
        ..Wanted::default()
    };
    wanted.resolve(inner.config.clone())
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
        for at in 0..inner.models.len() {
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
        let tools = tools_json(specs);
        if let Some(known) = &self.setting
            && known.model == model
            && known.tools == tools
        {
            return Ok(());
        }
        let Some(chosen) = inner.models.get(model) else { return Err(unsettled()) };
        let resolved = resolve(inner, &self.agent, chosen.card(), &tools)?;
        resolved.check_window(None)?;
        let mut warnings: Vec<String> = resolved.warning().into_iter().collect();
        let summary_models = match &inner.settings.summary_models {
            Some(models) => Some(models.clone()),
            None => {
                let writers = summary_models(&resolved.config, None, resolved.model.as_deref())?;
                let missing = writers.iter().flat_map(|writers| &writers.missing);
                warnings.extend(missing.map(|error| format!("a fallback is left out: {error}")));
                writers.map(|writers| writers.models)
            }
        };
        let (shared, said) =
            inner.agents.of(inner, &self.agent, &resolved, summary_models.as_ref())?;
        warnings.extend(said);
        let config = MemoryConfig::for_engine(&resolved.config, &resolved.engine.id)?;
        let memory = shared.memory.of_session(&self.id, resolved.counter);
        let memory = config.enabled.then(|| Arc::new(memory) as Arc<dyn MemoryStore>);
        let blobs = Arc::new(FileBlobs::at(inner.home.tool_results_dir(&self.agent)));
        let services = Services {
            store: Some(Arc::new(FileStore::at(inner.home.store_dir(&self.agent)))),
            blobs: Some(blobs),
            memory: memory.clone(),
            workspace: shared.workspace.clone(),
            summary_models: summary_models.clone(),
            ..Services::default()
        };
        let engine = resolved.engine(&services)?;
        let file = Some(self.path.display().to_string());
        let bootstrap = BootstrapRequest { session_id: self.id.clone(), session_file: file };
        engine.bootstrap(bootstrap).await?;
        inner.engines.note(&self.key, &engine);
        let ledger = resolved.ledger();
        let hooks = ToolHooks::new();
        let guard = ToolGuard::new(GuardConfig::resolve(&resolved.config)?);
        let guard = guard.with_services(&services).install(&hooks, &ledger);
        self.view = None;
        self.setting = Some(Setting {
            model,
            tools,
            watch: EngineWatch::new(&inner.home),
            workspace: shared.workspace,
            _guard: guard,
            resolved,
            ledger,
            engine,
            hooks,
            memory,
            summary_models,
            warnings,
        });
        Ok(())
    }
}

fn unsettled() -> Error {
    Error::new(ErrorKind::Contract, "no model was settled for the session")
        .hint("this is an error of ctx: please report it")
}
