//! What the replicas of a proxy share.

use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Result;

/// The names of values that may expire begin with it.
pub const EXPIRING: &str = "proxy/";

/// A value with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its name, unique within the tenant; the parts of a path.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Holds values by name.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Sets values, all or none.
    async fn put_blobs(&self, blobs: &[Blob]) -> Result<()>;

    /// Creates a value, and returns it; if there is one of that name, returns that one.
    async fn create_blob(&self, blob: &Blob) -> Result<Vec<u8>>;

    /// Returns the bytes of a value that are in `range`; `None` if there is none of that name.
    async fn get_blob(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>>;

    /// Returns the names that begin with `prefix`, sorted; `most` at the most.
    async fn list_blobs(&self, prefix: &str, most: usize) -> Result<Vec<String>>;

    /// Removes the values whose names begin with `prefix` and that were set longer ago than `age`.
    /// Returns their number.
    async fn expire_blobs(&self, prefix: &str, age: Duration) -> Result<u64>;
}

/// Holds conversations of a proxy: logs that every replica may extend, without a lease.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Returns the conversations whose ids begin with `prefix`, with their numbers of lines, sorted
    /// by id.
    async fn list_conversations(&self, prefix: &str) -> Result<Vec<(String, u64)>>;

    /// Returns the lines of a conversation from number `from` on, counted from 0.
    async fn read_conversation(&self, id: &str, from: u64) -> Result<Vec<Vec<u8>>>;

    /// Appends lines after the first `at`, all or none, and returns the number of lines. At 0 a
    /// missing conversation is created. If `lines` are already there, after `at`, the answer is the
    /// same.
    ///
    /// # Errors
    ///
    /// [`changed_conversation`](crate::changed_conversation) if it has another number of lines.
    async fn extend_conversation(&self, id: &str, at: u64, lines: &[Vec<u8>]) -> Result<u64>;

    /// Removes the conversations that were extended longer ago than `age`. Returns their number.
    async fn expire_conversations(&self, age: Duration) -> Result<u64>;
}
