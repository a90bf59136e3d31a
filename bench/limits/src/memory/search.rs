//! Searching, opening and building stores.

use std::cell::Cell;
use std::hint::black_box;

use anyhow::{Result, ensure};
use ctx_memory::Memory;
use ctx_search::HashEmbedder;

use super::corpus::{QUESTIONS, query_vectors, questions, segment};
use super::peers::{Fts5, HITS, Tantivy};
use super::progress::{ms, shown};
use super::store::{Store, With, add, query, settings, size, temporary};
use crate::Effort;
use crate::figure::{Figure, Goal, Side, medians, quantile};

const TANTIVY: &str = "tantivy's best 20";
const FTS5: &str = "SQLite FTS5";

/// Above this number of segments, adding one is not measured: it takes as long as before.
const MANY: usize = 100_000;

const MILLION: usize = 1_000_000;

/// Returns the number of segments as a name: `20k`, `1M`.
fn short(count: usize) -> String {
    match count {
        MILLION.. => format!("{}M", count / MILLION),
        _ => format!("{}k", count / 1_000),
    }
}

/// Measures a store of this many segments.
pub(super) fn measure(effort: Effort, count: usize, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let name = short(count);
    let temporary = temporary()?;
    let peers = temporary.path();
    let store = Store::build(count)?;
    let (tantivy, took) =
        shown("building the index of tantivy", || Tantivy::build(&peers.join("tantivy"), count))?;
    if let Some(seconds) = store.seconds {
        let what = format!(
            "build a store of {name} segments, with vectors from a model that takes no time"
        );
        let figure = Figure::new(format!("memory-build-{name}"), what, "s", seconds)
            .beside_limit("tantivy, the words alone, one thread", took.as_secs_f64());
        print(if count == MILLION { figure.goal(Goal::AtMost(300.0)) } else { figure });
    }
    opening(effort, &store, &name, print)?;
    let memory = shown("opening it", || store.open())?;
    let asked = Asked::default();
    let sides: [Side<'_>; 3] = [
        Box::new(|| asked.hybrid(&memory)),
        Box::new(|| asked.words(&memory)),
        Box::new(|| asked.of(|question| tantivy.search(question))),
    ];
    let rounds = effort.rounds(8) * QUESTIONS;
    let [hybrid, words, limit] = shown("searching", || medians(rounds, sides))?;
    let what = format!("search {name} segments by words and vectors: p50");
    let figure = Figure::new(format!("memory-hybrid-{name}"), what, "ms", hybrid);
    let goal = match count {
        20_000 => Some(0.5),
        MILLION => Some(5.0),
        _ => None,
    };
    let figure = figure.beside_limit(TANTIVY, limit);
    print(goal.into_iter().fold(figure, |figure, most| figure.goal(Goal::AtMost(most))));
    drop(memory);

    let file = peers.join("fts5");
    let fts5 = shown("building the index of SQLite", || Fts5::build(&file, count))?;
    let rounds = effort.rounds(4) * QUESTIONS;
    let side: [Side<'_>; 1] = [Box::new(|| asked.of(|question| fts5.search(question)))];
    let [theirs] = shown("searching that", || medians(rounds, side))?;
    print(
        Figure::new(
            format!("memory-words-{name}"),
            format!("search {name} segments by words: p50"),
            "ms",
            words,
        )
        .beside_peer(FTS5, theirs)
        .beside_limit(TANTIVY, limit),
    );
    print(
        Figure::new(
            format!("memory-lexical-{name}"),
            format!("the lexical index of {name} segments on disk"),
            "MiB",
            size(&store.folder.join("lexical"))?,
        )
        .beside_peer(FTS5, std::fs::metadata(&file)?.len() as f64 / f64::from(1 << 20))
        .beside_limit("tantivy", size(&peers.join("tantivy"))?),
    );
    if count <= MANY {
        adding(effort, count, &tantivy, &fts5, print)?;
    }
    Ok(())
}

/// The questions, in turn.
struct Asked {
    questions: Vec<String>,
    vectors: Vec<Vec<f32>>,
    next: Cell<usize>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { questions: questions(), vectors: query_vectors(), next: Cell::new(0) }
    }
}

impl Asked {
    /// Returns the milliseconds of a search for the next question. Each side gets other questions,
    /// so that none finds the postings that another has just read.
    fn of<T>(&self, search: impl FnOnce(&str) -> Result<Vec<T>>) -> Result<f64> {
        let n = self.next.replace(self.next.get() + 1) * 23 % QUESTIONS;
        let mut found = 0;
        let took = ms(|| {
            let hits = search(&self.questions[n])?;
            found = hits.len();
            anyhow::Ok(hits)
        })?;
        ensure!(found == HITS, "{found} hits for {}", self.questions[n]);
        Ok(took)
    }

    fn words(&self, memory: &Memory) -> Result<f64> {
        self.of(|question| Ok(memory.search(&query(question), None)?))
    }

    fn hybrid(&self, memory: &Memory) -> Result<f64> {
        let vector = &self.vectors[self.next.get() % QUESTIONS];
        self.of(|question| Ok(memory.search(&query(question), Some(vector))?))
    }
}

/// Opens the store in processes of their own, beside reading the same files.
fn opening(effort: Effort, store: &Store, name: &str, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let is_large = name == short(MILLION);
    for (with, what) in [(With::Words, "words"), (With::Vectors, "words and vectors")] {
        let (mut opened, mut read, mut mib) = (Vec::new(), Vec::new(), 0.0);
        shown(&format!("opening it in other processes, with {what}"), || {
            for round in 0..=effort.rounds(5) {
                let (one, other) = (store.open_elsewhere(with)?, store.read(with)?);
                if round > 0 {
                    opened.push(one);
                    read.push(other.1);
                    mib = other.0;
                }
            }
            anyhow::Ok(())
        })?;
        let median = |of: fn(&super::store::Opened) -> Option<f64>| {
            let mut all: Vec<_> = opened.iter().filter_map(of).collect();
            (!all.is_empty()).then(|| quantile(&mut all, 0.5))
        };
        let figure = Figure::new(
            format!("memory-open-{}-{name}", with.name()),
            format!("open {name} segments, and search them by {what}, in a new process"),
            "s",
            median(|opened| Some(opened.seconds)).unwrap_or_default(),
        );
        let limit = format!("reading its files once, {mib:.0} MiB in the page cache");
        let figure = figure.beside_limit(limit, quantile(&mut read, 0.5));
        let is_goal = is_large && with == With::Vectors;
        print(if is_goal { figure.goal(Goal::AtMost(0.5)) } else { figure });
        type Size = fn(&super::store::Opened) -> Option<f64>;
        let sizes: [(&str, &str, Size); 3] = [
            ("resident", "memory of that process", |opened| opened.resident_mib),
            ("anonymous", "of it not pages of files", |opened| opened.anonymous_mib),
            ("peak", "its most at any time", |opened| opened.peak_mib),
        ];
        for (part, of_it, of) in sizes {
            let Some(value) = median(of) else { continue };
            let id = format!("memory-{part}-{}-{name}", with.name());
            let what = format!("{of_it}: {name} segments, {what}");
            let figure = Figure::new(id, what, "MiB", value);
            let figure = figure.beside_limit("its indexes on disk", store.indexes(with)?);
            let is_goal = is_goal && part == "resident";
            print(if is_goal { figure.goal(Goal::AtMost(614.0)) } else { figure });
        }
    }
    Ok(())
}

/// Adding a segment and finding it by a word that only it has, while nothing is synced; and a vector
/// of hashed words.
fn adding(
    effort: Effort,
    count: usize,
    tantivy: &Tantivy,
    fts5: &Fts5,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let temporary = temporary()?;
    let filled = |with: With| -> Result<Memory> {
        let memory = Memory::open(temporary.path().join(with.name()), settings(with));
        shown("filling another store", || {
            add(&memory, count)?;
            anyhow::Ok(memory.settle()?)
        })?;
        Ok(memory)
    };
    let (words, hashes) = (filled(With::Words)?, filled(With::Hashes)?);
    let mut writer = tantivy.writer()?;
    // Each side adds other segments.
    let next = Cell::new(count);
    let number = || next.replace(next.get() + 1);
    let add_to = |memory: &Memory| {
        let n = number();
        let (segment, text) = (segment(n), format!("t{n}"));
        ms(|| {
            memory.add(std::slice::from_ref(&segment))?;
            let hits = memory.search(&query(&text), None)?;
            ensure!(hits.first().is_some_and(|hit| hit.id == segment.id), "ctx does not find it");
            Ok(hits)
        })
    };
    let sides: [Side<'_>; 4] = [
        Box::new(|| add_to(&words)),
        Box::new(|| add_to(&hashes)),
        Box::new(|| ms(|| fts5.add(number()))),
        Box::new(|| ms(|| tantivy.add(&mut writer, number()))),
    ];
    let [words, hashes, fts5, tantivy] =
        shown("adding more", || medians(effort.rounds(5) * 10, sides))?;
    let id = |with: &str| format!("memory-add-{with}-{}", short(count));
    let what = "add a segment and find it by a word";
    print(Figure::new(id("words"), what, "ms", words).beside_peer(FTS5, fts5));
    print(
        Figure::new(id("hashes"), format!("{what}, with its vector of hashes"), "ms", hashes)
            .beside_peer("tantivy, which syncs it", tantivy),
    );
    let text = segment(0).content;
    let hash: [Side<'_>; 1] = [Box::new(|| {
        ms(|| {
            (0..1_000).for_each(|_| drop(black_box(HashEmbedder.vector(black_box(&text)))));
            anyhow::Ok(())
        })
    })];
    let [hash] = medians(effort.rounds(9), hash)?;
    print(Figure::new("memory-hash", "a vector of the hashed words of a segment", "µs", hash));
    Ok(())
}
