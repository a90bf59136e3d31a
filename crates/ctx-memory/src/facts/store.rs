//! The facts of one agent: searched in memory, stored on the disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ctx_core::{Result, Timestamp};
use ctx_facts::Statement;
use serde::Serialize;

use super::file::{KnowledgeFile, Lock};
use super::index::Index;
use super::proposal::{Proposal, RejectedProposal, RejectionReason, SUPERSEDED_MAX, check};
use super::update::decide;
use super::words::word_set;
use super::{Fact, FactCandidate, FactId, Update};

/// The maximum number of known facts that a new one is compared with.
const RELATED_MAX: usize = 32;

/// A word in more facts than this does not relate two facts that share rarer ones.
const COMMON: usize = 1_000;

/// The file is rewritten when it has more than twice as many lines as facts, plus this number.
const SLACK: usize = 256;

/// The sessions whose facts a new one may supersede.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Its own session: one session does not change the facts of another.
    #[default]
    Session,
    /// All sessions of the agent.
    Agent,
}

/// The facts of one agent.
///
/// Several processes may open the same file: each change takes a lock and first reads what others
/// wrote. An acknowledged change is on the disk; a failed one has changed nothing.
#[derive(Debug)]
pub struct FactStore {
    pub(super) file: KnowledgeFile,
    scope: Scope,
    pub(super) facts: Vec<Fact>,
    /// The parsed form of each fact, computed on first use.
    statements: Vec<OnceLock<Statement>>,
    places: HashMap<FactId, usize>,
    pub(super) index: Index,
}

/// The result of [`FactStore::learn`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LearnOutcome {
    /// New facts, including those that supersede others.
    pub added: Vec<FactId>,
    /// Facts that now have more detail.
    pub updated: Vec<FactId>,
    /// Facts that no longer hold.
    pub superseded: Vec<FactId>,
    /// The number of candidates that were already known.
    pub known: usize,
    /// The number of empty candidates.
    pub empty: usize,
}

impl LearnOutcome {
    /// Whether nothing changed.
    pub fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty() && self.superseded.is_empty()
    }
}

impl FactStore {
    /// Opens the facts in `path`, usually `knowledge.jsonl`. A missing file is created when the
    /// first fact is learned. Unreadable lines are skipped and [counted](Self::damaged).
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read.
    pub fn open(path: impl Into<PathBuf>, scope: Scope) -> Result<Self> {
        let mut store = Self::of(KnowledgeFile::new(path.into()), scope);
        store.refresh()?;
        Ok(store)
    }

    /// Returns a store without a file, for replays and tests.
    #[must_use]
    pub fn in_memory(scope: Scope) -> Self {
        Self::of(KnowledgeFile::new(PathBuf::new()), scope)
    }

    fn of(file: KnowledgeFile, scope: Scope) -> Self {
        Self {
            file,
            scope,
            facts: Vec::new(),
            statements: Vec::new(),
            places: HashMap::new(),
            index: Index::default(),
        }
    }

    /// The path of the file; empty for a store in memory.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The number of unreadable lines. The next rewrite removes them.
    pub fn damaged(&self) -> usize {
        self.file.damaged()
    }

    /// All facts, including superseded ones, in the order in which they were learned.
    pub fn facts(&self) -> impl ExactSizeIterator<Item = &Fact> {
        self.facts.iter()
    }

    /// Returns a fact by its id.
    pub fn get(&self, id: FactId) -> Option<&Fact> {
        self.facts.get(*self.places.get(&id)?)
    }

    /// Reads what other processes have written since the last call.
    ///
    /// # Errors
    ///
    /// If the file cannot be read. The known facts stay.
    pub fn refresh(&mut self) -> Result<()> {
        let news = self.file.read()?;
        if news.is_replaced {
            self.clear();
        }
        for fact in news.facts {
            self.put(fact);
        }
        Ok(())
    }

    /// Learns the new facts among the candidates, each decided by [`decide`](super::decide), and
    /// returns when they are on the disk.
    ///
    /// A candidate that is older than the fact it contradicts is stored as already superseded. So
    /// the order in which transcripts are read does not matter.
    ///
    /// # Errors
    ///
    /// If the file cannot be locked, read or written; nothing has changed then.
    pub fn learn(
        &mut self,
        candidates: impl IntoIterator<Item = FactCandidate>,
    ) -> Result<LearnOutcome> {
        let lock = self.file.lock()?;
        self.learn_under(&lock, candidates)
    }

    /// Stores facts as another memory of the agent has them, without comparing them with others.
    ///
    /// # Errors
    ///
    /// Those of [`learn`](Self::learn).
    pub fn merge(&mut self, facts: Vec<Fact>) -> Result<()> {
        let lock = self.file.lock()?;
        self.change(&lock, |store, lines| {
            for fact in facts {
                if store.get(fact.id) != Some(&fact) {
                    lines.push(fact.clone());
                    store.put(fact);
                }
            }
        })
    }

    /// Waits for the file lock without holding the mutex, so that other threads can search
    /// meanwhile. For [`learn_under`](Self::learn_under) and [`accept_under`](Self::accept_under).
    ///
    /// # Errors
    ///
    /// If the file cannot be locked.
    pub(crate) fn pen_of(shared: &Mutex<Self>) -> Result<Lock> {
        let path = shared.lock().unwrap_or_else(PoisonError::into_inner).path().to_owned();
        KnowledgeFile::new(path).lock()
    }

    /// Like [`learn`](Self::learn), with the lock already held.
    pub(crate) fn learn_under(
        &mut self,
        lock: &Lock,
        candidates: impl IntoIterator<Item = FactCandidate>,
    ) -> Result<LearnOutcome> {
        let mut learned = LearnOutcome::default();
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

    /// Carries out the model's proposals that the rules allow. A [`RejectedProposal`] explains each
    /// other proposal.
    ///
    /// # Errors
    ///
    /// Those of [`learn`](Self::learn).
    pub fn accept(
        &mut self,
        proposals: Vec<Proposal>,
    ) -> Result<(LearnOutcome, Vec<RejectedProposal>)> {
        let lock = self.file.lock()?;
        self.accept_under(&lock, proposals)
    }

    /// Like [`accept`](Self::accept), with the lock already held.
    pub(crate) fn accept_under(
        &mut self,
        lock: &Lock,
        proposals: Vec<Proposal>,
    ) -> Result<(LearnOutcome, Vec<RejectedProposal>)> {
        let (mut learned, mut refused) = (LearnOutcome::default(), Vec::new());
        self.change(lock, |store, lines| {
            for (at, proposal) in proposals.into_iter().enumerate() {
                let seen = proposal.candidate.clone().and_then(FactCandidate::bounded);
                let decided = seen.as_ref().map(|candidate| store.decided(candidate));
                let known = |id| {
                    store.get(id).filter(|fact| {
                        seen.as_ref().is_none_or(|candidate| store.in_scope(fact, candidate))
                    })
                };
                let checked = check(at, &proposal, decided, known).and_then(|update| {
                    let more = match &update {
                        Update::Supersede { ids } | Update::Retire { ids, .. } => ids.len(),
                        _ => 0,
                    };
                    let reason = RejectionReason::TooMany;
                    let fits = more == 0 || learned.superseded.len() + more <= SUPERSEDED_MAX;
                    if fits { Ok(update) } else { Err(RejectedProposal { at, reason }) }
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

    /// Changes memory, then the disk. If the write fails, memory is read from the disk again.
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

    /// Rewrites the file if most of its lines are outdated.
    fn tidy(&mut self, lock: &Lock) {
        if self.file.lines() > self.facts.len() * 2 + SLACK {
            self.file.sweep(lock);
            // If the rewrite fails, the file stays long; every fact is on the disk.
            let _ = self.file.rewrite(lock, self.facts.iter(), |_| true);
        }
    }

    /// Decides about a candidate by comparing it with the most similar facts.
    fn decided(&self, candidate: &FactCandidate) -> Update {
        let mut related = self.index.matches(&word_set(&candidate.content), COMMON);
        related.retain(|m| {
            self.facts
                .get(m.place)
                .is_some_and(|fact| fact.is_current() && self.in_scope(fact, candidate))
        });
        related.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(b.place.cmp(&a.place)));
        related.truncate(RELATED_MAX);
        let read = related.iter().filter_map(|m| {
            let (fact, statement) = (self.facts.get(m.place)?, self.statements.get(m.place)?);
            Some((fact, statement.get_or_init(|| Statement::of(&fact.content))))
        });
        decide(read, candidate)
    }

    fn in_scope(&self, fact: &Fact, candidate: &FactCandidate) -> bool {
        self.scope == Scope::Agent || fact.session_id == candidate.session_id
    }

    fn apply(
        &mut self,
        candidate: FactCandidate,
        update: Update,
        lines: &mut Vec<Fact>,
        learned: &mut LearnOutcome,
    ) {
        let mut fact = candidate.into_fact();
        if let Update::Retire { ids, by } = update {
            learned.known += 1;
            self.supersede(&ids, by, fact.valid_from, lines, learned);
            return;
        }
        if self.places.contains_key(&fact.id) || word_set(&fact.content).is_empty() {
            learned.known += 1;
            return;
        }
        match update {
            Update::None { .. } | Update::Retire { .. } => {
                learned.known += 1;
                return;
            }
            Update::Update { id } => {
                let Some(old) = self.get(id) else { return };
                fact.id = id;
                // What it has superseded was valid until then.
                fact.valid_from = match self.facts.iter().any(|old| old.superseded_by == Some(id)) {
                    true => old.valid_from,
                    false => old.valid_from.min(fact.valid_from),
                };
                fact.timestamp = old.timestamp.max(fact.timestamp);
                learned.updated.push(id);
            }
            Update::Add => learned.added.push(fact.id),
            Update::Supersede { ids } => {
                let newer = ids.iter().filter_map(|id| self.get(*id));
                let newer = newer.filter(|old| old.valid_from > fact.valid_from);
                // A candidate older than the fact it contradicts is already superseded.
                if let Some(newer) = newer.min_by_key(|old| old.valid_from) {
                    fact.valid_to = Some(newer.valid_from);
                    fact.superseded_by = Some(newer.id);
                }
                self.supersede(&ids, fact.id, fact.valid_from, lines, learned);
                learned.added.push(fact.id);
            }
        }
        lines.push(fact.clone());
        self.put(fact);
    }

    /// Marks facts as superseded, except those that became valid later.
    fn supersede(
        &mut self,
        ids: &[FactId],
        by: FactId,
        at: Timestamp,
        lines: &mut Vec<Fact>,
        learned: &mut LearnOutcome,
    ) {
        for id in ids {
            let Some(mut old) = self.get(*id).filter(|old| old.valid_from <= at).cloned() else {
                continue;
            };
            old.valid_to = Some(at);
            old.superseded_by = Some(by);
            learned.superseded.push(*id);
            lines.push(old.clone());
            self.put(old);
        }
    }

    pub(super) fn put(&mut self, fact: Fact) {
        let text = indexed(&fact);
        match self.places.get(&fact.id).and_then(|&at| Some((at, self.facts.get_mut(at)?))) {
            Some((at, old)) => {
                let before = indexed(old);
                *old = fact;
                if let Some(statement) = self.statements.get_mut(at) {
                    statement.take();
                }
                if before != text {
                    self.index.change(at, &before, &text);
                }
            }
            None => {
                self.places.insert(fact.id, self.facts.len());
                self.index.push(&text);
                self.facts.push(fact);
                self.statements.push(OnceLock::new());
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.facts.clear();
        self.statements.clear();
        self.places.clear();
        self.index = Index::default();
    }
}

/// Returns the text under which a fact is indexed.
fn indexed(fact: &Fact) -> String {
    format!("{} {}", fact.content, fact.context)
}
