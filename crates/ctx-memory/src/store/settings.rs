//! How a store behaves.

use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Embedder, Timer, Timestamp};

use crate::archive::Limits;
use crate::{Config, SearchSettings};

/// What makes the vectors of a store.
#[derive(Clone, Default)]
pub enum Vectors {
    /// There are none: words alone decide.
    #[default]
    None,
    /// Hashes of words, made at once.
    Hash,
    /// A model. A segment is found by its words until [`Memory::embed`](super::Memory::embed) gave it
    /// its vector.
    Model(VectorModel),
}

/// A model that makes vectors, and the clock that bounds how long it is waited for.
#[derive(Clone)]
pub struct VectorModel {
    /// The model.
    pub embedder: Arc<dyn Embedder>,
    /// The clock.
    pub timer: Arc<dyn Timer>,
    /// A query goes without its vector after this time. Default: 2 s.
    pub query_deadline: Duration,
    /// A batch of segments is given up after this time. Default: 60 s.
    pub batch_deadline: Duration,
}

impl VectorModel {
    /// A model with the default deadlines.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, timer: Arc<dyn Timer>) -> Self {
        let (query_deadline, batch_deadline) = (Duration::from_secs(2), Duration::from_secs(60));
        Self { embedder, timer, query_deadline, batch_deadline }
    }
}

/// How a store behaves. The defaults are those of [`Config`].
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// How scores are made and mixed.
    pub search: SearchSettings,
    /// How much is kept, and for how long.
    pub limits: Limits,
    /// What makes vectors. Where they count nothing by `search`, none are made.
    pub vectors: Vectors,
    /// Whether nothing is written: no file is made, changed or deleted, not even one that is damaged.
    /// What is taken in stays in memory.
    pub read_only: bool,
    /// What time it is, for eviction.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Settings {
    /// The settings of a configuration. `model` is that of the host, if it has one; what the
    /// configuration calls `hash` needs none.
    #[must_use]
    pub fn of(config: &Config, model: Option<VectorModel>) -> Self {
        let limits = Limits {
            max_segments: config.max_segments as usize,
            eviction_days: config.eviction_days,
        };
        let vectors = match (config.embedding_model, model) {
            (crate::EmbeddingModel::Hash, _) | (_, None) => Vectors::Hash,
            (_, Some(model)) => Vectors::Model(model),
        };
        Self { search: config.search.clone(), limits, vectors, ..Self::default() }
    }

    /// What vectors count in a score; 0 where there are none.
    pub(super) fn weight(&self) -> f32 {
        match &self.vectors {
            Vectors::None => 0.0,
            Vectors::Hash => self.search.hash_weight,
            Vectors::Model(_) => self.search.vector_weight,
        }
    }

    /// Whether hashes of words are the vectors, and count.
    pub(super) fn hashes(&self) -> bool {
        matches!(self.vectors, Vectors::Hash) && self.weight() > 0.0
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            search: SearchSettings::default(),
            limits: Limits::default(),
            vectors: Vectors::Hash,
            read_only: false,
            clock: Arc::new(|| {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let since = since.map_or(0, |since| since.as_millis());
                Timestamp(i64::try_from(since).unwrap_or(i64::MAX))
            }),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let vectors = match &self.vectors {
            Vectors::None => "none",
            Vectors::Hash => "hash",
            Vectors::Model(model) => model.embedder.name(),
        };
        f.debug_struct("Settings")
            .field("search", &self.search)
            .field("limits", &self.limits)
            .field("vectors", &vectors)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}
