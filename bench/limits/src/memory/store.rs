//! Stores of generated segments, with a model's vectors.

use std::fs::{self, File};
use std::io::{Read, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ctx_core::Timestamp;
use ctx_memory::archive::ArchiveLimits;
use ctx_memory::{Memory, MemorySettings, Vectors};
use ctx_search::{Query, SearchSettings};
use futures_executor::block_on;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::corpus::{model, query_vectors, questions, segment};
use super::peers::HITS;
use super::progress::{Stopwatch, chunks, shown};
use crate::process;

/// A store of at least this many segments is kept for the next run.
const KEPT: usize = 100_000;

/// The files that only a search by vectors reads.
const VECTOR_FILES: &str = "vectors.";

/// A store in a folder.
pub(super) struct Store {
    pub(super) folder: PathBuf,
    /// How long it took to build; `None` if a former run has built it.
    pub(super) seconds: Option<f64>,
    _temporary: Option<TempDir>,
}

/// Returns a new folder below `target`: the system's temporary folder may be in memory.
pub(super) fn temporary() -> Result<TempDir> {
    Ok(tempfile::tempdir_in(kept()?)?)
}

/// Returns the folder of what is kept between runs.
fn kept() -> Result<PathBuf> {
    let folder = process::root().join("target/limits");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Store {
    /// Builds a store, or uses the one that a former run has built.
    pub(super) fn build(count: usize) -> Result<Self> {
        if count < KEPT {
            let temporary = temporary()?;
            let folder = temporary.path().join("store");
            let seconds = Some(fill(&folder, count)?);
            return Ok(Self { folder, seconds, _temporary: Some(temporary) });
        }
        let folder = kept()?.join(format!("memory-{count}"));
        let complete = folder.with_extension("complete");
        let is_new = !complete.exists();
        if is_new && folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        // In a complete store, this only replaces derived files of another version.
        let seconds = fill(&folder, count)?;
        fs::write(complete, "")?;
        Ok(Self { folder, seconds: Some(seconds).filter(|_| is_new), _temporary: None })
    }

    /// Opens it for searches by words and vectors.
    pub(super) fn open(&self) -> Result<Memory> {
        let memory = Memory::open(&self.folder, settings(With::Vectors));
        memory.settle()?;
        Ok(memory)
    }

    /// Returns the MiB of the files that opening reads, and how many seconds it takes to read them.
    pub(super) fn read(&self, with: With) -> Result<(f64, f64)> {
        let started = Instant::now();
        let mut bytes = 0;
        let mut buffer = vec![0; 256 << 10];
        for file in files(&self.folder)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if with == With::Words && name.starts_with(VECTOR_FILES) {
                continue;
            }
            let mut file = File::open(&file)?;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => bytes += read,
                }
            }
        }
        Ok((bytes as f64 / MIB, started.elapsed().as_secs_f64()))
    }

    /// Returns the MiB of the indexes: all files but the texts.
    pub(super) fn indexes(&self, with: With) -> Result<f64> {
        let (all, _) = self.read(with)?;
        let texts = fs::metadata(self.folder.join("segments.jsonl"))?.len();
        Ok(all - texts as f64 / MIB)
    }

    /// Opens and searches it in another process.
    pub(super) fn open_elsewhere(&self, with: With) -> Result<Opened> {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        process::answer(command.arg("--memory-child").arg(&self.folder).arg(with.name()))
    }
}

const MIB: f64 = (1 << 20) as f64;

/// Returns the files in a folder and its folders.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the MiB of the files in a folder.
pub(super) fn size(folder: &Path) -> Result<f64> {
    let sizes = files(folder)?.into_iter().map(|file| Ok(fs::metadata(file)?.len()));
    Ok(sizes.sum::<Result<u64>>()? as f64 / MIB)
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Words,
    Hashes,
    Vectors,
}

impl With {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Hashes => "hashes",
            Self::Vectors => "vectors",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Words, Self::Hashes, Self::Vectors].into_iter().find(|with| with.name() == name)
    }
}

/// Returns settings without limits.
pub(super) fn settings(with: With) -> MemorySettings {
    let (vectors, weight) = match with {
        With::Words => (Vectors::None, 0.0),
        With::Hashes => (Vectors::Hash, 0.3),
        With::Vectors => (Vectors::Model(model()), 0.5),
    };
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

/// Adds the segments that a memory does not have, and returns how many seconds that takes.
pub(super) fn add(memory: &Memory, count: usize) -> Result<f64> {
    let known = memory.stats()?.segments;
    let mut watch = Stopwatch::default();
    for numbers in chunks(known.min(count)..count) {
        let segments: Vec<_> = numbers.map(segment).collect();
        watch.run(|| {
            memory.add(&segments)?;
            memory.flush()
        })?;
    }
    Ok(watch.elapsed().as_secs_f64())
}

/// Fills a store, computes its vectors and writes its indexes, and returns how many seconds that
/// takes.
fn fill(folder: &Path, count: usize) -> Result<f64> {
    let memory = Memory::open(folder, settings(With::Vectors));
    let mut seconds = shown(&format!("adding {count} segments"), || add(&memory, count))?;
    let mut watch = Stopwatch::default();
    watch.run(|| {
        shown("adding their vectors", || block_on(memory.embed()))?;
        shown("writing the indexes", || memory.settle())
    })?;
    seconds += watch.elapsed().as_secs_f64();
    for warning in memory.take_warnings() {
        let _ = writeln!(stderr(), "  {warning}");
    }
    let stats = memory.stats()?;
    ensure!(stats.segments == count, "{} segments of {count}", stats.segments);
    ensure!(stats.vectors == count, "{} vectors of {count}", stats.vectors);
    Ok(seconds)
}

/// Returns a question as a query.
pub(super) fn query(text: &str) -> Query<'_> {
    Query { text, session: None, limit: HITS, now: Timestamp(0) }
}

/// What it took a process of its own to open and search a store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    /// Until the answer to the first query.
    pub(super) seconds: f64,
    /// All pages in memory, after many queries; those of files can be dropped at any time.
    pub(super) resident_mib: Option<f64>,
    pub(super) anonymous_mib: Option<f64>,
    /// The most pages in memory at any time.
    pub(super) peak_mib: Option<f64>,
}

/// Opens and searches the store in a folder, and prints [`Opened`].
pub(super) fn child(folder: &Path, with: &str) -> Result<()> {
    let with = With::named(with).context("what is searched: words, hashes or vectors")?;
    let (questions, vectors) = (questions(), query_vectors());
    let started = Instant::now();
    let memory = Memory::open(folder, settings(with));
    let search = |n: usize| {
        let vector = (with == With::Vectors).then_some(&*vectors[n]);
        memory.search(&query(&questions[n]), vector)
    };
    let hits = search(0)?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(hits.len() == HITS, "the first query has {} hits", hits.len());
    // What the first search started is done now, not sometime during the queries.
    memory.settle()?;
    for n in 0..questions.len() {
        search(n)?;
    }
    let mib = |name| process::size_mib("self", name);
    let opened = Opened {
        seconds,
        resident_mib: mib("VmRSS"),
        anonymous_mib: mib("RssAnon"),
        peak_mib: mib("VmHWM"),
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&opened)?)?;
    Ok(())
}
