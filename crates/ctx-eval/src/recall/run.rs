//! From conversations to figures.

use std::collections::BTreeMap;

use ctx_core::{Counter, Embedder, Passage, Result, Timestamp, Tokens};
use ctx_memory::{Cosines, Hit, Query, SearchIndex, SearchSettings, build, embedded_text};

use super::cache::VectorCache;
use super::conversation::{Conversation, Form, Question};
use super::metrics::{DEEPEST, Worth, judge};
use super::report::{RecallReport, Sums};

/// The recall block that `coverage4000` is about.
const BLOCK: Tokens = Tokens(4_000);

/// So many texts are embedded at a time, between two signs of progress.
const BATCH: usize = 32;

/// What is measured with.
#[derive(Clone, Debug)]
pub struct RecallSetup {
    /// How scores are made and mixed.
    pub settings: SearchSettings,
    /// How the block is counted.
    pub counter: Counter,
}

/// What makes the vectors, and what they count.
pub struct Vectors<'a> {
    /// Who makes them.
    pub embedder: &'a dyn Embedder,
    /// Their share of the score, 0 to 1. Where it is 0, none are made.
    pub weight: f32,
    /// Vectors that were made before, and those that are made now.
    pub cache: &'a mut VectorCache,
}

impl std::fmt::Debug for Vectors<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.embedder.name();
        f.debug_struct("Vectors").field("embedder", &name).field("weight", &self.weight).finish()
    }
}

/// Asks every question of every conversation. `done` is told how many turns and questions are dealt
/// with, of all there are.
///
/// # Errors
///
/// Those of the embedder, and those of keeping its vectors.
pub async fn measure(
    form: Form,
    conversations: &[Conversation],
    setup: &RecallSetup,
    mut vectors: Vectors<'_>,
    mut done: impl FnMut(usize),
) -> Result<RecallReport> {
    let (mut all, mut by_category) = (Sums::default(), BTreeMap::<String, Sums>::new());
    let mut by_conversation = BTreeMap::new();
    let mut dealt_with = 0;
    for conversation in conversations {
        let mut index = SearchIndex::new(setup.settings.clone());
        for turn in &conversation.turns {
            index.add(turn);
        }
        let mut told = |n| done(dealt_with + n);
        let embedded = embed(conversation, &setup.settings, &mut vectors, &mut told).await?;
        let mut sums = Sums::default();
        for (n, question) in conversation.questions.iter().enumerate() {
            let cosines = embedded.as_ref().map(|(turns, questions)| cosines(turns, &questions[n]));
            let cosines = cosines.as_deref();
            let cosines = cosines.map(|of_rows| Cosines { of_rows, weight: vectors.weight });
            let worth = ask(question, conversation, &index, cosines, &setup.counter);
            by_category.entry(question.category.clone()).or_default().add(&worth);
            if question.counts {
                all.add(&worth);
                sums.add(&worth);
            }
            told(conversation.turns.len() + n + 1);
        }
        dealt_with += conversation.turns.len() + conversation.questions.len();
        by_conversation.insert(conversation.name.clone(), sums.report().recall.at10);
    }
    let total = |count: fn(&Conversation) -> usize| conversations.iter().map(count).sum();
    Ok(RecallReport {
        dataset: form.name(),
        embedder: vectors.embedder.name().to_owned(),
        conversations: conversations.len(),
        turns: total(|c| c.turns.len()),
        all: all.report(),
        skipped: total(|c| c.skipped),
        evidence_repaired: total(|c| c.repaired),
        evidence_dropped: total(|c| c.dropped),
        by_category: by_category.iter().map(|(name, sums)| (name.clone(), sums.report())).collect(),
        recall10_by_conversation: by_conversation,
    })
}

type Vector = Vec<f32>;

/// The vectors of the turns and of the questions, unless they count for nothing.
async fn embed(
    conversation: &Conversation,
    settings: &SearchSettings,
    vectors: &mut Vectors<'_>,
    done: &mut impl FnMut(usize),
) -> Result<Option<(Vec<Vector>, Vec<Vector>)>> {
    if vectors.weight <= 0.0 {
        return Ok(None);
    }
    let turns = (0..conversation.turns.len())
        .map(|at| embedded_text(&conversation.turns[..=at], settings.embed_context));
    let questions = conversation.questions.iter().map(|question| question.text.clone());
    let texts: Vec<String> = turns.chain(questions).collect();
    let mut made = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        made.extend(vectors.cache.embed(vectors.embedder, batch).await?);
        done(made.len().min(conversation.turns.len()));
    }
    // A run that is broken off goes on from here.
    vectors.cache.save();
    let questions = made.split_off(conversation.turns.len());
    Ok(Some((made, questions)))
}

fn cosines(turns: &[Vector], question: &[f32]) -> Vec<f32> {
    turns.iter().map(|turn| ctx_memory::cosine(turn, question)).collect()
}

fn ask(
    question: &Question,
    conversation: &Conversation,
    index: &SearchIndex,
    cosines: Option<Cosines<'_>>,
    counter: &Counter,
) -> Worth {
    let now = conversation.turns.last().map_or(Timestamp(0), |turn| turn.timestamp);
    let query = Query { text: &question.text, session: None, limit: DEEPEST, now };
    let hits = index.search(&query, cosines);
    let place = |hit: &Hit| usize::try_from(hit.id.0.as_u128()).ok();
    let ranked: Vec<usize> = hits.iter().filter_map(place).collect();
    let passages: Vec<Passage> = hits
        .iter()
        .filter_map(|hit| {
            let turn = conversation.turns.get(place(hit)?)?;
            Some(Passage {
                text: turn.content.clone(),
                score: hit.score,
                role: turn.role.clone(),
                timestamp: turn.timestamp,
                session: None,
                entry: None,
                adjacent: false,
            })
        })
        .collect();
    let block = build(&[], &passages, BLOCK, counter);
    let held = block.map_or_else(Vec::new, |block| block.passages);
    let held: Vec<usize> = held.iter().filter_map(|&at| ranked.get(at).copied()).collect();
    judge(&ranked, &held, &question.evidence)
}
