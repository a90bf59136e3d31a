//! Records of the sent requests.
//!
//! A [`Record`] describes one request: its size, the edits made to fit it, and its outcome. Sizes
//! stay in memory; entries are written to disk, one line per record, and read on demand. Both are
//! bounded: the least recently used conversation is evicted first. A record contains no key and no
//! whole message, only the first characters of each message, redacted by the caller. Summaries are
//! on disk; their first 4 KiB are in memory.

#![forbid(unsafe_code)]

mod cache;
mod disk;
mod line;
mod record;
pub mod stats;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::Result;
use tokio::sync::broadcast;

use cache::RecordCache;
use disk::{TraceDisk, WriteTask};

pub use record::{
    BreakCause, CompactionRecord, EntryRecord, PREVIEW_CHARS, PrefixBreak, Preview, Record,
    RequestOutcome, SessionInfo, SummaryOutcome, SummaryRecord, is_plausible,
};

/// How many events a subscriber may lag behind before it misses some.
const FEED: usize = 256;

/// Limits of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLimits {
    /// Records in memory, over all conversations. Default: 20,000.
    pub records: usize,
    /// Bytes on disk. Default: 128 MiB.
    pub bytes: u64,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self { records: 20_000, bytes: 128 << 20 }
    }
}

/// An event.
#[derive(Clone, Debug)]
pub enum TraceEvent {
    /// A request ended. Its entries are omitted.
    Recorded(Arc<Record>),
    /// A conversation began, or its description changed.
    Session(Arc<SessionInfo>),
    /// Conversations were evicted.
    Gone(Vec<String>),
}

/// A conversation and its requests, without their entries.
#[derive(Clone, Debug)]
pub struct SessionTrace {
    /// Its description.
    pub info: Arc<SessionInfo>,
    /// Its requests, oldest first. Early ones may have been evicted.
    pub requests: Vec<Arc<Record>>,
}

/// The records in a folder.
#[derive(Clone, Debug, Default)]
pub struct StoredRecords {
    /// The conversations, in no order.
    pub sessions: Vec<SessionTrace>,
    /// Skipped lines: they are damaged, or of a later version. A file that cannot be read counts
    /// as one.
    pub damaged: u64,
}

impl StoredRecords {
    /// Reads the folder of a [`Trace`], which a server may be writing. A missing folder is empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if the folder exists and cannot be listed.
    pub fn read(folder: &Path) -> Result<Self> {
        disk::read_folder(folder)
    }
}

/// The records of a server.
#[derive(Debug)]
pub struct Trace {
    cache: Arc<Mutex<RecordCache>>,
    disk: TraceDisk,
    feed: broadcast::Sender<TraceEvent>,
}

impl Trace {
    /// Keeps records in a folder, which is created if missing. Existing records are loaded on a
    /// separate thread.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if the folder or the thread cannot be created.
    pub fn at(folder: impl Into<PathBuf>, limits: TraceLimits) -> Result<Self> {
        let cache = Arc::new(Mutex::new(RecordCache::new(limits)));
        let disk = TraceDisk::open(folder.into(), limits.bytes, cache.clone())?;
        Ok(Self { cache, disk, feed: broadcast::channel(FEED).0 })
    }

    /// Adds a conversation, or updates its description.
    pub fn session(&self, info: SessionInfo) {
        let info = Arc::new(info);
        let gone = self.lock().begin(info.clone());
        self.disk.enqueue(WriteTask::Begin(info.clone()));
        self.publish(TraceEvent::Session(info));
        self.evict(gone);
    }

    /// Adds a request.
    pub fn add(&self, record: Record) {
        let (sizes, gone) = self.lock().add(&record);
        self.disk.enqueue(WriteTask::Add(Box::new(record)));
        self.publish(TraceEvent::Recorded(sizes));
        self.evict(gone);
    }

    /// Returns the number of lines that could not be written because the disk was too slow or full.
    /// The sizes of lost records stay in memory, their entries do not.
    pub fn lost(&self) -> u64 {
        self.disk.lost()
    }

    /// Records that the compaction with that entry was undone.
    pub fn undone(&self, session: &str, entry: &str) {
        self.lock().undone(session, entry);
        self.disk.enqueue(WriteTask::Undone(session.to_owned(), entry.to_owned()));
    }

    /// Waits until all records are on disk.
    pub fn settle(&self) {
        self.disk.settle();
    }

    /// Returns all conversations, most recently used first.
    pub fn sessions(&self) -> Vec<SessionTrace> {
        self.lock().all()
    }

    /// Returns one conversation.
    pub fn of_session(&self, id: &str) -> Option<SessionTrace> {
        self.lock().one(id)
    }

    /// Returns one request with its entries. It may read a file, so it blocks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) and
    /// [`ErrorKind::Corrupt`](ctx_core::ErrorKind::Corrupt), if the file exists and cannot be read.
    pub fn record(&self, session: &str, number: u64) -> Result<Option<Record>> {
        self.disk.settle();
        let Some((sizes, position)) = self.lock().record(session, number) else { return Ok(None) };
        let Some(position) = position else { return Ok(Some(Record::clone(&sizes))) };
        let record = self.disk.read(session, position)?;
        // An undo is a later line of the file, so it is taken from memory.
        let undone = sizes.compaction.as_ref().is_some_and(|known| known.undone);
        let compaction = record.compaction.map(|known| CompactionRecord { undone, ..known });
        Ok(Some(Record { compaction, ..record }))
    }

    /// Subscribes to future events.
    pub fn subscribe(&self) -> broadcast::Receiver<TraceEvent> {
        self.feed.subscribe()
    }

    fn publish(&self, event: TraceEvent) {
        // Having no subscriber is not an error.
        let _ = self.feed.send(event);
    }

    fn evict(&self, gone: Vec<String>) {
        if gone.is_empty() {
            return;
        }
        self.disk.remove(gone.clone());
        self.publish(TraceEvent::Gone(gone));
    }

    fn lock(&self) -> MutexGuard<'_, RecordCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
