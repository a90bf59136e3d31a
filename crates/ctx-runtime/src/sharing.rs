//! Memories that the sessions of one process share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use ctx_core::{Entry, MemoryStore, RecallRequest, Recollection, Result, SummaryModels};
use ctx_engine_registry::{Models, Registry};
use ctx_memory::{Config, SessionMemory};

use crate::{AgentMemory, MemoryAt, Resolved};

/// The memories that are open in a process. Sessions of one agent that are configured alike share
/// its index, its vectors, its facts and the model that makes vectors; what one archives the others
/// find at once. A memory that no session uses is let go of.
#[derive(Debug, Default)]
pub struct Memories {
    open: Mutex<Vec<Weak<Opened>>>,
}

/// A memory, and what it was opened with.
struct Opened {
    folder: PathBuf,
    agent: String,
    config: Config,
    models: Models,
    memory: AgentMemory,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Memories {
    /// As [`Resolved::memory`], for one of many sessions. It may load a model and read files: not for
    /// a thread that others wait for.
    ///
    /// # Errors
    ///
    /// Those of [`Resolved::memory`].
    pub fn of_session(
        &self,
        resolved: &Resolved,
        at: &MemoryAt,
        (agent, session): (&str, &str),
        models: Option<&SummaryModels>,
        warn: impl FnMut(String),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let MemoryAt::Folder(folder) = at else {
            return resolved.memory(at, agent, session, models, warn);
        };
        let config = Config::for_engine(&resolved.config, &resolved.engine.id)?;
        if !config.enabled {
            return Ok(None);
        }
        let (registry, names) = (Registry::collect()?, (agent, session));
        if let Some(memory) = resolved.linked_memory(&registry, at, names, models, (None, None))? {
            return Ok(Some(memory));
        }
        let opened = self.opened(resolved, &config, folder, agent)?;
        opened.memory.warnings.iter().cloned().for_each(warn);
        let memory = opened.memory.clone().with_models(models.cloned());
        let store = memory.of_session(session, resolved.counter);
        Ok(Some(Arc::new(Shared { store, _opened: opened })))
    }

    fn opened(
        &self,
        resolved: &Resolved,
        config: &Config,
        folder: &Path,
        agent: &str,
    ) -> Result<Arc<Opened>> {
        let models: Models = resolved.config.section()?;
        // Held while one is opened: a second session waits for it instead of opening another.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|opened| opened.strong_count() > 0);
        let is_it = |opened: &Arc<Opened>| {
            opened.folder == folder
                && opened.agent == agent
                && opened.config == *config
                && opened.models == models
        };
        if let Some(opened) = open.iter().filter_map(Weak::upgrade).find(is_it) {
            return Ok(opened);
        }
        let memory = AgentMemory::configured(&resolved.config, config, folder, agent);
        let (folder, agent) = (folder.to_owned(), agent.to_owned());
        let opened = Arc::new(Opened { folder, agent, config: config.clone(), models, memory });
        open.push(Arc::downgrade(&opened));
        Ok(opened)
    }
}

/// What one session sees of a memory that others use as well.
struct Shared {
    store: SessionMemory,
    _opened: Arc<Opened>,
}

#[async_trait]
impl MemoryStore for Shared {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        self.store.archive(entries)
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        self.store.recall(request).await
    }

    async fn flush(&self) -> Result<()> {
        self.store.flush().await
    }

    async fn tend(&self) -> Vec<String> {
        self.store.tend().await
    }

    async fn study(&self) -> Vec<String> {
        self.store.study().await
    }
}
