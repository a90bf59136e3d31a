//! Measures how long a store takes to search, add and open, and how large its index is.
//!
//! `CTX_BENCH_SEGMENTS` sets the number of segments, 20,000 by default. Vectors are clustered
//! around topics, like a model's vectors. `CTX_BENCH_STORE` names a folder where the store is kept
//! for the next run, because filling a store of a million segments takes a while.

mod conversation;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use ctx_core::{Embedder, Result, Timer, Timestamp};
use ctx_memory::archive::ArchiveLimits;
use ctx_memory::{Memory, MemorySettings, Vectors};
use ctx_search::VectorModel;
use ctx_search::{HashEmbedder, Query, SearchSettings};

use crate::conversation::{Numbers, questions, segment};

/// Above this number of segments, adding is not measured: its duration stays the same.
const MANY: usize = 100_000;
const TOPICS: u64 = 2_000;
const DIMENSIONS: usize = 384;

/// Returns a vector near the centre of a topic.
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

fn settings(vectors: Vectors, weight: f32) -> MemorySettings {
    let mut settings = MemorySettings::default();
    settings.limits = ArchiveLimits { max_segments: usize::MAX, eviction_days: 0 };
    settings.vectors = vectors;
    settings.search = SearchSettings {
        hash_weight: weight,
        vector_weight: weight,
        embed_context: 0,
        ..SearchSettings::default()
    };
    settings
}

/// Fills a store, writes its index to disk and computes its vectors.
fn filled(folder: &Path, settings: MemorySettings, count: usize) -> Memory {
    let memory = Memory::open(folder, settings);
    let known = memory.stats().expect("it can be read").segments;
    let count = if known < count { count } else { 0 };
    for from in (0..count).step_by(1_000) {
        let segments: Vec<_> = (from..count.min(from + 1_000)).map(segment).collect();
        memory.add(&segments).expect("it can be written");
        memory.flush().expect("it can be written");
    }
    futures_executor::block_on(memory.embed()).expect("the model answers");
    memory.settle().expect("the index can be written");
    memory
}

/// Returns the current and the peak memory of this process, as reported by Linux.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines =
        status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}

fn store(c: &mut Criterion) {
    let count = std::env::var("CTX_BENCH_SEGMENTS").ok().and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(20_000);
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = std::env::var_os("CTX_BENCH_STORE").map(std::path::PathBuf::from);
    let folder = folder.unwrap_or_else(|| temporary.path().to_owned());
    let model = Vectors::Model(VectorModel::new(Arc::new(Topics), Arc::new(Forever)));
    let memory = filled(&folder, settings(model.clone(), 0.5), count);
    let stats = memory.stats().expect("it can be read");
    let text: usize = (0..count.min(1_000)).map(|n| segment(n).content.len()).sum();
    let text = text as f64 / count.min(1_000) as f64 * count as f64;
    let _ = writeln!(
        std::io::stderr(),
        "{} segments, {:.1} MB of text; index {:.1} MB ({:.2} of the text), {} vectors, {} of them in \
         a graph ({:.1} MB on disk), {}; {:?}",
        stats.segments,
        text / 1e6,
        stats.index_bytes as f64 / 1e6,
        stats.index_bytes as f64 / text,
        stats.vectors,
        stats.in_graph,
        stats.graph_bytes as f64 / 1e6,
        resident(),
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
            let memory = Memory::open(&folder, settings(Vectors::None, 0.0));
            black_box(ask(&memory, None))
        });
    });
    c.bench_function(&format!("open and search with vectors, {count}"), |b| {
        b.iter(|| {
            let memory = Memory::open(&folder, settings(model.clone(), 0.5));
            black_box(ask(&memory, Some(&vectors[0])))
        });
    });
    if count > MANY {
        return;
    }
    let other = tempfile::tempdir().expect("a folder");
    for (name, vectors) in [("words", Vectors::None), ("hash", Vectors::Hash)] {
        let at = other.path().join(name);
        let memory = filled(&at, settings(vectors, 0.3), count);
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
