//! The facts of one agent: in memory for questions, on the disk for good.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ctx_core::Result;
use serde::Serialize;

use super::file::{KnowledgeFile, Lock};
use super::index::Index;
use super::proposal::{Proposal, Refusal, RefusalReason, SUPERSEDED_MAX, check};
use super::update::{Reading, decide_read};
use super::words::word_set;
use super::{Candidate, Fact, FactId, Update};

/// At most this many of the known facts are compared with a new one.
const RELATED_MAX: usize = 32;

/// The file is written anew when it holds so many lines more than twice the facts.
const SLACK: usize = 256;

/// Facts of which sessions a new one may supersede.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of its own session: nothing said in one changes what is known in another.
    #[default]
    Session,
    /// Those of all sessions of the agent.
    Agent,
}

/// The facts of one agent.
///
/// Several processes may have the same file open: changes are made under a lock and after reading
/// what others wrote. What a changing call acknowledged is on the disk; after one that failed,
/// nothing has changed.
#[derive(Debug)]
pub struct FactStore {
    pub(super) file: KnowledgeFile,
    scope: Scope,
    pub(super) facts: Vec<Fact>,
    /// What the rules read in each fact, once they had to.
    readings: Vec<OnceLock<Reading>>,
    places: HashMap<FactId, usize>,
    index: Index,
}

/// What [`FactStore::learn`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Learned {
    /// New facts, those that supersede others among them.
    pub added: Vec<FactId>,
    /// Facts that are told in more detail now.
    pub updated: Vec<FactId>,
    /// Facts that no longer hold.
    pub superseded: Vec<FactId>,
    /// How many candidates said nothing new.
    pub known: usize,
    /// How many candidates said nothing at all.
    pub empty: usize,
}

impl Learned {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty() && self.superseded.is_empty()
    }
}

impl FactStore {
    /// Opens the facts in `path`, usually `knowledge.jsonl`. A file that is not there is made when
    /// the first fact is learned; lines that cannot be read are passed over and
    /// [counted](Self::damaged).
    ///
    /// # Errors
    ///
    /// Where the file is there and cannot be read.
    pub fn open(path: impl Into<PathBuf>, scope: Scope) -> Result<Self> {
        let mut store = Self::of(KnowledgeFile::new(path.into()), scope);
        store.refresh()?;
        Ok(store)
    }

    /// Facts without a file, for replays and tests.
    #[must_use]
    pub fn in_memory(scope: Scope) -> Self {
        Self::of(KnowledgeFile::nowhere(), scope)
    }

    fn of(file: KnowledgeFile, scope: Scope) -> Self {
        Self {
            file,
            scope,
            facts: Vec::new(),
            readings: Vec::new(),
            places: HashMap::new(),
            index: Index::default(),
        }
    }

    /// Where the facts are; empty where they are in memory alone.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How many lines of the file could not be read. They go when it is next written anew.
    #[must_use]
    pub fn damaged(&self) -> usize {
        self.file.damaged()
    }

    /// All facts, superseded ones too, in the order in which they were learned.
    pub fn facts(&self) -> impl ExactSizeIterator<Item = &Fact> {
        self.facts.iter()
    }

    /// A fact by its id.
    #[must_use]
    pub fn get(&self, id: FactId) -> Option<&Fact> {
        self.facts.get(*self.places.get(&id)?)
    }

    /// Reads what other processes have written since the last look.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read. What was known before stays known.
    pub fn refresh(&mut self) -> Result<()> {
        let news = self.file.read()?;
        if news.anew {
            self.clear();
        }
        for fact in news.facts {
            self.put(fact);
        }
        Ok(())
    }

    /// Learns what is new of the candidates, each by [`decide`](super::decide), and returns when it is on the disk.
    ///
    /// A candidate that is older than the fact it contradicts becomes a fact of the past: the
    /// order in which transcripts are read makes no difference to what holds.
    ///
    /// # Errors
    ///
    /// Where the file cannot be locked, read or written; nothing has changed then.
    pub fn learn(&mut self, candidates: impl IntoIterator<Item = Candidate>) -> Result<Learned> {
        let lock = self.file.lock()?;
        self.learn_under(&lock, candidates)
    }

    /// Waits for other processes that write, while everybody else may ask: a store that many share is
    /// not to be locked for that long. For [`learn_under`](Self::learn_under) and
    /// [`accept_under`](Self::accept_under).
    ///
    /// # Errors
    ///
    /// Where the file cannot be locked.
    pub(crate) fn pen_of(shared: &Mutex<Self>) -> Result<Lock> {
        let path = shared.lock().unwrap_or_else(PoisonError::into_inner).path().to_owned();
        KnowledgeFile::new(path).lock()
    }

    /// As [`learn`](Self::learn), by who may write.
    pub(crate) fn learn_under(
        &mut self,
        lock: &Lock,
        candidates: impl IntoIterator<Item = Candidate>,
    ) -> Result<Learned> {
        let mut learned = Learned::default();
        self.change(lock, |store, lines| {
            for candidate in candidates {
                let Some(candidate) = candidate.bounded() else {
                    learned.empty += 1;
                    continue;
                };
                let update = store.decided(&candidate);
                store.apply(candidate, update, lines, &mut learned);
            }
        })?;
        Ok(learned)
    }

    /// Does what a model proposes, as far as the rules allow it; see [`Refusal`] for what they do
    /// not.
    ///
    /// # Errors
    ///
    /// Those of [`learn`](Self::learn).
    pub fn accept(&mut self, proposals: Vec<Proposal>) -> Result<(Learned, Vec<Refusal>)> {
        let lock = self.file.lock()?;
        self.accept_under(&lock, proposals)
    }

    /// As [`accept`](Self::accept), by who may write.
    pub(crate) fn accept_under(
        &mut self,
        lock: &Lock,
        proposals: Vec<Proposal>,
    ) -> Result<(Learned, Vec<Refusal>)> {
        let (mut learned, mut refused) = (Learned::default(), Vec::new());
        self.change(lock, |store, lines| {
            for (at, proposal) in proposals.into_iter().enumerate() {
                let seen = proposal.candidate.clone().and_then(Candidate::bounded);
                let decided = seen.as_ref().map(|candidate| store.decided(candidate));
                let known = |id| {
                    store.get(id).filter(|fact| {
                        seen.as_ref().is_none_or(|candidate| store.in_scope(fact, candidate))
                    })
                };
                let checked = check(at, &proposal, decided, known).and_then(|update| {
                    let more = match &update {
                        Update::Supersede { ids } => ids.len(),
                        _ => 0,
                    };
                    let reason = RefusalReason::TooMany;
                    let fits = more == 0 || learned.superseded.len() + more <= SUPERSEDED_MAX;
                    if fits { Ok(update) } else { Err(Refusal { at, reason }) }
                });
                match checked {
                    Ok(update) => {
                        if let Some(candidate) = seen {
                            store.apply(candidate, update, lines, &mut learned);
                        }
                    }
                    Err(refusal) => refused.push(refusal),
                }
            }
        })?;
        Ok((learned, refused))
    }

    /// Makes changes in memory, then on the disk; where the disk refuses, memory is read from it
    /// again.
    fn change(&mut self, lock: &Lock, make: impl FnOnce(&mut Self, &mut Vec<Fact>)) -> Result<()> {
        self.refresh()?;
        let mut lines = Vec::new();
        make(self, &mut lines);
        if lines.is_empty() {
            return Ok(());
        }
        if let Err(e) = self.file.append(lock, &lines) {
            self.clear();
            self.file = KnowledgeFile::new(self.file.path().to_owned());
            self.refresh()?;
            return Err(e);
        }
        self.tidy(lock);
        Ok(())
    }

    /// Writes the file anew where most of its lines are of the past.
    fn tidy(&mut self, lock: &Lock) {
        if self.file.lines() > self.facts.len() * 2 + SLACK {
            self.file.sweep(lock);
            // What cannot be written shorter stays long; every fact is on the disk.
            let _ = self.file.rewrite(lock, self.facts.iter(), |_| true);
        }
    }

    /// What the rules make of a candidate, by the facts that are most like it.
    fn decided(&self, candidate: &Candidate) -> Update {
        let mut related = self.index.related(&word_set(&candidate.content));
        related.retain(|m| {
            self.facts
                .get(m.place)
                .is_some_and(|fact| fact.is_current() && self.in_scope(fact, candidate))
        });
        related.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(b.place.cmp(&a.place)));
        related.truncate(RELATED_MAX);
        let read = related.iter().filter_map(|m| {
            let (fact, reading) = (self.facts.get(m.place)?, self.readings.get(m.place)?);
            Some((fact, reading.get_or_init(|| Reading::of(&fact.content))))
        });
        decide_read(read, candidate)
    }

    fn in_scope(&self, fact: &Fact, candidate: &Candidate) -> bool {
        self.scope == Scope::Agent || fact.session_id == candidate.session_id
    }

    fn apply(
        &mut self,
        candidate: Candidate,
        update: Update,
        lines: &mut Vec<Fact>,
        learned: &mut Learned,
    ) {
        let mut fact = candidate.into_fact();
        if self.places.contains_key(&fact.id) || word_set(&fact.content).is_empty() {
            learned.known += 1;
            return;
        }
        match update {
            Update::None { .. } => {
                learned.known += 1;
                return;
            }
            Update::Update { id } => {
                let Some(old) = self.get(id) else { return };
                fact.id = id;
                fact.valid_from = old.valid_from.min(fact.valid_from);
                fact.timestamp = old.timestamp.max(fact.timestamp);
                learned.updated.push(id);
            }
            Update::Add => learned.added.push(fact.id),
            Update::Supersede { ids } => {
                for id in ids {
                    let Some(old) = self.get(id) else { continue };
                    if old.valid_from > fact.valid_from {
                        // Said before what it contradicts: of the past already.
                        if fact.valid_to.is_none_or(|end| old.valid_from < end) {
                            fact.valid_to = Some(old.valid_from);
                            fact.superseded_by = Some(id);
                        }
                        continue;
                    }
                    let mut old = old.clone();
                    old.valid_to = Some(fact.valid_from);
                    old.superseded_by = Some(fact.id);
                    learned.superseded.push(id);
                    lines.push(old.clone());
                    self.put(old);
                }
                learned.added.push(fact.id);
            }
        }
        lines.push(fact.clone());
        self.put(fact);
    }

    pub(super) fn put(&mut self, fact: Fact) {
        let text = indexed(&fact);
        match self.places.get(&fact.id).and_then(|&at| Some((at, self.facts.get_mut(at)?))) {
            Some((at, old)) => {
                let before = indexed(old);
                *old = fact;
                if let Some(reading) = self.readings.get_mut(at) {
                    reading.take();
                }
                if before != text {
                    self.index.change(at, &before, &text);
                }
            }
            None => {
                self.places.insert(fact.id, self.facts.len());
                self.index.push(&text);
                self.facts.push(fact);
                self.readings.push(OnceLock::new());
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.facts.clear();
        self.readings.clear();
        self.places.clear();
        self.index = Index::default();
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn at(&self, place: usize) -> Option<&Fact> {
        self.facts.get(place)
    }
}

/// What a fact is found by.
fn indexed(fact: &Fact) -> String {
    format!("{} {}", fact.content, fact.context)
}
