//! The chunks of all files, by number and by key.

use foldhash::{HashMap, HashMapExt, HashSet};

use crate::list::FileRow;
use crate::settings::Cut;
use ctx_search::SegmentId;
use ctx_search::index::key_of;
use ctx_search::lexical::Delta;

/// The indexed files and chunks.
#[derive(Debug, Default)]
pub(super) struct Rows {
    files: Vec<FileRow>,
    cut: Cut,
    /// By chunk: its file, and its number in the file.
    chunks: Vec<(u32, u32)>,
    keys: HashMap<u64, u32>,
    /// The words of the paths, by file.
    names: Delta,
}

impl Rows {
    pub(super) fn new(files: Vec<FileRow>, cut: Cut) -> Self {
        let count = files.iter().map(|file| file.chunks.len()).sum();
        let (mut chunks, mut keys) = (Vec::with_capacity(count), HashMap::with_capacity(count));
        for (file, at) in files.iter().zip(0u32..) {
            for nth in 0..file.chunks.len() as u32 {
                let row = chunks.len() as u32;
                keys.insert(key_of(file.hash.chunk(&cut, &file.path, nth)), row);
                chunks.push((at, nth));
            }
        }
        Self { files, cut, chunks, keys, names: Delta::default() }
    }

    /// Adds the index of paths for searches.
    pub(super) fn named(mut self) -> Self {
        for (file, at) in self.files.iter().zip(0u32..) {
            self.names.add(at, "", &file.path);
        }
        self
    }

    /// The words of the paths, by the number of the file.
    pub(super) fn names(&self) -> &Delta {
        &self.names
    }

    /// Returns the number of a chunk's file.
    pub(super) fn file_of(&self, row: u32) -> Option<usize> {
        Some(self.chunks.get(row as usize)?.0 as usize)
    }

    pub(super) fn files(&self) -> &[FileRow] {
        &self.files
    }

    /// The number of chunks.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the row of the chunk with a key.
    pub(super) fn row_of(&self, key: u64) -> Option<u32> {
        self.keys.get(&key).copied()
    }

    /// Returns the file of a chunk, and the chunk's number in it.
    pub(super) fn chunk(&self, row: u32) -> Option<(&FileRow, u32)> {
        let (file, nth) = *self.chunks.get(row as usize)?;
        Some((self.files.get(file as usize)?, nth))
    }

    /// Returns the id of a chunk, which is the key of its vector.
    pub(super) fn id(&self, row: u32) -> Option<SegmentId> {
        let (file, nth) = self.chunk(row)?;
        Some(file.hash.chunk(&self.cut, &file.path, nth))
    }

    /// Returns the rows of the files whose chunks are all among `keys`.
    pub(super) fn indexed(self, keys: &HashSet<u64>) -> Vec<FileRow> {
        let cut = self.cut;
        let is_there = |file: &FileRow| {
            let mut all = 0..file.chunks.len() as u32;
            all.all(|nth| keys.contains(&key_of(file.hash.chunk(&cut, &file.path, nth))))
        };
        self.files.into_iter().filter(is_there).collect()
    }
}
