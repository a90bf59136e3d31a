//! A file of vectors as [`Rows`] have them, so that a start does not read and convert `vectors.bin`.
//!
//! ```text
//! magic | CRC-32 of all but the components u32 | dimensions u32 | count u32        little endian
//! ids, 16 bytes each | factors, f32 | signs, u64 words | components, i8
//! ```
//!
//! The components stay mapped: a search reads those of its candidates. The file is derived.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use ctx_core::Result;
use tantivy::directory::{Directory, MmapDirectory, OwnedBytes};

use super::rows::Rows;
use crate::{SegmentId, disk};

const MAGIC: [u8; 8] = *b"CTXNEAR1";
const HEADER: usize = 20;
const UUID: usize = 16;

/// Vectors that were kept for the next start.
pub struct KeptVectors {
    pub(super) dimensions: usize,
    pub(super) ids: Vec<SegmentId>,
    pub(super) factors: Vec<f32>,
    pub(super) signs: Vec<u64>,
    pub(super) components: OwnedBytes,
}

impl KeptVectors {
    /// Returns the path of the file for those of `vectors.bin` at `vectors`.
    #[must_use]
    pub fn beside(vectors: &Path) -> PathBuf {
        disk::beside(vectors, ".near")
    }

    /// Opens the vectors at `path`. Returns `None` if there are none with these dimensions, or if the
    /// file is damaged or cannot be read: the vectors are then read from where they come from.
    pub fn open(path: &Path, dimensions: usize) -> Option<Self> {
        Self::read(path, dimensions).ok().flatten()
    }

    fn read(path: &Path, dimensions: usize) -> io::Result<Option<Self>> {
        let mut file = BufReader::with_capacity(256 << 10, disk::open(path)?);
        let mut header = [0; HEADER];
        file.read_exact(&mut header)?;
        let word = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (sum, found, count) = (word(8), word(12) as usize, word(16) as usize);
        let words = dimensions.div_ceil(64);
        let indexed = count * (UUID + 4 + words * 8);
        let length = file.get_ref().metadata()?.len();
        let expected = HEADER as u64 + indexed as u64 + count as u64 * dimensions as u64;
        if header[..8] != MAGIC || found != dimensions || length != expected {
            return Ok(None);
        }
        let mut checked = crc32fast::Hasher::new();
        checked.update(&header[12..]);
        let mut read = |size: usize| {
            let mut bytes = vec![0; size];
            file.read_exact(&mut bytes)?;
            checked.update(&bytes);
            io::Result::Ok(bytes)
        };
        let id = |bytes: &[u8; UUID]| SegmentId(uuid::Uuid::from_bytes(*bytes));
        let ids = read(count * UUID)?.as_chunks().0.iter().map(id).collect();
        let factors =
            read(count * 4)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let signs = read(count * words * 8)?;
        let signs = signs.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        if checked.finalize() != sum {
            return Ok(None);
        }
        let components = mapped(path)?.slice(HEADER + indexed..expected as usize);
        Ok(Some(Self { dimensions, ids, factors, signs, components }))
    }

    /// The segments of the vectors.
    pub fn ids(&self) -> &[SegmentId] {
        &self.ids
    }
}

/// Maps a file. On Windows it is read: a mapped file could not be replaced or deleted there.
fn mapped(path: &Path) -> io::Result<OwnedBytes> {
    if cfg!(windows) {
        return disk::read(path).map(OwnedBytes::new);
    }
    let directory = MmapDirectory::open(disk::parent(path)).map_err(io::Error::other)?;
    let file = directory.open_read(path.file_name().unwrap_or_default().as_ref());
    file.map_err(io::Error::other)?.read_bytes()
}

impl Rows {
    /// Returns the kept vectors, with the row that `row_of` gives for each.
    pub fn kept(kept: KeptVectors, row_of: impl FnMut(SegmentId) -> Option<u32>) -> Self {
        let rows: Vec<Option<u32>> = kept.ids.iter().copied().map(row_of).collect();
        Self::with(kept, &rows)
    }

    /// Keeps the vectors at `path` for the next start. `ids` are the segments of all of them, in order.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn keep(&self, path: &Path, ids: &[SegmentId]) -> Result<()> {
        let count = u32::try_from(self.total().min(ids.len())).unwrap_or(u32::MAX);
        let mut start = u32::try_from(self.dimensions()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
        start.extend(count.to_le_bytes());
        let (factors, signs) = (self.factors(), self.signs());
        let mut sum = crc32fast::Hasher::new();
        let indexed = |out: &mut dyn FnMut(&[u8]) -> io::Result<()>| {
            out(&start)?;
            ids.iter().try_for_each(|id| out(id.0.as_bytes()))?;
            factors.iter().try_for_each(|factor| out(&factor.to_le_bytes()))?;
            signs.iter().try_for_each(|word| out(&word.to_le_bytes()))
        };
        // Only writing can fail.
        let _ = indexed(&mut |bytes| {
            sum.update(bytes);
            Ok(())
        });
        let sum = sum.finalize();
        disk::replace(path, |out: &mut io::BufWriter<File>| {
            out.write_all(&MAGIC)?;
            out.write_all(&sum.to_le_bytes())?;
            indexed(&mut |bytes| out.write_all(bytes))?;
            self.each_vector(&mut |components| out.write_all(components))
        })
    }
}
