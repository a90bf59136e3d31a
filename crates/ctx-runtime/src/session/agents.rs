//! What the sessions of one agent share: its memory and its workspace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_core::{Counter, Embedder, Result, SummaryModels, WorkspaceSearch};
use ctx_engine_registry::Config;
use ctx_layers::memory::Config as MemoryConfig;
use ctx_memory::{EmbeddingModel, VectorModel};
use ctx_model::TokioTimer;
use ctx_session::key::FileId;
use ctx_session::paths::Home;
use tokio::sync::OnceCell;

use super::{blocking, locked};
use crate::runtime::Inner;
use crate::{AgentMemory, Resolved, workspace_search};

/// What the sessions of each agent share. It is opened once, by the first that needs it; others of the
/// same agent wait for that, and those of other agents do not.
#[derive(Default)]
pub(crate) struct Agents {
    cells: Mutex<HashMap<FileId, Arc<OnceCell<Shared>>>>,
}

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) memory: AgentMemory,
    pub(super) workspace: Option<Arc<dyn WorkspaceSearch>>,
}

impl Agents {
    /// What the sessions of an agent share, and what a person should be told of its opening.
    pub(super) async fn of(
        &self,
        inner: &Inner,
        agent: &FileId,
        resolved: &Resolved,
        models: Option<&SummaryModels>,
    ) -> Result<(Shared, Vec<String>)> {
        let cell = locked(&self.cells).entry(agent.clone()).or_default().clone();
        let mut said = Vec::new();
        let opened = cell.get_or_try_init(|| async {
            let opening = Opening {
                home: inner.home.clone(),
                agent: agent.clone(),
                config: resolved.config.clone(),
                engine: resolved.engine.id.clone(),
                counter: resolved.counter,
                models: models.cloned(),
                embedder: inner.settings.embedder.clone(),
            };
            let (shared, warnings) = blocking(move || opening.open()).await?;
            said = warnings;
            Ok::<_, ctx_core::Error>(shared)
        });
        let shared = opened.await?.clone();
        Ok((shared, said))
    }

    /// The memory of an agent, where a session of it was run.
    pub(crate) fn memory(&self, agent: &FileId) -> Option<AgentMemory> {
        let cells = locked(&self.cells);
        cells.get(agent).and_then(|cell| cell.get()).map(|shared| shared.memory.clone())
    }
}

/// What is opened, and by which configuration.
struct Opening {
    home: Home,
    agent: FileId,
    config: Config,
    engine: String,
    counter: Counter,
    models: Option<SummaryModels>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Opening {
    /// Opens it. It reads files.
    fn open(self) -> Result<(Shared, Vec<String>)> {
        let Self { home, agent, config, engine, counter, models, embedder } = self;
        let section = MemoryConfig::for_engine(&config, &engine)?;
        let folder = home.memory_dir(&agent);
        let mut memory = match (section.enabled, embedder) {
            (true, Some(embedder)) => {
                let section = MemoryConfig { embedding_model: EmbeddingModel::Http, ..section };
                let model = VectorModel::new(embedder, Arc::new(TokioTimer::default()));
                AgentMemory::open(&section, Some(&folder), agent.as_str(), Some(model))
            }
            (true, None) => AgentMemory::configured(&config, &section, &folder, agent.as_str()),
            // Nothing but what is asked for by hand: no model is worth connecting to.
            (false, _) => AgentMemory::open(&section, Some(&folder), agent.as_str(), None),
        };
        let mut warnings = std::mem::take(&mut memory.warnings);
        let indexes = home.workspaces_dir(&agent);
        let mut said = Vec::new();
        let workspace = workspace_search(&config, &indexes, counter, |words| said.push(words));
        warnings.extend(said);
        Ok((Shared { memory: memory.with_models(models), workspace }, warnings))
    }
}
