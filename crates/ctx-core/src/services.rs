//! What a layer or an engine may ask of its host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use crate::{MemoryStore, Projection, Result, SummaryModels, Timestamp, WorkspaceSearch};

/// Small values an engine keeps between turns, by key.
#[async_trait]
pub trait Store: Send + Sync {
    /// The value of `key`.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>>;
    /// Sets the value of `key`.
    async fn put(&self, key: &str, value: &[u8]) -> Result<()>;
    /// All keys that begin with `prefix`, sorted.
    async fn list(&self, prefix: &str) -> Result<Vec<String>>;
}

/// Large texts that leave the context but stay readable, such as offloaded tool output.
pub trait BlobStore: Send + Sync {
    /// Writes `text` under `name`, an id without an extension, and returns the path a reader can
    /// open.
    fn put(&self, name: &str, text: &str) -> Result<String>;
    /// Removes blobs last written before `before`, and says how many.
    fn expire(&self, before: Timestamp) -> Result<usize>;
}

/// Where sticky projections outlive the process.
pub trait ProjectionStore: Send + Sync {
    /// All projections of the session.
    fn load(&self) -> Result<Vec<Projection>>;
    /// Adds projections; a later one of the same key wins.
    fn save(&self, projections: &[Projection]) -> Result<()>;
}

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// A name that tells one vector space from another.
    fn name(&self) -> &str;
    /// The length of each vector.
    fn dimensions(&self) -> usize;
    /// One vector per text, in their order.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}

/// Where ids come from. Core has no randomness of its own.
pub trait IdSource: Send + Sync {
    /// A fresh id, unique within the session's files.
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

/// The services a layer is built with. Absent ones are `None`; a layer must work without.
#[derive(Clone, Default)]
pub struct Services {
    /// Small values.
    pub store: Option<Arc<dyn Store>>,
    /// Large texts.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// Sticky projections.
    pub projections: Option<Arc<dyn ProjectionStore>>,
    /// The models that write summaries.
    pub summary_models: Option<SummaryModels>,
    /// The model that makes vectors.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Long-term memory.
    pub memory: Option<Arc<dyn MemoryStore>>,
    /// The files of the agent's workspace.
    pub workspace: Option<Arc<dyn WorkspaceSearch>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services")
            .field("store", &self.store.is_some())
            .field("blobs", &self.blobs.is_some())
            .field("projections", &self.projections.is_some())
            .field("summary_models", &self.summary_models)
            .field("embedder", &self.embedder.as_ref().map(|e| e.name()))
            .field("memory", &self.memory.is_some())
            .field("workspace", &self.workspace.is_some())
            .finish()
    }
}
