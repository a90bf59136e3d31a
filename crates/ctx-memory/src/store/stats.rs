//! How much there is.

use std::path::Path;

use ctx_core::Result;
use serde::Serialize;

use super::Memory;

/// How much a memory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stats {
    /// Segments, those that wait for the disk as well.
    pub segments: usize,
    /// Segments that wait for the disk.
    pub pending: usize,
    /// Pieces in the index on disk, those of segments that are gone as well.
    pub stored_pieces: usize,
    /// Pieces that are in memory alone.
    pub new_pieces: usize,
    /// Vectors.
    pub vectors: usize,
    /// Vectors that a graph leads to; 0 where a query is compared with all of them.
    pub in_graph: usize,
    /// Bytes of `segments.jsonl`.
    pub archive_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of `vectors.bin`.
    pub vector_bytes: u64,
    /// Bytes of `vectors.graph`.
    pub graph_bytes: u64,
}

impl Memory {
    /// How much there is.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn stats(&self) -> Result<Stats> {
        self.inner.ensure_open()?;
        let live = self.inner.live();
        let size =
            |name: &str| self.inner.folder.as_ref().map_or(0, |folder| bytes(&folder.join(name)));
        Ok(Stats {
            segments: live.len(),
            pending: live.pending.len(),
            stored_pieces: live.index.stored(),
            new_pieces: live.index.unstored(),
            vectors: live.vectors.as_ref().map_or(0, |vectors| vectors.len()),
            in_graph: live.graph.as_ref().map_or(0, |graph| graph.size()),
            archive_bytes: size("segments.jsonl"),
            index_bytes: size("lexical"),
            vector_bytes: size("vectors.bin"),
            graph_bytes: size(super::graph::GRAPH),
        })
    }
}

/// The bytes of a file, or of the files in a folder; 0 for what is not there.
fn bytes(path: &Path) -> u64 {
    let Ok(meta) = std::fs::metadata(path) else { return 0 };
    if meta.is_file() {
        return meta.len();
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}
