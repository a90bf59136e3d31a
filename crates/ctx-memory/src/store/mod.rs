//! The store: one agent's searchable memory.
//!
//! ```text
//! add --> source (segments.jsonl) ------------------> get
//!     \-> live: rows, words, vectors ---------------> search
//!           words: new (in memory) --> frozen --> index on disk   by a thread, in batches
//! ```
//!
//! Added segments can be searched at once. A search only waits while one part of the state is
//! swapped for another: files are read and written, and indexes are built, concurrently. A segment
//! is in one index at a time, so scores are the same before and after it is written.
//!
//! Locks are taken in this order: indexer, source, live.

mod add;
mod archiving;
mod embed;
mod excerpt;
mod fact_extraction;
mod forget;
mod indexer;
mod live;
mod load;
mod read;
mod recall;
mod session;
mod settings;
mod source;
mod stats;
#[cfg(test)]
mod tests;
mod vectors;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Role, Warnings};

pub use session::SessionMemory;
pub use settings::{MemorySettings, Vectors};
pub use stats::MemoryStats;

use self::embed::Unembedded;
use self::indexer::{Indexer, WriteScope};
use self::live::Live;
use self::source::InMemorySegments;
use crate::archive::Source;
use ctx_search::search::diversify;
use ctx_search::vectors::VectorFile;
use ctx_search::{HashEmbedder, Hit, Query, Segment, SegmentId};

/// The number of new pieces that are written to the index on disk as a batch.
const BATCH: usize = 1_000;

/// Maximal marginal relevance selects from this many times the requested hits.
const CHOICE: usize = 4;

/// One agent's memory. Cheap to clone; clones share it.
///
/// # Notes
///
/// Files are read on first use. Derived data (the index, the vectors) that cannot be read or
/// written is rebuilt or ignored, and [`take_warnings`] reports it once. Only the archive itself
/// can fail.
///
/// [`take_warnings`]: Self::take_warnings
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    /// The folder of the files; `None` for a memory without files.
    folder: Option<PathBuf>,
    settings: MemorySettings,
    indexer: Mutex<Indexer>,
    source: Mutex<Box<dyn Source>>,
    live: RwLock<Live>,
    vectors: Mutex<Option<VectorFile>>,
    is_open: AtomicBool,
    /// Whether a thread writes the index, or is about to.
    is_indexing: AtomicBool,
    /// A failed model is not called before this time on its clock.
    rests_until: Mutex<Option<Duration>>,
    /// Held while vectors are computed: others wait, and find them done.
    embedding: futures_util::lock::Mutex<()>,
    /// Segments that the model cannot embed.
    unembedded: Mutex<Unembedded>,
    /// Whether older messages were loaded without indexed words, and no search has reported it yet.
    was_wordless: AtomicBool,
    was_searched: AtomicBool,
    /// Whether another thread waits for the indexer, so that computing hash vectors is interrupted.
    is_wanted_elsewhere: AtomicBool,
    warnings: Mutex<Warnings>,
}

impl Memory {
    /// Returns the memory of an agent in `folder`, usually `agents/<agent>/memory/context`. Nothing
    /// is read or written yet.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, settings: MemorySettings) -> Self {
        Self::new(Some(folder.into()), settings)
    }

    /// Returns a memory without files, for replays and tests.
    #[must_use]
    pub fn in_memory(settings: MemorySettings) -> Self {
        Self::new(None, settings)
    }

    fn new(folder: Option<PathBuf>, settings: MemorySettings) -> Self {
        let inner = Inner {
            indexer: Mutex::new(Indexer::new(folder.as_ref().map(|at| at.join("lexical")))),
            live: RwLock::new(Live::new(&settings, 0)),
            folder,
            source: Mutex::new(Box::new(InMemorySegments::new(settings.limits.max_segments))),
            vectors: Mutex::default(),
            settings,
            is_open: AtomicBool::new(false),
            is_indexing: AtomicBool::new(false),
            rests_until: Mutex::default(),
            embedding: futures_util::lock::Mutex::default(),
            unembedded: Mutex::default(),
            was_wordless: AtomicBool::new(false),
            was_searched: AtomicBool::new(false),
            is_wanted_elsewhere: AtomicBool::new(false),
            warnings: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The settings.
    pub fn settings(&self) -> &MemorySettings {
        &self.inner.settings
    }

    /// Writes all added segments to disk.
    ///
    /// # Errors
    ///
    /// If they cannot be written, or the memory is read-only. They stay searchable in memory, and
    /// the next call tries again.
    pub fn flush(&self) -> Result<()> {
        {
            let mut source = self.inner.opened()?;
            if self.inner.settings.read_only {
                let pending = self.inner.live().pending.len();
                return if pending == 0 { Ok(()) } else { Err(read_only()) };
            }
            let changes = source.commit(self.inner.settings.now())?;
            self.inner.follow(&mut **source, &changes)?;
            // Done under the lock, so that no vector of an unknown segment is added meanwhile.
            self.inner.thin_vectors();
        }
        self.inner.flush_vectors();
        self.nudge();
        Ok(())
    }

    /// Applies what other processes wrote. Not needed while this process writes, because each write
    /// does so.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn refresh(&self) -> Result<()> {
        self.inner.ensure_open()?;
        let Ok(mut source) = self.inner.source.try_lock() else { return Ok(()) };
        self.inner.catch_up(&mut **source)
    }

    /// Returns the session of that name, or the only one whose name begins with it.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn session_named(&self, name: &str) -> Result<Option<String>> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().index.session_named(name).map(str::to_owned))
    }

    /// Returns the segments of a session, in the order of the conversation.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn of_session(&self, session: &str) -> Result<Vec<Segment>> {
        self.inner.ensure_open()?;
        let ids: Vec<SegmentId> = {
            let live = self.inner.live();
            let ids = live.index.rows_of(session).filter_map(|row| live.id(row));
            ids.filter(|id| live.row(*id).is_some()).collect()
        };
        Ok(self.get(&ids)?.into_iter().rev().flatten().collect())
    }

    /// Returns the segments that match a query, best first. With a model, `vector` is the query's
    /// vector, by [`vector_of`](Self::vector_of); without a vector, the score is lexical.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn search(&self, query: &Query<'_>, vector: Option<&[f32]>) -> Result<Vec<Hit>> {
        self.inner.ensure_open()?;
        self.look_for_words();
        if !self.inner.was_searched.swap(true, Ordering::Relaxed) {
            // Writes what an earlier run left unwritten.
            self.nudge();
        }
        let settings = &self.inner.settings;
        let weight = settings.weight();
        let made = settings.hashes().then(|| HashEmbedder.vector(query.text));
        let vector = made.as_deref().or(vector);
        let lambda = settings.search.mmr_lambda;
        if lambda >= 1.0 {
            return Ok(self.inner.live().search(query, vector, weight));
        }
        let wider = Query { limit: query.limit.saturating_mul(CHOICE), ..query.clone() };
        let hits = self.inner.live().search(&wider, vector, weight);
        let ids: Vec<_> = hits.iter().map(|hit| hit.id).collect();
        let texts =
            self.get(&ids)?.into_iter().map(|found| found.map_or(String::new(), |s| s.content));
        let mut texts: std::collections::HashMap<_, _> = ids.into_iter().zip(texts).collect();
        Ok(diversify(hits, lambda, query.limit, |id| texts.remove(&id).unwrap_or_default()))
    }

    /// Returns segments by their ids; `None` for missing ones.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn get(&self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        self.inner.get(ids)
    }

    /// Returns the previous and next turn of a segment in its session.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub(crate) fn neighbours(&self, id: SegmentId) -> Result<Vec<SegmentId>> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().neighbours(id))
    }

    /// Returns the reply to a user's segment: the last message of the assistant before the user's
    /// next one.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub(crate) fn reply(&self, id: SegmentId) -> Result<Option<Segment>> {
        self.inner.ensure_open()?;
        let replies = self.inner.live().replies(id);
        let mut replies = self.get(&replies)?.into_iter().flatten();
        Ok(replies.find(|reply| reply.role == Role::Assistant))
    }

    /// Rebuilds the lexical index, computes missing hash vectors, and returns when they are done.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read, or the index cannot be written.
    pub fn rebuild(&self) -> Result<()> {
        self.inner.ensure_open()?;
        let mut indexer = self.inner.indexer();
        indexer.rebuild(&self.inner)?;
        self.inner.hash_missing()
    }

    /// Writes new segments to the index now. Not required: they can be searched anyway, and are
    /// written in time.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn settle(&self) -> Result<()> {
        self.inner.ensure_open()?;
        self.inner.indexer().run(&self.inner, WriteScope::All)
    }

    /// The number of segments whose words are in no index. They can be searched after
    /// [`settle`](Self::settle), or after the background thread, which the first search starts, is
    /// done.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn wordless(&self) -> Result<usize> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().wordless.len())
    }

    /// Returns warnings about failures that were worked around; each is returned once.
    pub fn take_warnings(&self) -> Vec<String> {
        self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// If the index was missing when the store was opened, starts to build it and warns.
    fn look_for_words(&self) {
        let inner = &self.inner;
        let asked = inner.was_wordless.load(Ordering::Acquire)
            && inner.was_wordless.swap(false, Ordering::AcqRel);
        if asked && !inner.live().wordless.is_empty() {
            inner.warn(
                "the lexical index is being rebuilt: older messages are not found until it is ready".into(),
            );
            self.nudge();
        }
    }

    /// Starts a thread that writes the index, if there is enough to write.
    fn nudge(&self) {
        let inner = &self.inner;
        if !inner.wants_indexing() || inner.is_indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let worker = self.clone();
        let started =
            std::thread::Builder::new().name("ctx-memory-index".into()).spawn(move || {
                let done = {
                    // Reset in any case: after a panic, the next thread must be able to start.
                    let _over = Over(&worker.inner.is_indexing);
                    worker.inner.indexer().run(&worker.inner, WriteScope::Batches)
                };
                if let Err(error) = done {
                    worker.inner.warn(format!("the lexical index was not written: {error}"));
                }
            });
        if started.is_err() {
            inner.is_indexing.store(false, Ordering::Release);
        }
    }
}

impl Inner {
    fn live(&self) -> RwLockReadGuard<'_, Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_mut(&self) -> RwLockWriteGuard<'_, Live> {
        self.live.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn indexer(&self) -> MutexGuard<'_, Indexer> {
        self.indexer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unembedded(&self) -> MutexGuard<'_, Unembedded> {
        self.unembedded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the memory on first use.
    fn ensure_open(&self) -> Result<()> {
        match self.is_open.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.open(),
        }
    }

    /// Returns the source, after opening the memory.
    fn opened(&self) -> Result<MutexGuard<'_, Box<dyn Source>>> {
        self.ensure_open()?;
        Ok(self.source.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    fn wants_indexing(&self) -> bool {
        self.has_batch() || !self.live().vectorless.is_empty()
    }

    /// Whether there is enough to write for a commit.
    fn has_batch(&self) -> bool {
        let live = self.live();
        let is_writable = self.folder.is_some() && !self.settings.read_only;
        is_writable && (live.index.fresh() >= BATCH || !live.wordless.is_empty())
    }

    /// Replaces the searchable state.
    fn swap(&self, live: Live) {
        let old = std::mem::replace(&mut *self.live_mut(), live);
        drop(old);
    }
}

/// Clears the flag when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The error of a write to a read-only memory.
fn read_only() -> Error {
    Error::new(ErrorKind::InvalidInput, "the memory is read-only")
        .hint("open it without `read_only`; added messages are kept in memory")
}
