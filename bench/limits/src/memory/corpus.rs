//! Generated conversations: the frequencies of words follow Zipf's law, vectors are clustered around
//! topics, and every run gets the same.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{Embedder, Result, Role, Timer, Timestamp};
use ctx_search::{Metadata, Segment, SegmentId, VectorModel};

const WORDS: usize = 50_000;
const WORDS_OF_A_SEGMENT: usize = 150;
const TOPICS: u64 = 2_000;
const DIMENSIONS: usize = 384;

/// The number of different questions.
pub(super) const QUESTIONS: usize = 64;

/// The spelling of each word, by rank.
static SPELLED: LazyLock<Vec<String>> = LazyLock::new(|| (0..WORDS).map(spell).collect());

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)) >> 16
    }

    fn fraction(&mut self) -> f32 {
        (self.next() % (1 << 24)) as f32 / (1 << 24) as f32
    }

    /// Returns a word by its rank; low ranks are far more frequent.
    fn word(&mut self) -> usize {
        ((WORDS as f32).powf(self.fraction()) as usize).min(WORDS) - 1
    }
}

fn spell(mut word: usize) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b"bdfgklmnprstvz"[word % 14]));
        text.push(char::from(b"aeiou"[word / 14 % 5]));
        word /= 70;
    }
    text
}

/// Returns the text of the `n`th segment: about a kilobyte.
pub(super) fn text(n: usize) -> String {
    let mut numbers = Numbers(n as u64 * 7_919 + 1);
    let mut text = format!("t{n}");
    for _ in 0..WORDS_OF_A_SEGMENT {
        text.push(' ');
        text.push_str(&SPELLED[numbers.word()]);
    }
    text
}

/// Returns the `n`th segment. A session has 50.
pub(super) fn segment(n: usize) -> Segment {
    let content = text(n);
    let session = format!("s{}", n / 50);
    Segment {
        id: SegmentId::of(&session, &Role::User, &content),
        agent_id: "main".into(),
        session_id: session,
        timestamp: Timestamp(1_700_000_000_000 + n as i64 * 60_000),
        archived_at: None,
        role: Role::User,
        name: None,
        content,
        tokens: 150,
        metadata: Metadata::default(),
        entry_id: None,
    }
}

/// Returns questions of six words, none of them among the hundred most frequent.
pub(super) fn questions() -> Vec<String> {
    let mut numbers = Numbers(42);
    let mut word = || loop {
        let word = numbers.word();
        if word >= 100 {
            return SPELLED[word].as_str();
        }
    };
    (0..QUESTIONS).map(|_| (0..6).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

/// Returns the `n`th question of a session: words of archived texts and one random word.
pub(super) fn asked(n: usize, questions: &[String]) -> String {
    let own = &SPELLED[Numbers(n as u64 + 5).word()];
    format!("what was it about {} and {own}?", questions[n % questions.len()])
}

/// Returns a vector near the centre of a topic.
fn vector(n: u64) -> Vec<f32> {
    let mut topic = Numbers(n % TOPICS + 1);
    let mut own = Numbers(n + 1_000_003);
    (0..DIMENSIONS).map(|_| topic.fraction() - 0.5 + 0.6 * (own.fraction() - 0.5)).collect()
}

/// Returns the vectors of the questions.
pub(super) fn query_vectors() -> Vec<Vec<f32>> {
    (0..QUESTIONS as u64).map(|n| vector(n * 31 + 10_000_000)).collect()
}

/// Returns a model that computes the vector of a segment from its number, at no cost.
pub(super) fn model() -> VectorModel {
    VectorModel::new(Arc::new(Topics), Arc::new(Forever))
}

struct Topics;

#[async_trait]
impl Embedder for Topics {
    fn name(&self) -> &str {
        "topics"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let number = |text: &String| {
            let words = text.split_whitespace().filter_map(|word| word.strip_prefix('t'));
            words.filter_map(|number| number.parse().ok()).next().unwrap_or_default()
        };
        Ok(texts.iter().map(|text| vector(number(text))).collect())
    }
}

/// A deadline that never passes.
struct Forever;

#[async_trait]
impl Timer for Forever {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}
