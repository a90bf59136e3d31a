//! How long a store takes to find, to take in and to open, and how large its index is.
//!
//! `CTX_BENCH_SEGMENTS` is how many segments there are, 20,000 if it is not set. Words are as rare as
//! in a language (Zipf), vectors lie around topics, as those of a model do.

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use ctx_core::{Embedder, Result, Role, Timer, Timestamp};
use ctx_memory::archive::Limits;
use ctx_memory::{
    HashEmbedder, Memory, Metadata, Query, SearchSettings, Segment, SegmentId, Settings,
    VectorModel, Vectors,
};
use futures_util::FutureExt;

const WORDS: usize = 50_000;
const WORDS_OF_A_SEGMENT: usize = 150;
const TOPICS: u64 = 2_000;
const DIMENSIONS: usize = 384;

/// Numbers that look random, the same in every run.
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

    /// A word, the first ones far more often than the last.
    fn word(&mut self) -> usize {
        ((WORDS as f32).powf(self.fraction()) as usize).min(WORDS) - 1
    }
}

fn spelled(mut word: usize) -> String {
    let mut text = String::new();
    for _ in 0..3 {
        text.push(char::from(b"bdfgklmnprstvz"[word % 14]));
        text.push(char::from(b"aeiou"[word / 14 % 5]));
        word /= 70;
    }
    text
}

fn segment(n: usize) -> Segment {
    let mut numbers = Numbers(n as u64 * 7_919 + 1);
    let words: Vec<_> = (0..WORDS_OF_A_SEGMENT).map(|_| spelled(numbers.word())).collect();
    let content = format!("t{n} {}", words.join(" "));
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

/// Questions of six words, none of them among the hundred most frequent.
fn questions() -> Vec<String> {
    let mut numbers = Numbers(42);
    let mut word = || loop {
        let word = numbers.word();
        if word >= 100 {
            return spelled(word);
        }
    };
    (0..64).map(|_| (0..6).map(|_| word()).collect::<Vec<_>>().join(" ")).collect()
}

/// A vector near the centre of a topic.
fn vector(n: u64) -> Vec<f32> {
    let mut topic = Numbers(n % TOPICS + 1);
    let mut own = Numbers(n + 1_000_003);
    (0..DIMENSIONS).map(|_| topic.fraction() - 0.5 + 0.6 * (own.fraction() - 0.5)).collect()
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

/// No deadline ever passes.
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

fn settings(vectors: Vectors, weight: f32) -> Settings {
    let mut settings = Settings::default();
    settings.limits = Limits { max_segments: usize::MAX, eviction_days: 0 };
    settings.vectors = vectors;
    settings.search = SearchSettings {
        hash_weight: weight,
        vector_weight: weight,
        embed_context: 0,
        ..SearchSettings::default()
    };
    settings
}

/// Fills a store, with its index on disk and its vectors made.
fn filled(folder: &Path, settings: Settings, count: usize) -> Memory {
    let memory = Memory::open(folder, "main", settings);
    for from in (0..count).step_by(1_000) {
        let segments: Vec<_> = (from..count.min(from + 1_000)).map(segment).collect();
        memory.add(&segments).expect("it can be written");
        memory.flush().expect("it can be written");
    }
    memory.embed().now_or_never().expect("it waits for nobody").expect("the model answers");
    memory.settle().expect("the index can be written");
    memory
}

fn store(c: &mut Criterion) {
    let count = std::env::var("CTX_BENCH_SEGMENTS").ok().and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(20_000);
    let folder = tempfile::tempdir().expect("a folder");
    let model = Vectors::Model(VectorModel::new(Arc::new(Topics), Arc::new(Forever)));
    let memory = filled(folder.path(), settings(model.clone(), 0.5), count);
    let stats = memory.stats().expect("it can be read");
    let text: usize = (0..count.min(1_000)).map(|n| segment(n).content.len()).sum();
    let text = text as f64 / count.min(1_000) as f64 * count as f64;
    let _ = writeln!(
        std::io::stderr(),
        "{} segments, {:.1} MB of text; index {:.1} MB ({:.2} of the text), {} vectors, {} of them in \
         a graph; {:?}",
        stats.segments,
        text / 1e6,
        stats.index_bytes as f64 / 1e6,
        stats.index_bytes as f64 / text,
        stats.vectors,
        stats.in_graph,
        memory.take_warnings(),
    );
    let questions = questions();
    let asked = AtomicUsize::new(0);
    let ask = |memory: &Memory, vector: Option<&[f32]>| {
        let text = &questions[asked.fetch_add(1, Ordering::Relaxed) % questions.len()];
        let query = Query { text, session: None, limit: 20, now: Timestamp(0) };
        memory.search(&query, vector).expect("it can be read")
    };
    c.bench_function(&format!("search, words, {count}"), |b| {
        b.iter(|| black_box(ask(&memory, None)));
    });
    let vectors: Vec<_> = (0..64).map(|n| vector(n * 31 + 10_000_000)).collect();
    let mut next = 0;
    c.bench_function(&format!("search, words and vectors, {count}"), |b| {
        b.iter(|| {
            next += 1;
            black_box(ask(&memory, Some(&vectors[next % vectors.len()])))
        });
    });
    drop(memory);
    c.bench_function(&format!("open and search, {count}"), |b| {
        b.iter(|| {
            let memory = Memory::open(folder.path(), "main", settings(Vectors::None, 0.0));
            black_box(ask(&memory, None))
        });
    });
    c.bench_function(&format!("open and search with vectors, {count}"), |b| {
        b.iter(|| {
            let memory = Memory::open(folder.path(), "main", settings(model.clone(), 0.5));
            black_box(ask(&memory, Some(&vectors[0])))
        });
    });
    let other = tempfile::tempdir().expect("a folder");
    for (name, vectors) in [("words", Vectors::None), ("hash", Vectors::Hash)] {
        let at = other.path().join(name);
        let memory = filled(&at, settings(vectors, 0.5), count);
        let mut n = count;
        c.bench_function(&format!("add and find, {name}, {count}"), |b| {
            b.iter(|| {
                n += 1;
                memory.add(&[segment(n)]).expect("it can be read");
                let text = format!("t{n}");
                let query = Query { text: &text, session: None, limit: 1, now: Timestamp(0) };
                let hits = memory.search(&query, None).expect("it can be read");
                assert_eq!(hits.first().map(|hit| hit.id), Some(segment(n).id));
            });
        });
    }
    let text = segment(0).content;
    c.bench_function("a hash vector", |b| b.iter(|| black_box(HashEmbedder.vector(&text))));
}

criterion_group!(benches, store);
criterion_main!(benches);
