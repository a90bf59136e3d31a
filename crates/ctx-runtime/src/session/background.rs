//! Compactions that run after the answer was returned.

use ctx_core::{CompactResult, EntryId, Result, Tokens};
use tokio::task::JoinHandle;

/// A background compaction. Dropping it cancels the compaction.
pub(crate) struct BackgroundCompaction {
    pub(crate) task: JoinHandle<Result<CompactResult>>,
    /// The last entry of the session when it started.
    pub(crate) leaf: Option<EntryId>,
    /// Number of message tokens that it compacts.
    pub(crate) size: Tokens,
}

impl BackgroundCompaction {
    /// Whether it is finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Number of message tokens that it keeps in memory.
    pub(crate) fn held(&self) -> u64 {
        if self.is_finished() { 0 } else { self.size.get() }
    }
}

impl Drop for BackgroundCompaction {
    fn drop(&mut self) {
        self.task.abort();
    }
}
