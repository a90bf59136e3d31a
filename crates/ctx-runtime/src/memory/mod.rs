//! The long-term memory of an agent, from configuration and files.

mod shared;
mod worker;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{
    Counter, Embedder, Entry, MemoryStore, RecallRequest, Recollection, Result, SummaryModels,
    Timestamp,
};
use ctx_engine_registry::{MemoryContext, Registry};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::facts::{FactStore, LearnOutcome, Scope, SourceMessage, find_facts};
use ctx_memory::{Config, EmbeddingModel, Memory, MemorySettings, SessionMemory, Vectors};
use ctx_search::vectors::Embedding;
use ctx_search::{HashEmbedder, Segment, VectorModel};
use ctx_shared::HostMemory;

use crate::models::vector_model;
use crate::spec::Resolved;
use crate::sync::locked;

pub use shared::SharedMemories;
pub use worker::MemoryWorker;
pub use workspace::workspace_model;

pub(crate) use workspace::workspace_search;

/// Creates the memory of a session.
pub(crate) type MakeMemory =
    Arc<dyn Fn(&MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>> + Send + Sync>;

/// The file with the facts of an agent, in its memory folder.
pub(crate) const FACTS_FILE: &str = "knowledge.jsonl";

/// The file with the costs of models that extract facts, beside the facts.
const BUDGET_FILE: &str = "knowledge-budget.json";

/// Number of messages held in RAM at once when a whole session is archived.
pub(crate) const BATCH_SIZE: usize = 256;

/// Where a memory is, and whether it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemoryLocation {
    /// In this process only, empty at first: for replays. A recall waits until all archived
    /// messages can be found, so every run gives the same result.
    #[default]
    InProcess,
    /// In a folder, usually `agents/<agent>/memory/context`.
    Folder(PathBuf),
    /// In a folder that is only read: for dry runs.
    ReadOnly(PathBuf),
}

/// An agent's memory.
#[derive(Clone)]
#[must_use]
pub struct AgentMemory {
    /// The archived messages.
    pub memory: Memory,
    /// The facts; absent if they cannot be read.
    pub facts: Option<Arc<Mutex<FactStore>>>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    agent: String,
    config: Config,
    folder: Option<PathBuf>,
    models: Option<SummaryModels>,
}

impl AgentMemory {
    /// Opens the memory of an agent in a folder, or in this process only. Messages are read when
    /// first needed. If the configured embedding model is missing (`model` is `None`), hashes are
    /// used. But if the folder has vectors of a model, these are kept until it is available again,
    /// and until then search is lexical.
    pub fn open(
        config: &Config,
        folder: Option<&Path>,
        agent: &str,
        model: Option<VectorModel>,
    ) -> Self {
        let is_missing = config.embedding_model != EmbeddingModel::Hash && model.is_none();
        let mut settings = MemorySettings::of(config, model);
        if is_missing && folder.is_some_and(has_model_vectors) {
            settings.vectors = Vectors::None;
        }
        let scope = if config.cross_session { Scope::Agent } else { Scope::Session };
        let mut warnings = Vec::new();
        let (memory, facts) = match folder {
            None => (Memory::in_memory(settings), Some(FactStore::in_memory(scope))),
            Some(folder) => {
                let facts = FactStore::open(folder.join(FACTS_FILE), scope);
                let facts = facts.map_err(|e| warnings.push(format!("facts are unavailable: {e}")));
                warnings.extend(facts.as_ref().ok().and_then(damage_warning));
                (Memory::open(folder, settings), facts.ok())
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

    /// Like [`open`](Self::open), with the configured embedding model. If that is unavailable, a
    /// warning is added.
    pub fn configured(
        config: &ctx_config::Config,
        section: &Config,
        folder: &Path,
        agent: &str,
    ) -> Self {
        let (model, warning) = match vector_model(config, section) {
            Ok(model) => (model, None),
            Err(error) => {
                let warning = "the embedding model is unavailable; using hash instead";
                (None, Some(format!("{warning}: {}", error.told())))
            }
        };
        let mut memory = Self::open(section, Some(folder), agent, model);
        memory.warnings.extend(warning);
        memory
    }

    /// Returns its files for a shared store, if it is on disk and used by turns.
    pub(crate) fn on_disk(&self) -> Option<HostMemory> {
        let folder = self.folder.clone().filter(|_| self.config.enabled)?;
        Some(HostMemory { folder, memory: self.memory.clone(), facts: self.facts.clone() })
    }

    /// Adds models that extract facts from archived messages, when
    /// [`extract_facts`](MemoryStore::extract_facts) is called.
    pub fn with_models(self, models: Option<SummaryModels>) -> Self {
        Self { models, ..self }
    }

    /// Opens the archived messages again, without writing to their files: for dry runs.
    pub fn read_only(self) -> Self {
        let Some(folder) = &self.folder else { return self };
        let mut settings = self.memory.settings().clone();
        settings.read_only = true;
        // Nothing is read yet: a memory is loaded at its first use.
        let memory = Memory::open(folder, settings);
        Self { memory, ..self }
    }

    /// Returns the part of the memory that one session archives into and recalls from.
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
        // Rules need no model, and run immediately.
        let memory = memory.with_rules();
        match &self.models {
            Some(models) => {
                let budget = self.folder.as_ref().map(|folder| folder.join(BUDGET_FILE));
                memory.with_models(models.clone(), self.config.knowledge_budget, budget)
            }
            None => memory,
        }
    }

    /// Archives messages of a session durably and extracts their facts, without a queue. Waits for
    /// the disk.
    pub(crate) fn archive(
        &self,
        session: &str,
        counter: Counter,
        messages: &[Arc<Entry>],
        now: Timestamp,
    ) -> Result<()> {
        let maker =
            SegmentMaker::new(&*self.agent, session, counter).with_redaction(self.config.redaction);
        for messages in messages.chunks(BATCH_SIZE) {
            let mut segments = Vec::with_capacity(messages.len());
            for message in messages {
                segments.extend(maker.of_entry(message, now)?);
            }
            self.memory.add(&segments)?;
            learn_facts(self.facts.as_ref(), &self.config, &segments)?;
            // A batch is on disk before the next one is read.
            self.memory.flush()?;
        }
        Ok(())
    }
}

/// Extracts the facts in segments by rules, if enabled. Known facts are not added again.
pub(crate) fn learn_facts(
    facts: Option<&Arc<Mutex<FactStore>>>,
    config: &Config,
    segments: &[Segment],
) -> Result<Option<LearnOutcome>> {
    let Some(facts) = facts.filter(|_| config.knowledge_extraction) else { return Ok(None) };
    let found = find_facts(&segments.iter().map(SourceMessage::of).collect::<Vec<_>>());
    if found.is_empty() {
        return Ok(None);
    }
    locked(facts).learn(found).map(Some)
}

/// Whether a folder contains vectors of a model other than hashes.
fn has_model_vectors(folder: &Path) -> bool {
    let made_by = Embedding::beside(&folder.join("vectors.bin"));
    made_by.is_some_and(|made_by| made_by.name != HashEmbedder.name())
}

impl Resolved {
    /// Returns the memory of a session from the host, or from the crate in `plugins.slots.memory`,
    /// if either provides one.
    pub(crate) fn linked_memory(
        &self,
        registry: &Registry,
        at: &MemoryLocation,
        (agent, session): (&str, &str),
        models: Option<&SummaryModels>,
        (make, embedder): (Option<&MakeMemory>, Option<&Arc<dyn Embedder>>),
    ) -> Result<Option<Arc<dyn MemoryStore>>> {
        let folder = match at {
            MemoryLocation::InProcess => None,
            MemoryLocation::Folder(folder) | MemoryLocation::ReadOnly(folder) => Some(&**folder),
        };
        let (config, counter) = (&self.config, self.counter);
        let of = MemoryContext { config, agent, session, folder, counter, models, embedder };
        let memory = make.map_or_else(|| registry.memory(&of), |make| make(&of).map(Some))?;
        Ok(memory.map(|memory| match at {
            MemoryLocation::ReadOnly(_) => Arc::new(ReadOnlyMemory(memory)) as Arc<dyn MemoryStore>,
            _ => memory,
        }))
    }
}

/// Returns the name of a session in memory: its own id, else the name of its file.
pub fn memory_session(id: Option<&str>, file: &Path) -> String {
    match id.filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Returns the warning for damaged facts.
fn damage_warning(facts: &FactStore) -> Option<String> {
    let lines = match facts.damaged() {
        0 => return None,
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    };
    let path = facts.path().display();
    Some(format!("{lines} of the facts ({path}) cannot be read and are ignored"))
}

/// A memory that archives nothing.
struct ReadOnlyMemory(Arc<dyn MemoryStore>);

#[async_trait]
impl MemoryStore for ReadOnlyMemory {
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
