//! Records of the sent requests.
//!
//! A [`Record`] describes one request: its size, the edits made to fit it, and its outcome. Sizes
//! stay in memory; entries are written to disk, one line per record, and read on demand. Both are
//! bounded: the least recently used conversation is evicted first. A record contains no key and no
//! whole message, only the first characters of each message, redacted by the caller. Summaries are
//! on disk; their first 4 KiB are in memory.

mod cache;
mod disk;
mod record;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::Result;
use tokio::sync::broadcast;

use cache::RecordCache;
use disk::TraceDisk;

pub use record::{
    BreakCause, CompactionRecord, ComponentRecord, EntryRecord, EntryState, PrefixBreak, Record,
    RequestOutcome, SessionInfo, SummaryOutcome, SummaryRecord,
};
pub(crate) use record::{PREVIEW_CHARS, of_manifest};

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

/// The records of a server.
#[derive(Debug)]
pub struct Trace {
    cache: Arc<Mutex<RecordCache>>,
    disk: Option<TraceDisk>,
    feed: broadcast::Sender<TraceEvent>,
}

impl Trace {
    /// Keeps records in memory only, including entries.
    #[must_use]
    pub fn in_memory(limits: TraceLimits) -> Self {
        let cache = Arc::new(Mutex::new(RecordCache::new(limits, cache::Retention::Entries)));
        Self { cache, disk: None, feed: broadcast::channel(FEED).0 }
    }

    /// Keeps records in a folder, which is created if missing. Existing records are loaded on a
    /// separate thread.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if the folder or the thread cannot be created.
    pub fn at(folder: impl Into<PathBuf>, limits: TraceLimits) -> Result<Self> {
        let cache = Arc::new(Mutex::new(RecordCache::new(limits, cache::Retention::Sizes)));
        let disk = TraceDisk::open(folder.into(), limits.bytes, cache.clone())?;
        Ok(Self { cache, disk: Some(disk), feed: broadcast::channel(FEED).0 })
    }

    /// Adds a conversation, or updates its description.
    pub fn session(&self, info: SessionInfo) {
        let info = Arc::new(info);
        let gone = self.lock().begin(info.clone());
        if let Some(disk) = &self.disk {
            disk.begin(info.clone());
        }
        self.publish(TraceEvent::Session(info));
        self.evict(gone);
    }

    /// Adds a request.
    pub fn add(&self, record: Record) {
        let (sizes, gone) = self.lock().add(&record);
        if let Some(disk) = &self.disk {
            disk.add(record);
        }
        self.publish(TraceEvent::Recorded(sizes));
        self.evict(gone);
    }

    /// Returns the number of lines that could not be written because the disk was too slow or full.
    /// The sizes of lost records stay in memory, their entries do not.
    #[must_use]
    pub(crate) fn lost(&self) -> u64 {
        self.disk.as_ref().map_or(0, TraceDisk::lost)
    }

    /// Records that the compaction with that entry was undone.
    pub(crate) fn undone(&self, session: &str, entry: &str) {
        self.lock().undone(session, entry);
        if let Some(disk) = &self.disk {
            disk.undone(session, entry);
        }
    }

    /// Waits until all records are on disk.
    pub fn settle(&self) {
        if let Some(disk) = &self.disk {
            disk.settle();
        }
    }

    /// Returns all conversations, most recently used first.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionTrace> {
        self.lock().all()
    }

    /// Returns one conversation.
    #[must_use]
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
        if let Some(disk) = &self.disk {
            disk.settle();
        }
        let Some((sizes, position)) = self.lock().record(session, number) else { return Ok(None) };
        match (&self.disk, position) {
            (Some(disk), Some(position)) => disk.read(session, position).map(|record| {
                // An undo is a later line of the file, so it is taken from memory.
                let undone = sizes.compaction.as_ref().is_some_and(|known| known.undone);
                let compaction =
                    record.compaction.map(|known| CompactionRecord { undone, ..known });
                Some(Record { compaction, ..record })
            }),
            _ => Ok(Some(Record::clone(&sizes))),
        }
    }

    /// Subscribes to future events.
    #[must_use]
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
        if let Some(disk) = &self.disk {
            disk.remove(gone.clone());
        }
        self.publish(TraceEvent::Gone(gone));
    }

    fn lock(&self) -> MutexGuard<'_, RecordCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
