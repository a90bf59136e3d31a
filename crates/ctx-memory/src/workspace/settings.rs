//! How a workspace is indexed.

use ctx_core::{Counter, CounterKind, Tokens};
use serde::{Deserialize, Serialize};

/// Goes up when the same file would make other chunks or other words.
const VERSION: u32 = 2;

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

    pub(super) fn cut(&self) -> Cut {
        Cut { version: VERSION, counter: self.counter.kind(), chunk: self.chunk }
    }
}

/// How files are cut. The same number of a chunk means other lines where they are cut otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cut {
    pub(super) version: u32,
    pub(super) counter: CounterKind,
    pub(super) chunk: Tokens,
}

impl Cut {
    /// Its name, as that of a folder.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.counter.name(), self.chunk.0)
    }
}
