//! Long-term memory, as a host offers it to layers and engines.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Entry, EntryId, Result, Role, Timestamp};

/// A question to memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallRequest {
    /// The words.
    pub query: String,
    /// What time it is.
    pub now: Timestamp,
    /// Entries the model sees anyway: what they say is not brought back.
    pub visible: HashSet<EntryId>,
    /// Passages that score below this are left out: 0 to 1.
    pub min_score: f32,
    /// At most this many passages; the turns next to them do not count.
    pub passages: usize,
    /// At most this many facts.
    pub facts: usize,
}

/// What memory brought back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recollection {
    /// What is known, best first.
    pub facts: Vec<RecalledFact>,
    /// What was said, best first.
    pub passages: Vec<Passage>,
    /// What did not work; each is to be said once.
    pub warnings: Vec<String>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// The text.
    pub text: String,
    /// How well it fits the query, 0 to 1.
    pub score: f32,
    /// Who said it.
    pub role: Role,
    /// When.
    pub timestamp: Timestamp,
    /// The session it was said in, where known.
    pub session: Option<String>,
    /// The entry it came from, where known.
    pub entry: Option<EntryId>,
    /// Whether it was brought back only because a better one stands next to it.
    pub adjacent: bool,
}

/// Something that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct RecalledFact {
    /// What kind of fact, such as `decision`.
    pub kind: String,
    /// The fact, in a sentence.
    pub text: String,
    /// How well it fits the query, 0 to 1.
    pub score: f32,
    /// The entries it was taken from.
    pub entries: Vec<EntryId>,
}

/// The long-term memory of one session: what it archives is of this session, and what it recalls is
/// what this session may know.
#[async_trait]
pub trait MemoryStore: Send + Sync {
    /// Takes messages in, word for word. It returns at once: they are kept for good once
    /// [`flush`](Self::flush) returned. An entry that is there already is no error.
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()>;

    /// What fits a query.
    async fn recall(&self, request: RecallRequest) -> Result<Recollection>;

    /// Waits until everything taken in is on disk.
    async fn flush(&self) -> Result<()>;

    /// Does for what was taken in what no request waits for and may take long: vectors by a model.
    /// A host calls it when a turn is over, and may drop it at any time: what was done by then stays.
    /// Gives what a person should be told.
    async fn tend(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks for facts in what was taken in, by a model, where there is one. It costs money: a host
    /// calls it after a compaction. Otherwise as [`tend`](Self::tend).
    async fn study(&self) -> Vec<String> {
        Vec::new()
    }
}
