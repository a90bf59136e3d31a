//! Measures recall over conversations.

use std::collections::BTreeMap;

use ctx_core::{Counter, Embedder, Passage, Result, Timestamp, Tokens};
use ctx_memory::build_recall_block;
use ctx_search::{Cosines, Hit, Query, SearchIndex, SearchSettings, embedded_text};

use super::cache::VectorCache;
use super::conversation::{Conversation, DatasetFormat, Question};
use super::metrics::{DEEPEST, RankingScores, judge};
use super::report::{RecallReport, Sums};

/// The size of the recall block for `coverage4000`.
const BLOCK: Tokens = Tokens(4_000);

/// The number of texts embedded between two progress reports.
const BATCH: usize = 32;

/// The settings of a measurement.
#[derive(Clone, Debug)]
pub struct RecallSetup {
    /// How scores are computed and combined.
    pub settings: SearchSettings,
    /// The token counter of the block.
    pub counter: Counter,
}

/// The embedder and the weight of its vectors.
pub struct Vectors<'a> {
    /// The embedder.
    pub embedder: &'a dyn Embedder,
    /// The weight in the score, 0 to 1. If it is 0, no vectors are computed.
    pub weight: f32,
    /// The cache for the vectors.
    pub cache: &'a mut VectorCache,
}

/// Searches for every question of every conversation. `done` receives the number of finished turns
/// and questions, and their total.
///
/// # Errors
///
/// Errors of the embedder, and errors of storing its vectors.
pub async fn measure(
    form: DatasetFormat,
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

/// Returns the vectors of the turns and of the questions, unless their weight is 0.
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
    // An interrupted run continues from here.
    vectors.cache.save();
    let questions = made.split_off(conversation.turns.len());
    Ok(Some((made, questions)))
}

fn cosines(turns: &[Vector], question: &[f32]) -> Vec<f32> {
    turns.iter().map(|turn| ctx_search::cosine(turn, question)).collect()
}

fn ask(
    question: &Question,
    conversation: &Conversation,
    index: &SearchIndex,
    cosines: Option<Cosines<'_>>,
    counter: &Counter,
) -> RankingScores {
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
    let block = build_recall_block(&[], &passages, BLOCK, counter);
    let held = block.map_or_else(Vec::new, |block| block.passages);
    let held: Vec<usize> = held.iter().filter_map(|&at| ranked.get(at).copied()).collect();
    judge(&ranked, &held, &question.evidence)
}
