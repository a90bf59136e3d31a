//! One session's view of a memory.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_core::{Entry, MemoryStore, RecallRequest, Recollection, Result, SummaryModels};

use super::Memory;
use super::archiving::Queue;
use super::study::Study;
use crate::apart::apart;
use crate::archive::SegmentMaker;
use crate::facts::{Cap, FactStore, Rules};

/// The long-term memory of one session, as layers see it.
///
/// Messages are archived by a thread of their own, so that a request waits for no disk;
/// [`flush`](MemoryStore::flush) waits for it.
#[derive(Clone)]
pub struct SessionMemory {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) memory: Memory,
    pub(super) session: String,
    pub(super) maker: SegmentMaker,
    pub(super) facts: Option<Arc<Mutex<FactStore>>>,
    pub(super) rules: Option<Rules>,
    pub(super) study: Option<Study>,
    pub(super) cross_session: bool,
    pub(super) queue: Mutex<Queue>,
    /// Held by whoever works on the queue, so that messages stay in their order.
    pub(super) working: Mutex<()>,
}

impl SessionMemory {
    /// What `session` archives into and recalls from `memory`. `maker` is of the same session.
    #[must_use]
    pub fn new(memory: Memory, session: impl Into<String>, maker: SegmentMaker) -> Self {
        Self {
            shared: Arc::new(Shared {
                memory,
                session: session.into(),
                maker,
                facts: None,
                rules: None,
                study: None,
                cross_session: false,
                queue: Mutex::default(),
                working: Mutex::default(),
            }),
        }
    }

    /// With facts to recall as well.
    #[must_use]
    pub fn with_facts(self, facts: Arc<Mutex<FactStore>>) -> Self {
        self.with(|shared| shared.facts = Some(facts))
    }

    /// With facts found by rules in what is archived.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        self.with(|shared| shared.rules = Some(rules))
    }

    /// With facts found by models in what is archived, when [`study`](MemoryStore::study) is called, at
    /// a price of at most `cap` a day. What was spent is kept in the file `purse`, for all processes;
    /// without one, for as long as this memory is open.
    #[must_use]
    pub fn with_models(self, models: SummaryModels, cap: Cap, purse: Option<PathBuf>) -> Self {
        self.with(|shared| shared.study = Some(Study::new(models, cap, purse)))
    }

    /// Whether it recalls what was said in other sessions of the agent. Default: no.
    #[must_use]
    pub fn with_cross_session(self, cross_session: bool) -> Self {
        self.with(|shared| shared.cross_session = cross_session)
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        // It was just made, and is not shared: were it, it would stay as it is.
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            change(shared);
        }
        self
    }

    /// Whose memory it is a part of.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
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
        apart("ctx-memory-flush", move || shared.work()).await?
    }

    async fn tend(&self) -> Vec<String> {
        self.shared.tend().await
    }

    async fn study(&self) -> Vec<String> {
        self.shared.study().await
    }
}

impl Shared {
    /// Makes the vectors that are missing. A model that fails is told of once, by whoever asked it
    /// first.
    async fn tend(&self) -> Vec<String> {
        if let Err(error) = self.memory.embed().await {
            self.memory.inner.warn(format!("words alone decide what is recalled: {error}"));
        }
        self.memory.take_warnings()
    }

    async fn study(&self) -> Vec<String> {
        let (Some(study), Some(facts)) = (&self.study, &self.facts) else { return Vec::new() };
        let session = (!self.cross_session).then_some(self.session.as_str());
        study.run(facts, session, self.memory.settings().now()).await
    }
}
