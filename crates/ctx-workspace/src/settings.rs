//! The settings for indexing a workspace.

use ctx_core::{Counter, CounterKind, Tokens};
use serde::{Deserialize, Serialize};

/// Increased when the same file would get other chunks or other words.
const VERSION: u32 = 2;

/// The settings for indexing. Another counter or chunk length makes another index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WorkspaceSettings {
    /// The length of a chunk. Default: 512 tokens.
    pub chunk: Tokens,
    /// The token counter.
    pub counter: Counter,
    /// Larger files are skipped, in bytes. Default: 1 MiB.
    pub largest_file: u64,
    /// The weight of the vectors in a score, if a model makes them: 0 to 1. Default: 0.7.
    pub vector_weight: f32,
}

impl Default for WorkspaceSettings {
    fn default() -> Self {
        Self {
            chunk: Tokens(512),
            counter: Counter::default(),
            largest_file: 1 << 20,
            vector_weight: 0.7,
        }
    }
}

impl WorkspaceSettings {
    pub(super) fn cut(&self) -> Cut {
        Cut { version: VERSION, counter: self.counter.kind, chunk: self.chunk }
    }
}

/// How files are cut. A chunk's number refers to other lines if files are cut differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cut {
    pub(super) version: u32,
    pub(super) counter: CounterKind,
    pub(super) chunk: Tokens,
}

impl Cut {
    /// Returns its name as a folder.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.counter.name(), self.chunk.0)
    }
}
