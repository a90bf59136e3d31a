//! Sources of sessions.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Timestamp};
use ctx_runtime::lookup::provenance::LineOrigin;
use tokio::sync::watch;

use super::diff::{DiffPage, DiffQuery};
use super::shape::{
    EntriesQuery, EntryPage, EntryQuery, Overview, Progress, RequestPage, SessionHead, UndoResult,
};

/// A source of sessions with its own ids. Called on threads that may block.
pub(crate) trait Source: Send + Sync + 'static {
    /// Returns the sessions, in any order.
    ///
    /// # Errors
    ///
    /// An error if they cannot be listed.
    fn sessions(&self) -> Result<Vec<SessionHead>>;

    /// Opens a session; `None` if the id is not of this source.
    ///
    /// # Errors
    ///
    /// An error if it cannot be read.
    fn open(&self, id: &str) -> Result<Option<SourceState>>;

    /// Returns a number that changes when the session changes; without an id, when the list
    /// changes. `None` if the id is not of this source.
    fn stamp(&self, id: Option<&str>) -> Option<u64>;

    /// Makes the next call read the session again. Ignores ids of other sources.
    fn forget(&self, _id: &str) {}
}

/// The state of a session.
pub(crate) enum SourceState {
    /// Being read.
    Working(watch::Receiver<Progress>),
    /// Ready.
    Open(Arc<dyn SessionView>),
}

/// An opened session.
pub(crate) trait SessionView: Send + Sync {
    /// Returns the session's data, its requests without the first `from`, and its compactions.
    ///
    /// # Errors
    ///
    /// An error if they cannot be read.
    fn overview(&self, from: usize) -> Result<Overview>;

    /// Returns a request, counted from 1, with the selected entries.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown request.
    fn request(&self, number: usize, query: &EntriesQuery) -> Result<RequestPage>;

    /// Returns an entry as recorded, and as sent in a request.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown entry.
    fn entry(&self, entry: &str, query: &EntryQuery) -> Result<EntryPage>;

    /// Returns the messages that a compaction removed, and where their facts are now.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown compaction.
    fn diff(&self, compaction: &str, query: &DiffQuery) -> Result<DiffPage>;

    /// Returns where the lines with these words of a compaction's summary come from.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown compaction, or if the messages are
    /// not stored.
    fn why(&self, _compaction: &str, _line: &str) -> Result<Vec<LineOrigin>> {
        Err(Error::new(ErrorKind::NotFound, "the proxy stores only the beginnings of messages")
            .hint("open the agent's own session of this conversation"))
    }

    /// Undoes a compaction, or redoes an undone one.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown compaction, and errors of
    /// writing.
    fn undo(&self, compaction: &str, now: Timestamp) -> Result<UndoResult>;
}
