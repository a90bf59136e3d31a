//! Long-term memory, as a host provides it to layers and engines.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use crate::{Entry, EntryId, Result, Role, Timestamp};

/// A query to memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallRequest {
    /// The query text.
    pub query: String,
    /// The current time.
    pub now: Timestamp,
    /// Entries that the model sees anyway: their content is not recalled.
    pub visible: HashSet<EntryId>,
    /// The minimum score of a passage, 0 to 1.
    pub min_score: f32,
    /// The maximum number of passages, not counting adjacent turns.
    pub passages: usize,
    /// The maximum number of facts.
    pub facts: usize,
}

/// The result of a recall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recollection {
    /// Facts, best first.
    pub facts: Vec<RecalledFact>,
    /// Passages of past conversations, best first.
    pub passages: Vec<Passage>,
    /// Warnings about failures, each to be reported once.
    pub warnings: Vec<String>,
}

/// A passage of a past conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Passage {
    /// The session it belongs to, if known.
    pub session: Option<String>,
    /// The entry it comes from, if known.
    pub entry: Option<EntryId>,
    /// The role of the speaker.
    pub role: Role,
    /// When it was said.
    pub timestamp: Timestamp,
    /// The relevance to the query, 0 to 1.
    pub score: f32,
    /// Whether it was recalled only because it is adjacent to a better match.
    pub adjacent: bool,
    /// The text.
    pub text: String,
}

/// A fact from memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecalledFact {
    /// The kind of the fact, such as `decision`.
    pub kind: String,
    /// The fact in one sentence.
    pub text: String,
    /// The relevance to the query, 0 to 1.
    pub score: f32,
    /// The entries it was extracted from.
    pub entries: Vec<EntryId>,
}

/// The long-term memory of one session: it archives the entries of this session and recalls what
/// this session may access.
#[async_trait]
pub trait MemoryStore: Send + Sync {
    /// Archives messages verbatim. Returns at once; the messages are durable when
    /// [`flush`](Self::flush) has returned. Archiving an entry again is not an error.
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()>;

    /// Returns what matches a query.
    async fn recall(&self, request: RecallRequest) -> Result<Recollection>;

    /// Waits until everything archived is on disk.
    async fn flush(&self) -> Result<()>;

    /// Runs slow work on archived messages that no request waits for, such as embedding by a model.
    /// A host calls it after a turn and may drop it at any time: finished work is kept. Returns
    /// warnings for the user.
    async fn maintain(&self) -> Vec<String> {
        Vec::new()
    }

    /// Extracts facts from archived messages with a model, if one is configured. This costs money:
    /// a host calls it after a compaction. Otherwise it is like [`maintain`](Self::maintain).
    async fn extract_facts(&self) -> Vec<String> {
        Vec::new()
    }
}
