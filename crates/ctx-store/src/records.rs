//! The records of an agent's memory.

use async_trait::async_trait;
use ctx_core::Result;

/// Records of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// Archived messages.
    Segment,
    /// Facts; a later record replaces an earlier one with the same id.
    Fact,
    /// Logs that were replaced or removed: the id is the log's file, the bytes are the generation.
    /// The store adds these records itself.
    Erasure,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Segment, Self::Fact, Self::Erasure];

    /// Returns its name in a store.
    pub fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Fact => "fact",
            Self::Erasure => "erasure",
        }
    }
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id, unique within its agent and kind.
    pub id: String,
    /// Its JSON.
    pub bytes: Vec<u8>,
}

/// What changed after a sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordChanges {
    /// New and changed records, in the order of their changes.
    pub records: Vec<Record>,
    /// The ids of records that were forgotten.
    pub forgotten: Vec<String>,
    /// The number to continue after.
    pub next: u64,
}

/// Holds the records of agents' memories, each change with a sequence number.
#[async_trait]
pub trait RecordLogs: Send + Sync {
    /// Adds records. One that is there with the same bytes, or that was forgotten, stays as it is.
    async fn put(&self, agent: &str, kind: RecordKind, records: &[Record]) -> Result<()>;

    /// Returns the changes after a sequence number, which begins at 0: `most` at the most. Without
    /// changes, `next` is `after`.
    async fn since(
        &self,
        agent: &str,
        kind: RecordKind,
        after: u64,
        most: usize,
    ) -> Result<RecordChanges>;

    /// Erases records, and remembers their ids: they cannot be added again. Returns the number of
    /// records that were there. To forget a record again changes nothing.
    async fn forget(&self, agent: &str, kind: RecordKind, ids: &[String]) -> Result<u64>;
}
