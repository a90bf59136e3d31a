//! What the sessions of one agent share: its memory and its workspace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_core::{Embedder, Result, SummaryModels, WorkspaceSearch};
use ctx_memory::Config as MemoryConfig;
use ctx_memory::EmbeddingModel;
use ctx_model::TokioTimer;
use ctx_search::VectorModel;
use ctx_session::Home;
use ctx_session::key::FileId;
use tokio::sync::OnceCell;

use super::SessionPool;
use crate::memory::{AgentMemory, workspace_search};
use crate::spec::Resolved;
use crate::sync::{locked, spawn_blocking};

/// What the sessions of each agent share. The first session that needs it opens it. Other sessions
/// of the same agent wait for it; sessions of other agents do not.
#[derive(Default)]
pub(crate) struct AgentResources {
    cells: Mutex<HashMap<FileId, Arc<OnceCell<Resources>>>>,
}

#[derive(Clone)]
pub(super) struct Resources {
    pub(super) memory: AgentMemory,
    pub(super) workspace: Option<Arc<dyn WorkspaceSearch>>,
}

impl AgentResources {
    /// Returns the resources of an agent, and warnings from opening them.
    pub(super) async fn of(
        &self,
        pool: &SessionPool,
        agent: &FileId,
        resolved: &Resolved,
        models: Option<&SummaryModels>,
    ) -> Result<(Resources, Vec<String>)> {
        let cell = locked(&self.cells).entry(agent.clone()).or_default().clone();
        let mut warnings = Vec::new();
        let opened = cell.get_or_try_init(|| async {
            let (home, agent, resolved) = (pool.home.clone(), agent.clone(), resolved.clone());
            let (models, embedder) = (models.cloned(), pool.settings.embedder.clone());
            let open = move || open(&home, &agent, &resolved, models, embedder);
            let (shared, found) = spawn_blocking(open).await?;
            warnings = found;
            Ok::<_, ctx_core::Error>(shared)
        });
        let shared = opened.await?.clone();
        Ok((shared, warnings))
    }

    /// Returns the memory of an agent, if one of its sessions has run.
    pub(crate) fn memory(&self, agent: &FileId) -> Option<AgentMemory> {
        let cells = locked(&self.cells);
        cells.get(agent).and_then(|cell| cell.get()).map(|shared| shared.memory.clone())
    }
}

/// Opens the resources of an agent. Reads files.
fn open(
    home: &Home,
    agent: &FileId,
    resolved: &Resolved,
    models: Option<SummaryModels>,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<(Resources, Vec<String>)> {
    let config = &resolved.config;
    let section = MemoryConfig::for_engine(config, &resolved.engine.id)?;
    let folder = home.memory_dir(agent);
    let mut memory = match (section.enabled, embedder) {
        (true, Some(embedder)) => {
            let section = MemoryConfig { embedding_model: EmbeddingModel::Http, ..section };
            let model = VectorModel::new(embedder, Arc::new(TokioTimer::default()));
            AgentMemory::open(&section, Some(&folder), agent.as_str(), Some(model))
        }
        (true, None) => AgentMemory::configured(config, &section, &folder, agent.as_str()),
        // Only explicit requests use it, so no model is connected.
        (false, _) => AgentMemory::open(&section, Some(&folder), agent.as_str(), None),
    };
    let mut warnings = std::mem::take(&mut memory.warnings);
    let indexes = home.workspaces_dir(agent);
    let warn = |warning| warnings.push(warning);
    let workspace = workspace_search(config, &indexes, resolved.counter, warn);
    Ok((Resources { memory: memory.with_models(models), workspace }, warnings))
}
