//! The store: everything of one agent's memory, ready to be searched.
//!
//! ```text
//! add --> source (segments.jsonl) ------------------> get
//!     \-> live: rows, words, vectors ---------------> search
//!           words: new (in memory) --> set aside --> index on disk   a thread, batch by batch
//! ```
//!
//! What is added is found at once. A search waits for nobody but for those who swap one part for
//! another: files are read and written, and indexes are made, while it goes on. The same segment is
//! in one index at a time, so scores are the same before and after it was written.
//!
//! Locks are taken in this order: indexer, source, live.

mod archiving;
mod embed;
mod excerpt;
mod forget;
mod graph;
mod indexer;
mod live;
mod load;
mod read;
mod recalling;
mod session;
mod settings;
mod source;
mod stats;
mod study;
mod take;
#[cfg(test)]
mod tests;
mod vectors;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result, Role};

pub(crate) use embed::vectors_of;
pub use session::SessionMemory;
pub use settings::{Settings, VectorModel, Vectors};
pub use stats::Stats;

use self::embed::Unembedded;
use self::indexer::{Indexer, Much};
use self::live::Live;
use self::source::{Held, Source};
use crate::layer::Warnings;
use crate::vectors::VectorFile;
use crate::{HashEmbedder, Hit, Query, Segment, SegmentId, diversify};

/// New pieces are written to the index on disk when there are so many.
const BATCH: usize = 1_000;

/// With variety wanted, it is chosen from so many times what was asked for.
const CHOICE: usize = 4;

/// One agent's memory. Cheap to clone; clones share it.
///
/// # Notes
///
/// Nothing is read before it is first used. What is derived from the archive (the index, the
/// vectors) and cannot be read or written is made anew or done without, and [`take_warnings`] says
/// so once. Only the archive itself can fail.
///
/// [`take_warnings`]: Self::take_warnings
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    /// Where the files are; `None` for a memory that has none.
    folder: Option<PathBuf>,
    agent: String,
    settings: Settings,
    indexer: Mutex<Indexer>,
    source: Mutex<Source>,
    live: RwLock<Live>,
    vectors: Mutex<Option<VectorFile>>,
    is_open: AtomicBool,
    /// Whether a thread writes the index, or is about to.
    is_indexing: AtomicBool,
    /// Until when a model that failed is left alone, by its clock.
    rests_until: Mutex<Option<Duration>>,
    /// Held by whoever makes vectors: others wait, and find them made.
    embedding: futures_util::lock::Mutex<()>,
    /// What a model makes no vectors of.
    unembedded: Mutex<Unembedded>,
    /// Whether words of older messages were nowhere when they were read, and nobody asked since.
    was_wordless: AtomicBool,
    was_searched: AtomicBool,
    /// Whether somebody waits for the indexer, so that it should not begin to build a graph, nor go on.
    is_wanted_elsewhere: AtomicBool,
    warnings: Mutex<Warnings>,
}

impl Memory {
    /// The memory of an agent in `folder`, usually `agents/<agent>/memory/context`. Nothing is read
    /// or written yet.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, agent: impl Into<String>, settings: Settings) -> Self {
        Self::new(Some(folder.into()), agent.into(), settings)
    }

    /// A memory without files, for replays and tests.
    #[must_use]
    pub fn in_memory(agent: impl Into<String>, settings: Settings) -> Self {
        Self::new(None, agent.into(), settings)
    }

    fn new(folder: Option<PathBuf>, agent: String, settings: Settings) -> Self {
        let inner = Inner {
            indexer: Mutex::new(Indexer::new(folder.as_ref().map(|at| at.join("lexical")))),
            live: RwLock::new(Live::new(&settings, 0)),
            folder,
            agent,
            source: Mutex::new(Source::Held(Held::new(settings.limits.max_segments))),
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

    /// Whose memory it is.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.inner.agent
    }

    /// How it behaves.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Returns when everything that was taken in is on disk.
    ///
    /// # Errors
    ///
    /// Where it cannot be written, or may not. It stays in memory, is found, and the next call tries
    /// again.
    pub fn flush(&self) -> Result<()> {
        {
            let mut source = self.inner.opened()?;
            if self.inner.settings.read_only {
                let pending = self.inner.live().pending.len();
                return if pending == 0 { Ok(()) } else { Err(read_only()) };
            }
            let changes = source.commit(self.inner.settings.now())?;
            self.inner.follow(&mut source, &changes)?;
            // Here, so that nobody adds one meanwhile whose segment is not known.
            self.inner.thin_vectors();
        }
        self.inner.flush_vectors();
        self.nudge();
        Ok(())
    }

    /// Takes over what other processes wrote. As long as this one writes there is no need to: it does so
    /// itself.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn refresh(&self) -> Result<()> {
        self.inner.ensure_open()?;
        let Ok(mut source) = self.inner.source.try_lock() else { return Ok(()) };
        self.inner.catch_up(&mut source)
    }

    /// The session of that name, or the only one whose name begins so.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn session_named(&self, name: &str) -> Result<Option<String>> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().index.session_named(name).map(str::to_owned))
    }

    /// The segments of a session, in the order in which they were said.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn of_session(&self, session: &str) -> Result<Vec<Segment>> {
        self.inner.ensure_open()?;
        let ids: Vec<SegmentId> = {
            let live = self.inner.live();
            let ids = live.index.rows_of(session).filter_map(|row| live.id(row));
            ids.filter(|id| live.row(*id).is_some()).collect()
        };
        Ok(self.get(&ids)?.into_iter().rev().flatten().collect())
    }

    /// The segments that fit a query, best first. Where a model makes the vectors, `vector` is that
    /// of the query, by [`vector_of`](Self::vector_of); without one, words alone decide.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn search(&self, query: &Query<'_>, vector: Option<&[f32]>) -> Result<Vec<Hit>> {
        self.inner.ensure_open()?;
        self.look_for_words();
        if !self.inner.was_searched.swap(true, Ordering::Relaxed) {
            // A graph that is on disk, or of which there is none, helps those that follow.
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

    /// Segments by their ids; `None` for those that are not there.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn get(&self, ids: &[SegmentId]) -> Result<Vec<Option<Segment>>> {
        self.inner.get(ids)
    }

    /// The turns before and after a segment, in its session.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn neighbours(&self, id: SegmentId) -> Result<Vec<SegmentId>> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().neighbours(id))
    }

    /// The reply to what the user says in a segment: the last words of the assistant before the user
    /// speaks again.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn reply(&self, id: SegmentId) -> Result<Option<Segment>> {
        self.inner.ensure_open()?;
        let replies = self.inner.live().replies(id);
        let mut replies = self.get(&replies)?.into_iter().flatten();
        Ok(replies.find(|reply| reply.role == Role::Assistant))
    }

    /// Lets go of what is too old or too much, and says how many that were.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read or written.
    pub fn evict(&self) -> Result<usize> {
        let mut source = self.inner.opened()?;
        let changes = source.commit(self.inner.settings.now())?;
        self.inner.follow(&mut source, &changes)?;
        Ok(changes.removed.len())
    }

    /// Makes the index of words anew, and the hash vectors that are missing, and returns when they are
    /// there.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read, or the index not be written.
    pub fn rebuild(&self) -> Result<()> {
        self.inner.ensure_open()?;
        let mut indexer = self.inner.indexer();
        indexer.rebuild(&self.inner)?;
        self.inner.hash_missing()
    }

    /// Writes what is new to the index now, and returns when that is done. There is no need to: it
    /// is found either way, and written in time.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn settle(&self) -> Result<()> {
        self.inner.ensure_open()?;
        self.inner.indexer().run(&self.inner, Much::All)
    }

    /// How many segments have their words in no index: they are found once [`settle`](Self::settle)
    /// returned, or a thread has done the same, which the first search begins.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn wordless(&self) -> Result<usize> {
        self.inner.ensure_open()?;
        Ok(self.inner.live().wordless.len())
    }

    /// What did not work and was done without; each is said once.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has the index made where a store was opened whose index was gone, and says so.
    fn look_for_words(&self) {
        let inner = &self.inner;
        let asked = inner.was_wordless.load(Ordering::Acquire)
            && inner.was_wordless.swap(false, Ordering::AcqRel);
        if asked && !inner.live().wordless.is_empty() {
            inner.warn(
                "the lexical index is being made: older messages are found once it is".into(),
            );
            self.nudge();
        }
    }

    /// Has the index written by a thread, where there is enough to write.
    fn nudge(&self) {
        let inner = &self.inner;
        if !inner.wants_indexing() || inner.is_indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let worker = self.clone();
        let started =
            std::thread::Builder::new().name("ctx-memory-index".into()).spawn(move || {
                let done = {
                    // Whatever becomes of it: after a panic the next one is to begin.
                    let _over = Over(&worker.inner.is_indexing);
                    worker.inner.indexer().run(&worker.inner, Much::Batches)
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

    /// Opens the memory, the first time.
    fn ensure_open(&self) -> Result<()> {
        match self.is_open.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.open(),
        }
    }

    /// The source, once the memory is open.
    fn opened(&self) -> Result<MutexGuard<'_, Source>> {
        self.ensure_open()?;
        Ok(self.source.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    fn wants_indexing(&self) -> bool {
        self.has_batch() || {
            let live = self.live();
            !live.vectorless.is_empty() || live.wants_graph()
        }
    }

    /// Whether there is enough to be written for a commit to be worth while.
    fn has_batch(&self) -> bool {
        let live = self.live();
        let is_writable = self.folder.is_some() && !self.settings.read_only;
        is_writable && (live.index.fresh() >= BATCH || !live.wordless.is_empty())
    }

    /// Puts another state of things in the place of the present one.
    fn swap(&self, live: Live) {
        let old = std::mem::replace(&mut *self.live_mut(), live);
        drop(old);
    }
}

/// Says that something is over when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a memory that writes nothing says of what would.
fn read_only() -> Error {
    Error::new(ErrorKind::InvalidInput, "the memory is opened to be read alone")
        .hint("open it without `read_only`; what was taken in is in memory")
}
