//! One session's view of a memory.

use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{Entry, MemoryStore, RecallRequest, Recollection, Result, SummaryModels};

use super::Memory;
use super::archiving::Queue;
use super::fact_extraction::FactExtraction;
use crate::archive::SegmentMaker;
use crate::facts::{DailyBudget, FactStore};
use ctx_search::spawn_blocking;

/// The long-term memory of one session, as layers see it.
///
/// A separate thread archives messages, so that a request does not wait for the disk;
/// [`flush`](MemoryStore::flush) waits for it.
#[derive(Clone)]
#[must_use]
pub struct SessionMemory {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) memory: Memory,
    pub(super) session: String,
    pub(super) maker: SegmentMaker,
    pub(super) facts: Option<Arc<Mutex<FactStore>>>,
    pub(super) has_rules: bool,
    pub(super) extraction: Option<FactExtraction>,
    pub(super) cross_session: bool,
    owner: Option<Arc<dyn Any + Send + Sync>>,
    pub(super) queue: Mutex<Queue>,
    /// Held while the queue is processed, so that messages stay in order.
    pub(super) working: Mutex<()>,
}

impl SessionMemory {
    /// Returns the memory that `session` archives into and recalls from. `maker` must be for the
    /// same session.
    pub fn new(memory: Memory, session: impl Into<String>, maker: SegmentMaker) -> Self {
        Self {
            shared: Arc::new(Shared {
                memory,
                session: session.into(),
                maker,
                facts: None,
                has_rules: false,
                extraction: None,
                cross_session: false,
                owner: None,
                queue: Mutex::default(),
                working: Mutex::default(),
            }),
        }
    }

    /// Adds facts to recall.
    pub fn with_facts(self, facts: Arc<Mutex<FactStore>>) -> Self {
        self.with(|shared| shared.facts = Some(facts))
    }

    /// Extracts facts from archived messages by rules.
    pub fn with_rules(self) -> Self {
        self.with(|shared| shared.has_rules = true)
    }

    /// Extracts facts from archived messages by models, when [`extract_facts`](MemoryStore::extract_facts) is
    /// called, within the daily budget `cap`. The spent budget is kept in the file `ledger`, shared
    /// by all processes; without a file, it is kept while this memory is open.
    pub fn with_models(
        self,
        models: SummaryModels,
        cap: DailyBudget,
        ledger: Option<PathBuf>,
    ) -> Self {
        self.with(|shared| shared.extraction = Some(FactExtraction::new(models, cap, ledger)))
    }

    /// Whether it recalls from other sessions of the agent. Default: no.
    pub fn with_cross_session(self, cross_session: bool) -> Self {
        self.with(|shared| shared.cross_session = cross_session)
    }

    /// Keeps `owner` alive as long as this memory.
    pub fn with_owner(self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        self.with(|shared| shared.owner = Some(owner))
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        // Just created, so not shared yet; if it were shared, it would stay unchanged.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            change(shared);
        }
        self
    }
}

#[async_trait]
impl MemoryStore for SessionMemory {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        self.shared.push(entries);
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        self.shared.recall(request).await
    }

    async fn flush(&self) -> Result<()> {
        let shared = self.shared.clone();
        spawn_blocking("ctx-memory-flush", move || shared.work()).await?
    }

    /// Computes missing vectors. A failure of the model is reported once, by the first caller.
    async fn maintain(&self) -> Vec<String> {
        let memory = &self.shared.memory;
        if let Err(error) = memory.embed().await {
            memory.inner.warn(format!("recall is lexical only: {error}"));
        }
        memory.take_warnings()
    }

    async fn extract_facts(&self) -> Vec<String> {
        let shared = &self.shared;
        let (Some(extraction), Some(facts)) = (&shared.extraction, &shared.facts) else {
            return Vec::new();
        };
        let session = (!shared.cross_session).then_some(shared.session.as_str());
        extraction.run(facts, session, shared.memory.settings().now()).await
    }
}
