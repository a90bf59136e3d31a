//! The long-term memory of an agent, from configuration and files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{
    Counter, Embedder, Entry, MemoryStore, RecallRequest, Recollection, Result, SummaryModels,
    Timestamp,
};
use ctx_engine_registry::{MemoryContext, Registry};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::{FactStore, Learned, Rules, Said, Scope};
use ctx_memory::vectors::Embedding;
use ctx_memory::{
    Config, EmbeddingModel, HashEmbedder, Memory, Segment, SessionMemory, Settings, VectorModel,
    Vectors,
};

use crate::runtime::MakeMemory;
use crate::{Resolved, vector_model};

/// The facts of an agent, in the folder of its memory.
pub(crate) const FACTS: &str = "knowledge.jsonl";

/// What models cost that look for facts, beside them.
const BUDGET: &str = "knowledge-budget.json";

/// So many messages are in memory at once when a whole session is archived.
pub(crate) const BATCH: usize = 256;

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
    folder: Option<PathBuf>,
    models: Option<SummaryModels>,
}

impl AgentMemory {
    /// The memory of an agent in a folder, or in this process alone. Of the messages nothing is read
    /// before they are needed. Where the configuration names a model for vectors and `model` is none,
    /// hashes serve for it; vectors of a model that are there already stay for when it is back.
    #[must_use]
    pub fn open(
        config: &Config,
        folder: Option<&Path>,
        agent: &str,
        model: Option<VectorModel>,
    ) -> Self {
        let is_missing = config.embedding_model != EmbeddingModel::Hash && model.is_none();
        let mut settings = Settings::of(config, model);
        if is_missing && folder.is_some_and(holds_vectors_of_a_model) {
            settings.vectors = Vectors::None;
        }
        let scope = if config.cross_session { Scope::Agent } else { Scope::Session };
        let mut warnings = Vec::new();
        let (memory, facts) = match folder {
            None => (Memory::in_memory(agent, settings), Some(FactStore::in_memory(scope))),
            Some(folder) => {
                let facts = FactStore::open(folder.join(FACTS), scope);
                let facts = facts.map_err(|e| warnings.push(format!("there are no facts: {e}")));
                warnings.extend(facts.as_ref().ok().and_then(warning_of_damage));
                (Memory::open(folder, agent, settings), facts.ok())
            }
        };
        let facts = facts.map(|facts| Arc::new(Mutex::new(facts)));
        Self {
            memory,
            facts,
            warnings,
            agent: agent.to_owned(),
            config: config.clone(),
            folder: folder.map(Path::to_owned),
            models: None,
        }
    }

    /// As [`open`](Self::open), with the model for vectors that the configuration names. One that
    /// cannot be had is told of.
    #[must_use]
    pub fn configured(
        config: &ctx_engine_registry::Config,
        section: &Config,
        folder: &Path,
        agent: &str,
    ) -> Self {
        let (model, told) = match vector_model(config, section) {
            Ok(model) => (model, None),
            Err(error) => {
                let told = "the embedding model is left out and hash serves for it";
                (None, Some(format!("{told}: {}", error.told())))
            }
        };
        let mut memory = Self::open(section, Some(folder), agent, model);
        memory.warnings.extend(told);
        memory
    }

    /// The same, with models that look for facts in what is archived, when they are told to.
    #[must_use]
    pub fn with_models(self, models: Option<SummaryModels>) -> Self {
        Self { models, ..self }
    }

    /// The same, with files that are read and not written: for dry runs.
    #[must_use]
    pub fn read_only(self) -> Self {
        let Some(folder) = &self.folder else { return self };
        let mut settings = self.memory.settings().clone();
        settings.read_only = true;
        // Nothing was read yet: a memory begins with its first use.
        let memory = Memory::open(folder, &*self.agent, settings);
        Self { memory, ..self }
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
        if !self.config.knowledge_extraction {
            return memory;
        }
        // Rules look at once, and whatever becomes of the model.
        let memory = memory.with_rules(Rules::default());
        match &self.models {
            Some(models) => {
                let purse = self.folder.as_ref().map(|folder| folder.join(BUDGET));
                memory.with_models(models.clone(), self.config.knowledge_budget, purse)
            }
            None => memory,
        }
    }

    /// Archives messages of a session durably, and learns the facts in them, without a queue. It
    /// waits for the disk.
    pub(crate) fn keep(
        &self,
        session: &str,
        counter: Counter,
        messages: &[Arc<Entry>],
        now: Timestamp,
    ) -> Result<()> {
        let maker =
            SegmentMaker::new(&*self.agent, session, counter).with_redaction(self.config.redaction);
        for messages in messages.chunks(BATCH) {
            let mut segments = Vec::with_capacity(messages.len());
            for message in messages {
                segments.extend(maker.of_entry(message, now)?);
            }
            self.memory.add(&segments)?;
            learn(self.facts.as_ref(), &self.config, &segments)?;
            // What was archived is on disk before the next batch is read.
            self.memory.flush()?;
        }
        Ok(())
    }
}

/// Learns the facts in segments, where that is wanted. Those that are known say nothing new.
pub(crate) fn learn(
    facts: Option<&Arc<Mutex<FactStore>>>,
    config: &Config,
    segments: &[Segment],
) -> Result<Option<Learned>> {
    let Some(facts) = facts.filter(|_| config.knowledge_extraction) else { return Ok(None) };
    let ids: Vec<String> = segments.iter().map(|segment| segment.id.to_string()).collect();
    let said = segments.iter().zip(&ids).map(|(segment, id)| Said::of(segment, id));
    let found = Rules::default().find(&said.collect::<Vec<_>>());
    if found.is_empty() {
        return Ok(None);
    }
    crate::session::locked(facts).learn(found).map(Some)
}

/// Whether a folder holds vectors that hashes did not make.
fn holds_vectors_of_a_model(folder: &Path) -> bool {
    let made_by = Embedding::beside(&folder.join("vectors.bin"));
    made_by.is_some_and(|made_by| made_by.name != HashEmbedder.name())
}

impl Resolved {
    /// The memory of a session, where the configuration or the engine wants one. `models` look for
    /// facts in what it archives, besides rules. What a person should be told goes to `warn`.
    ///
    /// A memory that is [`Nowhere`](MemoryAt::Nowhere) asks no model: each run of a replay gives the
    /// same.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config).
    pub fn memory(
        &self,
        at: &MemoryAt,
        agent: &str,
        session: &str,
        models: Option<&SummaryModels>,
        mut warn: impl FnMut(String),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let config = Config::for_engine(&self.config, &self.engine.id)?;
        if !config.enabled {
            return Ok(None);
        }
        let registry = Registry::collect()?;
        let names = (agent, session);
        if let Some(memory) = self.linked_memory(&registry, at, names, models, (None, None))? {
            return Ok(Some(memory));
        }
        let mut memory = match at {
            MemoryAt::Nowhere => AgentMemory::open(&config, None, agent, None),
            MemoryAt::Folder(folder) => {
                AgentMemory::configured(&self.config, &config, folder, agent)
                    .with_models(models.cloned())
            }
            MemoryAt::ReadOnly(folder) => {
                AgentMemory::configured(&self.config, &config, folder, agent).read_only()
            }
        };
        memory.warnings.drain(..).for_each(&mut warn);
        let of_session = memory.of_session(session, self.counter);
        Ok(Some(match at {
            MemoryAt::Nowhere => Arc::new(Settled(of_session)),
            MemoryAt::Folder(_) => Arc::new(of_session),
            MemoryAt::ReadOnly(_) => Arc::new(ReadOnly(Arc::new(of_session))),
        }))
    }

    /// The memory of a session by the host, or by the crate that `plugins.slots.memory` names, where
    /// either brings one.
    pub(crate) fn linked_memory(
        &self,
        registry: &Registry,
        at: &MemoryAt,
        (agent, session): (&str, &str),
        models: Option<&SummaryModels>,
        (make, embedder): (Option<&MakeMemory>, Option<&Arc<dyn Embedder>>),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let folder = match at {
            MemoryAt::Nowhere => None,
            MemoryAt::Folder(folder) | MemoryAt::ReadOnly(folder) => Some(&**folder),
        };
        let (config, counter) = (&self.config, self.counter);
        let of = MemoryContext { config, agent, session, folder, counter, models, embedder };
        let memory = make.map_or_else(|| registry.memory(&of), |make| make(&of).map(Some))?;
        Ok(memory.map(|memory| match at {
            MemoryAt::ReadOnly(_) => Arc::new(ReadOnly(memory)) as Arc<dyn MemoryStore>,
            _ => memory,
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

/// What a person is told of facts that are damaged.
fn warning_of_damage(facts: &FactStore) -> Option<String> {
    let lines = match facts.damaged() {
        0 => return None,
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    };
    let path = facts.path().display();
    Some(format!("{lines} of the facts ({path}) cannot be read: what they say is not known"))
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
struct ReadOnly(Arc<dyn MemoryStore>);

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
