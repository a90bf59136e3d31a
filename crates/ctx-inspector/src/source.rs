//! Sources of sessions.

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use tokio::sync::watch;

use super::diff::{DiffPage, DiffQuery};
use super::shape::{
    EntriesQuery, EntryPage, EntryQuery, Overview, Progress, RequestPage, SessionHead, UndoResult,
};

/// A source of sessions with its own ids. Called on threads that may block.
pub(crate) trait Source: Send + Sync + 'static {
    /// The sessions, in any order.
    ///
    /// # Errors
    ///
    /// If they cannot be listed.
    fn sessions(&self) -> Result<Vec<SessionHead>>;

    /// Opens a session; `None` if the id is not of this source.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn open(&self, id: &str) -> Result<Option<SourceState>>;

    /// A number that changes with the session, for live views; without an id, that of the list.
    /// `None` if the id is not of this source.
    fn stamp(&self, id: Option<&str>) -> Option<u64>;

    /// Makes the next call read the session again, if it is of this source.
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
    /// The session's facts, its requests from number `from` on, and its compactions.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn overview(&self, from: usize) -> Result<Overview>;

    /// A request, counted from 1, with some of its entries.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown request.
    fn request(&self, number: usize, query: &EntriesQuery) -> Result<RequestPage>;

    /// An entry, and its form in a request.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown entry.
    fn entry(&self, entry: &str, query: &EntryQuery) -> Result<EntryPage>;

    /// What a compaction removed, and where it is now.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown compaction.
    fn diff(&self, compaction: &str, query: &DiffQuery) -> Result<DiffPage>;

    /// Undoes a compaction, or redoes an undone one.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) for an unknown compaction, and errors of
    /// writing.
    fn undo(&self, compaction: &str, now: Timestamp) -> Result<UndoResult>;
}
