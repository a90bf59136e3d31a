//! The services that a host provides to layers and engines.

mod memory;
mod summary;
mod workspace;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use crate::{Result, Timestamp};

pub use memory::{MemoryStore, Passage, RecallRequest, RecalledFact, Recollection};
pub use summary::{Summarizer, Summary, SummaryModels, SummaryRequest, Timer};
pub use workspace::{Snippet, SnippetSource, WorkspaceAnswer, WorkspaceSearch};

/// A key-value store for small values that an engine keeps between turns.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the value of `key`.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>>;
    /// Sets the value of `key`.
    async fn put(&self, key: &str, value: &[u8]) -> Result<()>;
    /// Returns all keys that begin with `prefix`, sorted.
    async fn list(&self, prefix: &str) -> Result<Vec<String>>;
}

/// Storage for large texts that leave the context but stay readable, such as offloaded output.
pub trait BlobStore: Send + Sync {
    /// Writes `text` under `name`, an id without an extension, and returns its path.
    fn put(&self, name: &str, text: &str) -> Result<String>;
    /// Removes blobs last written before `before`, and returns their number.
    fn expire(&self, before: Timestamp) -> Result<usize>;
}

/// Computes embedding vectors of texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Returns a name that identifies the vector space.
    fn name(&self) -> &str;
    /// Returns the length of each vector.
    fn dimensions(&self) -> usize;
    /// Returns one vector per text, in the order of the texts.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}

/// A source of ids, because this crate has no randomness.
pub trait IdSource: Send + Sync {
    /// Returns a new id, unique within the session's files.
    fn next_id(&self) -> String;
}

/// Ids that count up from zero: for tests and replays, where every run must give the same output.
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl IdSource for SequentialIds {
    fn next_id(&self) -> String {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{n:012x}")
    }
}

/// The services available to a layer. A missing service is `None`; a layer must work without it.
#[derive(Clone, Default)]
pub struct Services {
    /// Storage for small values.
    pub store: Option<Arc<dyn Store>>,
    /// Storage for large texts.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// The models that write summaries.
    pub summary_models: Option<SummaryModels>,
    /// The model that computes embeddings.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Long-term memory.
    pub memory: Option<Arc<dyn MemoryStore>>,
    /// The files of the agent's workspace.
    pub workspace: Option<Arc<dyn WorkspaceSearch>>,
}

crate::partial_debug!(
    Services,
    it,
    store = it.store.is_some(),
    blobs = it.blobs.is_some(),
    summary_models = it.summary_models,
    embedder = it.embedder.as_ref().map(|e| e.name()),
    memory = it.memory.is_some(),
    workspace = it.workspace.is_some()
);
