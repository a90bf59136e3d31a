//! What was sent, request by request.
//!
//! A [`Record`] says of one request what it measured, what was done for it to fit, and what became of
//! it. Sizes stay in memory; entries go to disk, a line a record, and are read when somebody asks.
//! Both are bounded: where there is too much, the conversation that was used longest ago goes first.
//! No key and no whole message is in a record: of each message its first characters, redacted by who
//! records. A summary is on disk; in memory are its first 4 KiB.

mod disk;
mod record;
mod shelf;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::Result;
use tokio::sync::broadcast;

use disk::Disk;
use shelf::Shelf;

pub use record::{
    BEGINS_CHARS, BreakCause, CompactionRecord, ComponentRecord, EntryRecord, EntryState, Outcome,
    PrefixBreak, Record, SessionInfo, Summarised, SummaryOutcome, of_manifest,
};

/// How many news a reader of the feed may be behind before it misses some.
const FEED: usize = 256;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records in memory, over all conversations. Default: 20,000.
    pub records: usize,
    /// Bytes on disk. Default: 128 MiB.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { records: 20_000, bytes: 128 << 20 }
    }
}

/// Something new.
#[derive(Clone, Debug)]
pub enum News {
    /// A request came to its end. Its entries are left out.
    Recorded(Arc<Record>),
    /// A conversation began, or what is known of it changed.
    Session(Arc<SessionInfo>),
    /// Conversations were let go of.
    Gone(Vec<String>),
}

/// One conversation and its requests, without their entries.
#[derive(Clone, Debug)]
pub struct SessionTrace {
    /// What is known of it.
    pub info: Arc<SessionInfo>,
    /// Its requests, oldest first. Early ones may be gone.
    pub requests: Vec<Arc<Record>>,
}

/// The records of a server.
#[derive(Debug)]
pub struct Trace {
    shelf: Arc<Mutex<Shelf>>,
    disk: Option<Disk>,
    feed: broadcast::Sender<News>,
}

impl Trace {
    /// Records in memory alone, entries and all.
    #[must_use]
    pub fn in_memory(limits: Limits) -> Self {
        let shelf = Arc::new(Mutex::new(Shelf::new(limits, shelf::Keep::Entries)));
        Self { shelf, disk: None, feed: broadcast::channel(FEED).0 }
    }

    /// Records in a folder, which is made where it is missing. What it holds is read on a thread of
    /// its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) where the folder or the thread cannot be had.
    pub fn at(folder: impl Into<PathBuf>, limits: Limits) -> Result<Self> {
        let shelf = Arc::new(Mutex::new(Shelf::new(limits, shelf::Keep::Sizes)));
        let disk = Disk::open(folder.into(), limits.bytes, shelf.clone())?;
        Ok(Self { shelf, disk: Some(disk), feed: broadcast::channel(FEED).0 })
    }

    /// Begins a conversation, or says what is known of it now.
    pub fn session(&self, info: SessionInfo) {
        let info = Arc::new(info);
        let gone = self.lock().begin(info.clone());
        if let Some(disk) = &self.disk {
            disk.begin(info.clone());
        }
        self.tell(News::Session(info));
        self.let_go(gone);
    }

    /// Adds a request.
    pub fn add(&self, record: Record) {
        let (sizes, gone) = self.lock().add(&record);
        if let Some(disk) = &self.disk {
            disk.add(record);
        }
        self.tell(News::Recorded(sizes));
        self.let_go(gone);
    }

    /// How many records could not be written, because the disk was too slow for them or full. Of
    /// these the sizes are kept and the entries are not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::lost)
    }

    /// Notes that a compaction was taken back: the one of that entry.
    pub fn undone(&self, session: &str, entry: &str) {
        self.lock().undone(session, entry);
        if let Some(disk) = &self.disk {
            disk.undone(session, entry);
        }
    }

    /// Waits until all that was recorded so far is on disk.
    pub fn settle(&self) {
        if let Some(disk) = &self.disk {
            disk.settle();
        }
    }

    /// What is known of all conversations, the one used last first.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionTrace> {
        self.lock().all()
    }

    /// One conversation.
    #[must_use]
    pub fn of_session(&self, id: &str) -> Option<SessionTrace> {
        self.lock().one(id)
    }

    /// One request with its entries. It may read a file: not for a thread that others wait for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) and
    /// [`ErrorKind::Corrupt`](ctx_core::ErrorKind::Corrupt), where the file is there and cannot be
    /// read.
    pub fn record(&self, session: &str, number: u64) -> Result<Option<Record>> {
        if let Some(disk) = &self.disk {
            disk.settle();
        }
        let Some((sizes, place)) = self.lock().record(session, number) else { return Ok(None) };
        match (&self.disk, place) {
            (Some(disk), Some(place)) => disk.read(session, place).map(|record| {
                // What changed since it was written stands in memory.
                let undone = sizes.compaction.as_ref().is_some_and(|known| known.undone);
                let compaction =
                    record.compaction.map(|known| CompactionRecord { undone, ..known });
                Some(Record { compaction, ..record })
            }),
            _ => Ok(Some(Record::clone(&sizes))),
        }
    }

    /// What happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<News> {
        self.feed.subscribe()
    }

    fn tell(&self, news: News) {
        // That nobody listens is no failure.
        let _ = self.feed.send(news);
    }

    fn let_go(&self, gone: Vec<String>) {
        if gone.is_empty() {
            return;
        }
        if let Some(disk) = &self.disk {
            disk.remove(gone.clone());
        }
        self.tell(News::Gone(gone));
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
