//! Who knows sessions.

use std::sync::Arc;

use ctx_core::{Result, Timestamp};
use tokio::sync::watch;

use super::diff::{DiffAsked, DiffPage};
use super::shape::{
    EntriesAsked, EntryAsked, EntryPage, Overview, Progress, RequestPage, SessionHead, Undone,
};

/// Knows sessions by ids of its own. It is asked on threads that may block.
pub trait Source: Send + Sync + 'static {
    /// The sessions, in any order.
    ///
    /// # Errors
    ///
    /// Where they cannot be listed.
    fn sessions(&self) -> Result<Vec<SessionHead>>;

    /// A session; none where the id is not one of this source.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    fn open(&self, id: &str) -> Result<Option<State>>;

    /// A number that changes when the session does, for who looks at it while it goes on; that of the
    /// list without an id. None where the id is not one of this source.
    fn stamp(&self, id: Option<&str>) -> Option<u64>;

    /// Has a session read anew before it answers again, where it is one of this source.
    fn forget(&self, _id: &str) {}
}

/// How far a session is.
pub enum State {
    /// It is being read.
    Working(watch::Receiver<Progress>),
    /// It answers.
    Open(Arc<dyn Opened>),
}

/// A session that answers.
pub trait Opened: Send + Sync {
    /// What it is, its requests from number `from` on, its compactions.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    fn overview(&self, from: usize) -> Result<Overview>;

    /// A request, the first of which is 1, with some of its entries.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) if there is no such request.
    fn request(&self, number: usize, asked: &EntriesAsked) -> Result<RequestPage>;

    /// An entry, and the form it had in a request.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) if there is no such entry.
    fn entry(&self, entry: &str, asked: &EntryAsked) -> Result<EntryPage>;

    /// What a compaction took out, and where it is now.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) if there is no such compaction.
    fn diff(&self, compaction: &str, asked: &DiffAsked) -> Result<DiffPage>;

    /// Takes a compaction back, or puts one in force again that was taken back.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ctx_core::ErrorKind::NotFound) if there is no such compaction, and what writing
    /// may give.
    fn undo(&self, compaction: &str, now: Timestamp) -> Result<Undone>;
}
