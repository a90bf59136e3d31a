//! Memories shared by the sessions of one process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use ctx_config::Models;
use ctx_core::{MemoryStore, Result, SummaryModels};
use ctx_engine_registry::Registry;
use ctx_memory::Config;

use super::{AgentMemory, MemoryLocation, ReadOnlyMemory};
use crate::spec::Resolved;
use crate::sync::locked;

/// The open memories of a process. Sessions of one agent with the same configuration share its
/// index, vectors, facts and embedding model; the others find at once what one session archives. A
/// memory that no session uses is closed.
#[derive(Debug, Default)]
pub struct SharedMemories {
    open: Mutex<Vec<Weak<OpenMemory>>>,
}

/// A memory with its folder, its agent and their configuration.
struct OpenMemory {
    key: (PathBuf, String, Config, Models),
    memory: AgentMemory,
}

impl SharedMemories {
    /// Returns the memory of a session, if the configuration or the engine enables it. It is shared
    /// between sessions. `models` extract facts from archived messages, in addition to rules.
    /// Warnings for the user go to `warn`. It may load a model and read files: run it on a blocking
    /// thread.
    ///
    /// An [`InProcess`](MemoryLocation::InProcess) memory calls no model, so each run of a replay
    /// gives the same result.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config).
    pub fn of_session(
        &self,
        resolved: &Resolved,
        at: &MemoryLocation,
        (agent, session): (&str, &str),
        models: Option<&SummaryModels>,
        warn: impl FnMut(String),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let config = Config::for_engine(&resolved.config, &resolved.engine.id)?;
        if !config.enabled {
            return Ok(None);
        }
        let (registry, names) = (Registry::collect()?, (agent, session));
        if let Some(memory) = resolved.linked_memory(&registry, at, names, models, (None, None))? {
            return Ok(Some(memory));
        }
        let memory = match at {
            MemoryLocation::InProcess => AgentMemory::open(&config, None, agent, None),
            MemoryLocation::ReadOnly(folder) => {
                AgentMemory::configured(&resolved.config, &config, folder, agent).read_only()
            }
            MemoryLocation::Folder(folder) => {
                let opened = self.open_or_share(resolved, &config, folder, agent)?;
                opened.memory.warnings.iter().cloned().for_each(warn);
                let memory = opened.memory.clone().with_models(models.cloned());
                let store = memory.of_session(session, resolved.counter);
                return Ok(Some(Arc::new(store.with_owner(opened))));
            }
        };
        memory.warnings.iter().cloned().for_each(warn);
        let memory = memory.of_session(session, resolved.counter);
        Ok(Some(match at {
            MemoryLocation::InProcess => Arc::new(memory),
            _ => Arc::new(ReadOnlyMemory(Arc::new(memory))),
        }))
    }

    fn open_or_share(
        &self,
        resolved: &Resolved,
        config: &Config,
        folder: &Path,
        agent: &str,
    ) -> Result<Arc<OpenMemory>> {
        let models: Models = resolved.config.section()?;
        let key = (folder.to_owned(), agent.to_owned(), config.clone(), models);
        // The lock is held while opening, so that a second session waits for the same memory.
        let mut open = locked(&self.open);
        open.retain(|opened| opened.strong_count() > 0);
        let mut known = open.iter().filter_map(Weak::upgrade);
        if let Some(opened) = known.find(|opened| opened.key == key) {
            return Ok(opened);
        }
        let memory = AgentMemory::configured(&resolved.config, config, folder, agent);
        let opened = Arc::new(OpenMemory { key, memory });
        open.push(Arc::downgrade(&opened));
        Ok(opened)
    }
}
