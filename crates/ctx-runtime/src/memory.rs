//! The long-term memory of an agent, from configuration and files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{Counter, Entry, MemoryStore, RecallRequest, Recollection, Result};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::{FactStore, Rules, Scope};
use ctx_memory::{Config, Memory, SessionMemory, Settings, VectorModel};

use crate::Resolved;

/// The facts of an agent, in the folder of its memory.
const FACTS: &str = "knowledge.jsonl";

/// Where a memory is, and what stays of a session in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoryAt {
    /// In this process alone, empty at first: for replays. What was archived is found by the next
    /// recall, so that every run gives the same.
    #[default]
    Nowhere,
    /// In a folder, usually `agents/<agent>/memory/context`.
    Folder(PathBuf),
    /// In a folder that is read and not written: for dry runs.
    ReadOnly(PathBuf),
}

/// An agent's memory.
#[derive(Clone)]
pub struct AgentMemory {
    /// What was said.
    pub memory: Memory,
    /// What is known; absent where it cannot be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
    /// What a person should be told.
    pub warnings: Vec<String>,
    agent: String,
    config: Config,
}

impl AgentMemory {
    /// The memory of an agent in a folder, or in this process alone. Of the messages nothing is read
    /// before they are needed.
    #[must_use]
    pub fn open(
        config: &Config,
        folder: Option<&Path>,
        agent: &str,
        model: Option<VectorModel>,
    ) -> Self {
        let settings = Settings::of(config, model);
        let scope = if config.cross_session { Scope::Agent } else { Scope::Session };
        let mut warnings = Vec::new();
        let (memory, facts) = match folder {
            None => (Memory::in_memory(agent, settings), Some(FactStore::in_memory(scope))),
            Some(folder) => {
                let facts = FactStore::open(folder.join(FACTS), scope);
                let facts = facts.map_err(|e| warnings.push(format!("there are no facts: {e}")));
                (Memory::open(folder, agent, settings), facts.ok())
            }
        };
        let facts = facts.map(|facts| Arc::new(Mutex::new(facts)));
        Self { memory, facts, warnings, agent: agent.to_owned(), config: config.clone() }
    }

    /// What one session archives into it and recalls from it.
    #[must_use]
    pub fn of_session(&self, session: &str, counter: Counter) -> SessionMemory {
        let maker =
            SegmentMaker::new(&*self.agent, session, counter).with_redaction(self.config.redaction);
        let memory = SessionMemory::new(self.memory.clone(), session, maker)
            .with_cross_session(self.config.cross_session);
        let Some(facts) = &self.facts else { return memory };
        let memory = memory.with_facts(facts.clone());
        match self.config.knowledge_extraction {
            true => memory.with_rules(Rules::default()),
            false => memory,
        }
    }
}

impl Resolved {
    /// The memory of a session, where the configuration or the engine wants one. What a person
    /// should be told goes to `warn`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config).
    pub fn memory(
        &self,
        at: &MemoryAt,
        agent: &str,
        session: &str,
        mut warn: impl FnMut(String),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let config = Config::for_engine(&self.config, &self.engine.id)?;
        if !config.enabled {
            return Ok(None);
        }
        let folder = match at {
            MemoryAt::Nowhere => None,
            MemoryAt::Folder(folder) | MemoryAt::ReadOnly(folder) => Some(folder.as_path()),
        };
        let mut memory = AgentMemory::open(&config, folder, agent, None);
        memory.warnings.drain(..).for_each(&mut warn);
        let of_session = memory.of_session(session, self.counter);
        Ok(Some(match at {
            MemoryAt::Nowhere => Arc::new(Settled(of_session)),
            MemoryAt::Folder(_) => Arc::new(of_session),
            MemoryAt::ReadOnly(_) => Arc::new(ReadOnly(of_session)),
        }))
    }
}

/// The name under which a session stands in memory: its own id, else the name of its file.
#[must_use]
pub fn memory_session(id: Option<&str>, file: &Path) -> String {
    match id.filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// A memory that archives before it recalls.
struct Settled(SessionMemory);

#[async_trait]
impl MemoryStore for Settled {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        self.0.archive(entries)
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        self.0.flush().await?;
        self.0.recall(request).await
    }

    async fn flush(&self) -> Result<()> {
        self.0.flush().await
    }
}

/// A memory that archives nothing.
struct ReadOnly(SessionMemory);

#[async_trait]
impl MemoryStore for ReadOnly {
    fn archive(&self, _: &[Arc<Entry>]) -> Result<()> {
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        self.0.recall(request).await
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }
}
