//! Statistics of a memory.

use std::path::Path;

use ctx_core::Result;
use serde::Serialize;

use super::Memory;

/// The size of a memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MemoryStats {
    /// Segments, including those not yet on disk.
    pub segments: usize,
    /// Segments not yet on disk.
    pub pending: usize,
    /// Pieces in the index on disk, including those of removed segments.
    pub stored_pieces: usize,
    /// Pieces that are only in memory.
    pub new_pieces: usize,
    /// Vectors.
    pub vectors: usize,
    /// Bytes of `segments.jsonl`.
    pub archive_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of `vectors.bin`.
    pub vector_bytes: u64,
}

impl Memory {
    /// Returns the statistics.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn stats(&self) -> Result<MemoryStats> {
        self.inner.ensure_open()?;
        let live = self.inner.live();
        let size =
            |name: &str| self.inner.folder.as_ref().map_or(0, |folder| bytes(&folder.join(name)));
        Ok(MemoryStats {
            segments: live.len(),
            pending: live.pending.len(),
            stored_pieces: live.index.stored(),
            new_pieces: live.index.unstored(),
            vectors: live.vectors.as_ref().map_or(0, |vectors| vectors.count()),
            archive_bytes: size("segments.jsonl"),
            index_bytes: size("lexical"),
            vector_bytes: size("vectors.bin"),
        })
    }
}

/// Returns the size of a file, or of the files in a folder; 0 if missing.
fn bytes(path: &Path) -> u64 {
    let Ok(meta) = std::fs::metadata(path) else { return 0 };
    if meta.is_file() {
        return meta.len();
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|meta| meta.len()).sum()
}
