//! One session's view of a memory.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ctx_core::{
    Entry, MemoryStore, Passage, RecallRequest, RecalledFact, Recollection, Result, SummaryModels,
    Timestamp,
};

use super::Memory;
use super::excerpt::excerpt;
use super::study::Study;
use crate::apart::apart;
use crate::archive::SegmentMaker;
use crate::facts::{Candidate, Cap, FactQuery, FactStore, Rules, Said};
use crate::search::fit;
use crate::{Hit, Query, Segment, SegmentId};

/// So many messages wait to be archived; one more, and whoever brings it helps.
const QUEUE: usize = 1_024;

/// How well a query fits is told by its best hits.
const JUDGED: usize = 8;

/// A search is for so many more than what is wanted, for those that the model sees anyway.
const SPARE: usize = 32;

/// No more than this many hits are looked through.
const MOST_HITS: usize = 1_000;

/// The long-term memory of one session, as layers see it.
///
/// Messages are archived by a thread of their own, so that a request waits for no disk;
/// [`flush`](MemoryStore::flush) waits for it.
#[derive(Clone)]
pub struct SessionMemory {
    shared: Arc<Shared>,
}

struct Shared {
    memory: Memory,
    session: String,
    maker: SegmentMaker,
    facts: Option<Arc<Mutex<FactStore>>>,
    rules: Option<Rules>,
    study: Option<Study>,
    cross_session: bool,
    queue: Mutex<Queue>,
    /// Held by whoever works on the queue, so that messages stay in their order.
    working: Mutex<()>,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Arc<Entry>>,
    has_worker: bool,
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
        let shared = &self.shared;
        let waiting = {
            let mut queue = shared.queue();
            queue.entries.extend(entries.iter().cloned());
            let waiting = queue.entries.len();
            if waiting > 0 && !queue.has_worker && waiting <= QUEUE {
                let worker = shared.clone();
                let name = "ctx-memory-archive".to_owned();
                let work = move || worker.work(Until::Empty);
                queue.has_worker = std::thread::Builder::new().name(name).spawn(work).is_ok();
            }
            waiting
        };
        if waiting > QUEUE {
            shared.work(Until::Room);
        }
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        self.shared.recall(request).await
    }

    async fn flush(&self) -> Result<()> {
        let shared = self.shared.clone();
        let work = move || {
            shared.work(Until::Empty);
            shared.memory.flush()
        };
        apart("ctx-memory-flush", work).await?
    }

    async fn tend(&self) -> Vec<String> {
        self.shared.tend().await
    }

    async fn study(&self) -> Vec<String> {
        self.shared.study().await
    }
}

/// When whoever works on the queue stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Nothing waits any more.
    Empty,
    /// Half of the queue is free.
    Room,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Archives what waits. A message that fails is told of, and stays in its transcript.
    fn work(&self, until: Until) {
        let _working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.memory.settings().now();
        let mut learned = Vec::new();
        loop {
            let entry = {
                let mut queue = self.queue();
                if until == Until::Room && queue.entries.len() <= QUEUE / 2 {
                    break;
                }
                let Some(entry) = queue.entries.pop_front() else {
                    queue.has_worker = false;
                    break;
                };
                entry
            };
            match self.take_in(&entry, now) {
                Ok(candidates) => learned.extend(candidates),
                Err(error) => {
                    self.memory.inner.warn(format!("a message is not archived: {error}"));
                }
            }
        }
        self.learn(learned);
        if until == Until::Room {
            return;
        }
        if let Err(error) = self.memory.flush() {
            self.memory.inner.warn(format!("the archive is kept in memory for now: {error}"));
        }
    }

    /// Archives a message, and gives the facts in it, where it is new.
    fn take_in(&self, entry: &Entry, now: Timestamp) -> Result<Vec<Candidate>> {
        let Some(segment) = self.maker.of_entry(entry, now)? else { return Ok(Vec::new()) };
        let facts = self.rules.as_ref().map(|rules| {
            let id = segment.id.to_string();
            rules.find(&[Said::of(&segment, &id)])
        });
        let segment = [segment];
        let added = self.memory.add(&segment)?;
        if added == 0 {
            return Ok(Vec::new());
        }
        if let (Some(study), [segment]) = (&self.study, &segment) {
            study.push(segment);
        }
        Ok(facts.unwrap_or_default())
    }

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

    fn learn(&self, candidates: Vec<Candidate>) {
        let Some(facts) = self.facts.as_ref().filter(|_| !candidates.is_empty()) else { return };
        let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = facts.learn(candidates) {
            self.memory.inner.warn(format!("facts were not learned: {error}"));
        }
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        let mut found = Recollection::default();
        let vector = match self.memory.vector_of(&request.query).await {
            Ok(vector) => vector,
            Err(error) => {
                found.warnings.push(format!("words alone decide what is recalled: {error}"));
                None
            }
        };
        found.passages = self.passages(&request, vector.as_deref())?;
        found.facts = self.facts(&request, &mut found.warnings);
        found.warnings.extend(self.memory.take_warnings());
        Ok(found)
    }

    /// What was said that fits, and what was said next to it.
    fn passages(&self, request: &RecallRequest, vector: Option<&[f32]>) -> Result<Vec<Passage>> {
        let hits = self.hits(request, vector)?;
        let best = hits.first().map_or(0.0, |(hit, _)| hit.score);
        let fits = self.fit(request, &hits);
        let mut hits: Vec<_> = hits
            .into_iter()
            .map(|(hit, segment)| (passage_score(fits, hit.score, best), segment))
            .collect();
        hits.retain(|(score, _)| *score >= request.min_score);
        let mut known: HashSet<SegmentId> = hits.iter().map(|(_, segment)| segment.id).collect();
        let mut adjacent = Vec::new();
        for (score, segment) in &hits {
            let mut next = self.memory.neighbours(segment.id)?;
            next.retain(|id| known.insert(*id));
            let found = self.memory.get(&next)?.into_iter().flatten();
            let unseen = found.filter(|segment| !is_visible(request, segment));
            adjacent.extend(unseen.map(|segment| passage(segment, *score, true)));
        }
        let needs = self.memory.inner.live().index.needs(&request.query);
        let passages = hits.into_iter().map(|(score, segment)| {
            let content = excerpt(&segment, &needs);
            passage(Segment { content, ..segment }, score, false)
        });
        Ok(passages.chain(adjacent).collect())
    }

    /// The best hits that the model does not see anyway.
    fn hits(&self, request: &RecallRequest, vector: Option<&[f32]>) -> Result<Vec<(Hit, Segment)>> {
        let mut limit = request.passages.saturating_add(SPARE).min(MOST_HITS);
        loop {
            let session = (!self.cross_session).then_some(self.session.as_str());
            let query = Query { text: &request.query, session, limit, now: request.now };
            let hits = self.memory.search(&query, vector)?;
            let were = hits.len();
            let ids: Vec<_> = hits.iter().map(|hit| hit.id).collect();
            let mut found: Vec<_> = hits
                .into_iter()
                .zip(self.memory.get(&ids)?)
                .filter_map(|(hit, segment)| Some((hit, segment?)))
                .filter(|(_, segment)| !is_visible(request, segment))
                .collect();
            if found.len() >= request.passages || were < limit || limit == MOST_HITS {
                found.truncate(request.passages);
                return Ok(found);
            }
            limit = (limit * 4).min(MOST_HITS);
        }
    }

    /// How well the archive fits the query at all, 0 to 1.
    fn fit(&self, request: &RecallRequest, hits: &[(Hit, Segment)]) -> f32 {
        let needs = self.memory.inner.live().index.needs(&request.query);
        let by_words = |(hit, segment): &(Hit, Segment)| {
            fit(&needs, segment).max(fit_of_cosine(hit, self.memory.settings()))
        };
        hits.iter().take(JUDGED).map(by_words).fold(0.0, f32::max)
    }

    fn facts(&self, request: &RecallRequest, warnings: &mut Vec<String>) -> Vec<RecalledFact> {
        let Some(facts) = &self.facts else { return Vec::new() };
        let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = facts.refresh() {
            warnings.push(format!("facts may be old: {error}"));
        }
        let query = FactQuery {
            session: (!self.cross_session).then_some(self.session.as_str()),
            limit: request.facts,
            ..FactQuery::new(&request.query)
        };
        let recalled = |hit: crate::facts::FactHit<'_>| RecalledFact {
            kind: hit.fact.kind.name().to_owned(),
            text: hit.fact.content.clone(),
            score: hit.score,
            entries: hit.fact.source_entry_ids.iter().map(|id| id.as_str().into()).collect(),
        };
        facts.search(&query).into_iter().map(recalled).collect()
    }
}

fn is_visible(request: &RecallRequest, segment: &Segment) -> bool {
    segment.entry_id.as_deref().is_some_and(|id| request.visible.contains(id))
}

/// A passage is as good as the best one fits the query, less what it is worse than that: where the
/// archive is about the query, passages that are a fourth as good come back as well.
fn passage_score(fits: f32, score: f32, best: f32) -> f32 {
    let share = if best > 0.0 { (score / best).clamp(0.0, 1.0) } else { 0.0 };
    fits * share.sqrt().sqrt()
}

/// Texts that mean the same are this near by the models that are used for this, at least.
const NEAR: f32 = 0.45;

/// How well a cosine says that a hit fits, where a model made it; hashes say nothing of the kind.
fn fit_of_cosine(hit: &Hit, settings: &super::Settings) -> f32 {
    let counts = matches!(settings.vectors, super::Vectors::Model(_)) && settings.weight() > 0.0;
    if !counts || !hit.parts.cosine.is_finite() {
        return 0.0;
    }
    let nearness = (hit.parts.cosine.max(0.0) / NEAR).powi(2);
    1.0 - 0.3f32.powf(nearness)
}

fn passage(segment: Segment, score: f32, adjacent: bool) -> Passage {
    Passage {
        text: segment.content,
        score,
        role: segment.role,
        timestamp: segment.timestamp,
        entry: segment.entry_id.map(Into::into),
        adjacent,
    }
}
