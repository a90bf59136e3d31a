//! How a workspace is indexed.

use ctx_core::{Counter, Tokens};

/// How a workspace is indexed. Another counter or chunk makes another index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// How long a chunk is. Default: 512 tokens.
    pub chunk: Tokens,
    /// How tokens are counted.
    pub counter: Counter,
    /// Larger files are left out, in bytes. Default: 1 MiB.
    pub largest_file: u64,
    /// The share of the vectors in a score, where a model makes them: 0 to 1. Default: 0.7.
    pub vector_weight: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            chunk: Tokens(512),
            counter: Counter::default(),
            largest_file: 1 << 20,
            vector_weight: 0.7,
        }
    }
}

impl Settings {
    /// The same with another counter.
    #[must_use]
    pub fn with_counter(mut self, counter: Counter) -> Self {
        self.counter = counter;
        self
    }

    /// The same with chunks of another length, of at least 16 tokens.
    #[must_use]
    pub fn with_chunk(mut self, chunk: Tokens) -> Self {
        self.chunk = chunk.max(Tokens(16));
        self
    }
}
