//! Measures recall over conversations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ctx_core::{Counter, Passage, Result, Timestamp, Tokens};
use ctx_memory::{Memory, MemorySettings, build_recall_block};
use ctx_search::index::PlainIndex;
use ctx_search::{Hit, Query, Segment, SegmentId};

use super::cache::VectorCache;
use super::conversation::{Conversation, DatasetFormat, Question};
use super::fts5::Fts5Index;
use super::metrics::{DEEPEST, RankingScores, judge};
use super::report::{RecallReport, Sums};

/// The size of the recall block for `coverage4000`.
const BLOCK: Tokens = Tokens(4_000);

/// The number of turns archived between two progress reports.
const BATCH: usize = 32;

/// The settings of a measurement.
#[derive(Clone)]
pub struct RecallSetup {
    /// The settings of the memory: how scores are computed, and what computes vectors.
    pub memory: MemorySettings,
    /// The name of what computes vectors.
    pub embedder: String,
    /// The cache of its vectors, which is written after each conversation.
    pub cache: Option<Arc<VectorCache>>,
    /// The token counter of the block.
    pub counter: Counter,
}

/// Searches for every question of every conversation. `done` receives the number of finished turns
/// and questions, and their total.
///
/// # Errors
///
/// Errors of the embedder.
pub async fn measure(
    form: DatasetFormat,
    conversations: &[Conversation],
    setup: &RecallSetup,
    mut done: impl FnMut(usize),
) -> Result<RecallReport> {
    let (mut all, mut by_category) = (Sums::default(), BTreeMap::<String, Sums>::new());
    let (mut by_conversation, mut warnings) = (BTreeMap::new(), Vec::new());
    let mut dealt_with = 0;
    for conversation in conversations {
        let mut archive = Archive::of(conversation, setup)?;
        let mut sums = Sums::default();
        for (n, question) in conversation.questions.iter().enumerate() {
            archive.grow(question, |turns| done(dealt_with + turns + n)).await?;
            let worth = archive.ask(question, setup).await?;
            by_category.entry(question.category.clone()).or_default().add(&worth);
            if question.counts {
                all.add(&worth);
                sums.add(&worth);
            }
        }
        setup.cache.iter().for_each(|cache| cache.save());
        warnings.extend(archive.memory.take_warnings());
        dealt_with += conversation.turns.len() + conversation.questions.len();
        done(dealt_with);
        by_conversation.insert(conversation.name.clone(), sums.report().recall.at10);
    }
    let total = |count: fn(&Conversation) -> usize| conversations.iter().map(count).sum();
    Ok(RecallReport {
        dataset: form.name(),
        embedder: setup.embedder.clone(),
        conversations: conversations.len(),
        turns: total(|c| c.turns.len()),
        all: all.report(),
        skipped: total(|c| c.skipped),
        evidence_repaired: total(|c| c.repaired),
        evidence_dropped: total(|c| c.dropped),
        by_category: by_category.iter().map(|(name, sums)| (name.clone(), sums.report())).collect(),
        recall10_by_conversation: by_conversation,
        warnings,
    })
}

/// The archived turns of a conversation: in memory as the product has them, in tantivy
/// and in SQLite.
struct Archive<'a> {
    turns: &'a [Segment],
    archived: usize,
    places: HashMap<SegmentId, usize>,
    memory: Memory,
    tantivy: PlainIndex,
    fts5: Fts5Index,
}

impl<'a> Archive<'a> {
    fn of(conversation: &'a Conversation, setup: &RecallSetup) -> Result<Self> {
        let turns = &conversation.turns[..];
        let places = turns.iter().enumerate().map(|(place, turn)| (turn.id, place)).collect();
        let memory = Memory::in_memory(setup.memory.clone());
        let (tantivy, fts5) = (PlainIndex::new()?, Fts5Index::new()?);
        Ok(Self { turns, archived: 0, places, memory, tantivy, fts5 })
    }

    /// Archives the turns that had left the window when the question was asked. `done` receives the
    /// number of archived turns.
    async fn grow(&mut self, question: &Question, mut done: impl FnMut(usize)) -> Result<()> {
        let all = self.turns.len();
        let until = question.recorded.as_ref().map_or(all, |recorded| recorded.archived.min(all));
        let new = self.turns.get(self.archived..until).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        self.tantivy.add(new)?;
        self.fts5.add(new)?;
        for some in new.chunks(BATCH) {
            self.memory.add(some)?;
            self.memory.embed().await?;
            self.archived += some.len();
            done(self.archived);
        }
        Ok(())
    }

    async fn ask(&self, question: &Question, setup: &RecallSetup) -> Result<RankingScores> {
        let last = self.archived.checked_sub(1).and_then(|last| self.turns.get(last));
        let now = last.map_or(Timestamp(0), |turn| turn.timestamp);
        let query = Query { text: &question.text, session: None, limit: DEEPEST, now };
        let vector = self.memory.vector_of(&question.text).await?;
        let hits = self.memory.search(&query, vector.as_deref())?;
        let place = |hit: &Hit| self.places.get(&hit.id).copied();
        let ranked: Vec<usize> = hits.iter().filter_map(place).collect();
        let passages: Vec<Passage> = hits
            .iter()
            .filter_map(|hit| Some(passage(self.turns.get(place(hit)?)?, hit)))
            .collect();
        let block = build_recall_block(&[], &passages, BLOCK, &setup.counter);
        let held = block.map_or_else(Vec::new, |block| block.passages);
        let held: Vec<usize> = held.iter().filter_map(|&at| ranked.get(at).copied()).collect();
        let tantivy = self.tantivy.search(&question.text, DEEPEST)?;
        let peers = [tantivy, self.fts5.search(&question.text, DEEPEST)?];
        let Some(recorded) = &question.recorded else {
            let peers = peers.map(|plain| judge(&plain, &[], &question.evidence).recall);
            return Ok(RankingScores { peers, ..judge(&ranked, &held, &question.evidence) });
        };
        // Any turn of the evidence answers, so the first one found counts as all.
        let one = |places: &[usize], evidence: &[usize]| {
            let mut places: Vec<usize> = places.to_vec();
            places.retain(|place| Some(*place) != recorded.visible);
            let first = places.iter().position(|place| evidence.contains(place));
            first.into_iter().for_each(|at| places[at] = usize::MAX);
            places
        };
        let judged = |places: &[usize], evidence: &[usize]| {
            judge(&one(places, evidence), &one(&held, evidence), &[usize::MAX])
        };
        let peers = peers.map(|plain| judged(&plain, &question.evidence).recall);
        let unchanged = f64::from(u8::from(!recorded.unchanged.is_empty()));
        let answered = judged(&ranked, &recorded.unchanged).recall[2];
        let repeated = recorded.is_repeated.then_some([unchanged, answered]);
        Ok(RankingScores { peers, repeated, ..judged(&ranked, &question.evidence) })
    }
}

fn passage(turn: &Segment, hit: &Hit) -> Passage {
    Passage {
        text: turn.content.clone(),
        score: hit.score,
        role: turn.role.clone(),
        timestamp: turn.timestamp,
        session: None,
        entry: None,
        adjacent: false,
    }
}
