//! The settings of a store.

use std::sync::Arc;

use ctx_core::Timestamp;
use ctx_search::{SearchSettings, VectorModel};

use crate::Config;
use crate::archive::ArchiveLimits;

/// What computes the vectors of a store.
#[derive(Clone, Default)]
pub enum Vectors {
    /// No vectors: search is lexical.
    #[default]
    None,
    /// Hashes of words, computed at once.
    Hash,
    /// A model. A segment is found by its words until [`Memory::embed`](super::Memory::embed) has
    /// embedded it.
    Model(VectorModel),
}

/// The settings of a store. The defaults are those of [`Config`].
#[derive(Clone)]
#[non_exhaustive]
pub struct MemorySettings {
    /// How scores are computed and combined.
    pub search: SearchSettings,
    /// How much is kept, and for how long.
    pub limits: ArchiveLimits,
    /// What computes vectors. None are computed if their weight in `search` is 0.
    pub vectors: Vectors,
    /// Whether nothing is written: no file is created, changed or deleted, not even a damaged one.
    /// Added segments stay in memory.
    pub read_only: bool,
    /// The current time, for eviction.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl MemorySettings {
    /// Returns the settings of a configuration. `model` is the host's model, if any; the embedding
    /// model `hash` needs none.
    #[must_use]
    pub fn of(config: &Config, model: Option<VectorModel>) -> Self {
        let limits = ArchiveLimits {
            max_segments: config.max_segments as usize,
            eviction_days: config.eviction_days,
        };
        let vectors = match (config.embedding_model, model) {
            (crate::EmbeddingModel::Hash, _) | (_, None) => Vectors::Hash,
            (_, Some(model)) => Vectors::Model(model),
        };
        Self { search: config.search.clone(), limits, vectors, ..Self::default() }
    }

    /// Returns the weight of vectors in a score; 0 if there are none.
    pub(super) fn weight(&self) -> f32 {
        match &self.vectors {
            Vectors::None => 0.0,
            Vectors::Hash => self.search.hash_weight,
            Vectors::Model(_) => self.search.vector_weight,
        }
    }

    /// Whether vectors are hashes of words, and have a weight.
    pub(super) fn hashes(&self) -> bool {
        matches!(self.vectors, Vectors::Hash) && self.weight() > 0.0
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            search: SearchSettings::default(),
            limits: ArchiveLimits::default(),
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

ctx_core::partial_debug!(
    MemorySettings,
    it,
    search = it.search,
    limits = it.limits,
    read_only = it.read_only
);
