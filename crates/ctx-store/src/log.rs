//! The lines of transcripts.

use async_trait::async_trait;
use ctx_core::Result;

use crate::Lease;

/// The log of a session's transcript.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogName {
    /// The agent's id.
    pub agent: String,
    /// The name of the transcript's file without `.jsonl`.
    pub file: String,
}

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// How often the log was replaced, from 1. Within one generation lines are only added.
    pub generation: u64,
    /// The number of lines.
    pub lines: u64,
}

impl LogHead {
    /// The head of a log that does not exist yet.
    pub const NEW: Self = Self { generation: 1, lines: 0 };
}

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The id of its entry, unique within the log.
    pub id: String,
    /// Its bytes, without a newline.
    pub bytes: Vec<u8>,
}

/// Holds logs.
#[async_trait]
pub trait SessionLogs: Send + Sync {
    /// Returns the end of a log; `None` if the log does not exist.
    async fn head(&self, log: &LogName) -> Result<Option<LogHead>>;

    /// Returns the logs of an agent whose files follow `after`, in the order of their files; `most`
    /// at the most. A session that was reset leaves a log that no entry names.
    async fn logs(
        &self,
        agent: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(LogName, LogHead)>>;

    /// Appends lines after `at`, all or none, and returns the new end. At [`LogHead::NEW`] a missing
    /// log is created. If `lines` are already there, after `at`, the answer is the same.
    ///
    /// # Errors
    ///
    /// [`lost_lease`](crate::lost_lease) if the lease is not in force;
    /// [`moved_head`](crate::moved_head) if the log does not end at `at`.
    async fn append(
        &self,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<LogHead>;

    /// Returns lines from number `from` on, counted from 0: as many as have `most` bytes together,
    /// but at least one, if there is one.
    async fn read(&self, log: &LogName, from: u64, most: usize) -> Result<Vec<Line>>;

    /// Replaces all lines, and returns the new end, which has the next generation. Text that is to
    /// be forgotten leaves a log in this way. The log gets a record of
    /// [`RecordKind::Erasure`](crate::RecordKind::Erasure), by which other hosts learn of it.
    ///
    /// # Errors
    ///
    /// Those of [`append`](Self::append).
    async fn replace(
        &self,
        lease: &Lease,
        log: &LogName,
        at: LogHead,
        lines: &[Line],
    ) -> Result<LogHead>;

    /// Removes all lines. The log keeps its head, with the next generation and no lines, so that a
    /// host that has the lines does not take it for a new log; it gets a record like a log that was
    /// replaced. Does nothing to a missing log, and to one without lines.
    ///
    /// # Errors
    ///
    /// [`lost_lease`](crate::lost_lease) if the lease is not in force.
    async fn remove(&self, lease: &Lease, log: &LogName) -> Result<()>;
}
