//! Who made the vectors: `vectors.bin` itself does not say.

use std::path::Path;

use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::disk;

/// What made vectors. Those of one cannot be compared with those of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Embedding {
    /// The embedder, with what of it changes its vectors: `hash`, `transformer:all-MiniLM-L6-v2`.
    pub name: String,
    /// How long a vector is.
    pub dimensions: usize,
}

impl Embedding {
    /// Vectors of `dimensions` made by `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, dimensions: usize) -> Self {
        Self { name: name.into(), dimensions }
    }

    /// What the file beside `vectors.bin` says. None if there is none that can be read.
    #[must_use]
    pub fn beside(vectors: &Path) -> Option<Self> {
        let text = disk::read(disk::beside(vectors, ".json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(super) fn write_beside(&self, vectors: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|e| {
            Error::new(ErrorKind::Io, "cannot write who made the vectors").source(e)
        })?;
        disk::replace(&disk::beside(vectors, ".json"), |out| std::io::Write::write_all(out, &text))
    }
}
