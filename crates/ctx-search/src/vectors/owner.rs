//! The embedder of the vectors, which `vectors.bin` itself does not record.

use std::path::Path;

use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use crate::disk;

/// What made vectors. Vectors of different embedders cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Embedding {
    /// The embedder, with everything that changes its vectors: `hash`,
    /// `transformer:all-MiniLM-L6-v2`.
    pub name: String,
    /// The dimensions of a vector.
    pub dimensions: usize,
}

impl Embedding {
    /// Vectors of `dimensions` made by `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, dimensions: usize) -> Self {
        Self { name: name.into(), dimensions }
    }

    /// Reads the file beside `vectors.bin`. Returns `None` if it is missing or unreadable.
    #[must_use]
    pub fn beside(vectors: &Path) -> Option<Self> {
        let text = disk::read(disk::beside(vectors, ".json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(super) fn write_beside(&self, vectors: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|e| {
            Error::new(ErrorKind::Io, "cannot write the name of the embedder").source(e)
        })?;
        disk::replace(&disk::beside(vectors, ".json"), |out| std::io::Write::write_all(out, &text))
    }
}
