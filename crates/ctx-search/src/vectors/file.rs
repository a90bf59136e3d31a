//! `vectors.bin`, with a file beside it that names the embedder.
//!
//! The file is derived: its valid rows are used, and the rest is embedded again. So it is not
//! synced after every append; vectors that a crash loses are computed again. A length that does not
//! match the count, a torn row, a row that is not finite, and another magic, version or embedder
//! are [`VectorFault`]s. Each is reported once, and the next write repairs it.

use ctx_core::text::Slice;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use super::layout::{HEADER, UUID, read_header, read_row, row};
use super::{Embedding, VectorFault};
use crate::{IdTable, SegmentId, disk};

/// The vectors of one agent's segments.
#[derive(Debug)]
pub struct VectorFile {
    pub(super) path: PathBuf,
    pub(super) embedding: Embedding,
    pub(super) ids: Vec<SegmentId>,
    /// The rows from `held_from` on; earlier rows are only on disk.
    pub(super) values: Vec<f32>,
    pub(super) held_from: usize,
    is_released: bool,
    pub(super) places: IdTable,
    faults: Vec<VectorFault>,
    /// The first row that is not in the file yet.
    pub(super) written: usize,
    /// The length of the file as this process left it. `None` means that the file must be
    /// rewritten.
    pub(super) length: Option<u64>,
}

/// Vectors that are only in memory.
pub(super) struct Unwritten {
    ids: Vec<SegmentId>,
    values: Vec<f32>,
}

impl Unwritten {
    fn iter(&self, dimensions: usize) -> impl Iterator<Item = (SegmentId, &[f32])> {
        self.ids.iter().copied().zip(self.values.chunks_exact(dimensions.max(1)))
    }
}

/// Returns the function that gives the id at a place to an [`IdTable`].
fn id_in(ids: &[SegmentId]) -> impl Fn(u32) -> SegmentId {
    |place| ids[place as usize]
}

/// Takes a vector of the file.
type Each<'a> = &'a mut dyn FnMut(SegmentId, &[f32]);

impl VectorFile {
    /// Opens `vectors.bin` at `path` for vectors of `embedding`. Creates no file.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read. Faults are not errors;
    /// `take_faults` returns them.
    pub fn open(path: impl Into<PathBuf>, embedding: Embedding) -> Result<Self> {
        Self::open_with(path.into(), embedding, true, &mut |_, _| {})
    }

    /// Opens a file as [`open`](Self::open) does, passes each vector to `each`, and keeps none in
    /// memory: a million take 1.5 GB. Those of a damaged file are kept until it is rewritten.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn read(
        path: impl Into<PathBuf>,
        embedding: Embedding,
        mut each: impl FnMut(SegmentId, &[f32]),
    ) -> Result<Self> {
        Self::open_with(path.into(), embedding, false, &mut each)
    }

    /// Whether the file at `path` is of `embedding` and begins with the vectors of these segments: rows
    /// are only appended, so the last one that is in its place tells.
    #[must_use]
    pub fn begins_with(path: &Path, embedding: &Embedding, ids: &[SegmentId]) -> bool {
        let size = row(embedding.dimensions) as u64;
        let last = ids.last().map(|last| (*last, HEADER as u64 + (ids.len() as u64 - 1) * size));
        let found = |at| disk::read_at(&disk::open(path)?, at, UUID as u64);
        let head = || disk::read_at(&disk::open(path)?, 0, HEADER as u64);
        let sound = head().ok().and_then(|head| read_header(&head).ok());
        sound.is_some_and(|(dimensions, count)| {
            dimensions == embedding.dimensions && count as usize >= ids.len()
        }) && Embedding::beside(path).as_ref() == Some(embedding)
            && last.is_none_or(|(id, at)| found(at).is_ok_and(|bytes| bytes == id.0.as_bytes()))
    }

    /// Reads a file as [`read`](Self::read) does, but not the vectors of `known`, with which it
    /// [begins](Self::begins_with).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn read_after(
        path: impl Into<PathBuf>,
        embedding: Embedding,
        known: &[SegmentId],
        mut each: impl FnMut(SegmentId, &[f32]),
    ) -> Result<Self> {
        Self::open_after(path.into(), embedding, known, false, &mut each)
    }

    /// Whether all of its vectors are in the file, and the file has no others.
    pub fn is_sound(&self) -> bool {
        self.length.is_some() && self.written == self.ids.len()
    }

    fn open_with(path: PathBuf, embedding: Embedding, hold: bool, each: Each<'_>) -> Result<Self> {
        Self::open_after(path, embedding, &[], hold, each)
    }

    /// Passes each vector after the `known` ones to `each`. Unless `hold`, those of a sound file are
    /// not kept.
    fn open_after(
        path: PathBuf,
        embedding: Embedding,
        known: &[SegmentId],
        hold: bool,
        each: Each<'_>,
    ) -> Result<Self> {
        let mut vectors = Self {
            path,
            embedding,
            ids: Vec::new(),
            values: Vec::new(),
            held_from: 0,
            is_released: false,
            places: IdTable::default(),
            faults: Vec::new(),
            written: 0,
            length: None,
        };
        let failed = |e| disk::io_error("cannot read the vectors", &vectors.path, e);
        match disk::open(&vectors.path) {
            Ok(file) => {
                let length = file.metadata().map_err(failed)?.len();
                vectors.load(file, length, known, hold, each)?;
                // A damaged file is rewritten from its valid rows.
                if !hold && vectors.length.is_none() && !vectors.ids.is_empty() {
                    let faults = std::mem::take(&mut vectors.faults);
                    return Ok(Self { faults, ..Self::open(vectors.path, vectors.embedding)? });
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        Ok(vectors)
    }

    /// The embedder of the vectors.
    pub fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    /// The segments of the vectors, in the order of the file.
    pub fn ids(&self) -> &[SegmentId] {
        &self.ids
    }

    /// Whether a segment has a vector.
    pub fn contains(&self, id: SegmentId) -> bool {
        self.places.get(&id, id_in(&self.ids)).is_some()
    }

    /// Returns a segment's vector, while it is [in memory](Self::release).
    pub fn get(&self, id: SegmentId) -> Option<&[f32]> {
        let place = self.places.get(&id, id_in(&self.ids))? as usize;
        let place = place.checked_sub(self.held_from)?;
        let at = place * self.embedding.dimensions;
        self.values.get(at..at + self.embedding.dimensions)
    }

    /// All vectors in memory, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &[f32])> {
        let ids = self.ids.slice(self.held_from..);
        ids.iter().copied().zip(self.values.chunks_exact(self.embedding.dimensions.max(1)))
    }

    /// Releases the memory of vectors that are on disk: searches keep them in another form, and a
    /// million vectors take 1.5 GB.
    pub fn release(&mut self) {
        if self.length.is_some() && self.written == self.ids.len() {
            self.values = Vec::new();
            self.held_from = self.ids.len();
            self.is_released = true;
        }
    }

    /// Passes all vectors to `each`: those in memory or, if they were released, those in the file
    /// now, including those that others added. Vectors that have left the file are dropped.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read.
    pub fn each(&mut self, mut each: impl FnMut(SegmentId, &[f32])) -> Result<()> {
        if !self.is_released {
            self.iter().for_each(|(id, vector)| each(id, vector));
            return Ok(());
        }
        self.reread_with(false, &mut each)
    }

    /// Reads the file again, and keeps the vectors that are not in it yet.
    pub(super) fn reread(&mut self) -> Result<()> {
        self.reread_with(true, &mut |_, _| {})
    }

    fn reread_with(&mut self, hold: bool, each: Each<'_>) -> Result<()> {
        let there = Self::open_with(self.path.clone(), self.embedding.clone(), hold, each)?;
        let new = self.unwritten();
        let faults = std::mem::take(&mut self.faults);
        *self = Self { faults, ..there };
        for (id, vector) in new.iter(self.embedding.dimensions) {
            if self.place(id, vector) {
                each(id, vector);
            }
        }
        Ok(())
    }

    /// Removes and returns the vectors that are not in the file yet.
    pub(super) fn unwritten(&mut self) -> Unwritten {
        let written = self.written.min(self.ids.len());
        for id in self.ids.slice(written..) {
            self.places.remove(id, id_in(&self.ids));
        }
        let ids = self.ids.split_off(written);
        let held = (self.ids.len() - self.held_from) * self.embedding.dimensions;
        let values = self.values.split_off(held.min(self.values.len()));
        Unwritten { ids, values }
    }

    /// Appends these vectors.
    pub(super) fn place_all(&mut self, new: &Unwritten) {
        for (id, vector) in new.iter(self.embedding.dimensions) {
            self.place(id, vector);
        }
    }

    /// Returns the faults of the file, each once.
    pub fn take_faults(&mut self) -> Vec<VectorFault> {
        std::mem::take(&mut self.faults)
    }

    /// Adds a vector, to be written by the next [`commit`](Self::commit). Returns false if the
    /// segment has one.
    ///
    /// # Errors
    ///
    /// If the vector has other dimensions, or contains a NaN or infinity.
    pub fn add(&mut self, id: SegmentId, vector: &[f32]) -> Result<bool> {
        if vector.len() != self.embedding.dimensions || !vector.iter().all(|v| v.is_finite()) {
            return Err(Error::new(ErrorKind::Upstream, "an embedder returned an invalid vector")
                .with("embedder", &self.embedding.name)
                .with("dimensions", vector.len())
                .with("expected", self.embedding.dimensions)
                .hint("memory works without it; check the embedding model"));
        }
        Ok(self.place(id, vector))
    }

    /// Returns false if the segment has a vector.
    pub(super) fn place(&mut self, id: SegmentId, vector: &[f32]) -> bool {
        if !self.push(id) {
            return false;
        }
        self.values.extend_from_slice(vector);
        true
    }

    /// Adds an id. Returns false if it is there.
    fn push(&mut self, id: SegmentId) -> bool {
        let Ok(place) = u32::try_from(self.ids.len()) else { return false };
        self.ids.push(id);
        let is_new = self.places.insert(place, id_in(&self.ids));
        if !is_new {
            self.ids.pop();
        }
        is_new
    }

    fn load(
        &mut self,
        file: File,
        length: u64,
        known: &[SegmentId],
        hold: bool,
        each: Each<'_>,
    ) -> Result<()> {
        let failed = |path: &Path, e| disk::io_error("cannot read the vectors", path, e);
        let mut reader = BufReader::with_capacity(256 << 10, file);
        let mut head = Vec::new();
        let read = (&mut reader).take(HEADER as u64).read_to_end(&mut head);
        read.map_err(|e| failed(&self.path, e))?;
        let (dimensions, count) = match read_header(&head) {
            Ok(sound) => sound,
            Err(bad) => {
                self.faults.push(VectorFault::Foreign { found: bad.to_string() });
                return Ok(());
            }
        };
        let made_by = Embedding::beside(&self.path);
        if dimensions != self.embedding.dimensions || made_by.as_ref() != Some(&self.embedding) {
            let made_by = made_by.map(|embedding| embedding.name);
            self.faults.push(VectorFault::OtherEmbedder { made_by, dimensions });
            return Ok(());
        }
        let size = row(dimensions);
        let there = length.saturating_sub(HEADER as u64) / size as u64;
        let whole = usize::try_from(there).unwrap_or(usize::MAX).min(count as usize);
        let mut bytes = vec![0; size];
        let mut not_finite = 0;
        self.ids.reserve(whole);
        self.places.reserve(whole, id_in(&[]));
        self.values.reserve(if hold { whole.saturating_mul(dimensions) } else { dimensions });
        let mut read = known.len().min(whole);
        known.iter().take(read).for_each(|id| _ = self.push(*id));
        reader.seek(SeekFrom::Current((read * size) as i64)).map_err(|e| failed(&self.path, e))?;
        while read < whole {
            match reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(e) => return Err(failed(&self.path, e)),
            }
            read += 1;
            let start = self.values.len();
            match read_row(&bytes, &mut self.values) {
                Some(id) => {
                    let is_new = self.push(id);
                    if is_new {
                        each(id, &self.values[start..]);
                    }
                    if !(hold && is_new) {
                        self.values.truncate(start);
                    }
                }
                None => not_finite += 1,
            }
        }
        let expected = HEADER as u64 + u64::from(count) * size as u64;
        if read < count as usize {
            self.faults.push(VectorFault::Truncated { count: count as usize, whole: read });
        }
        if not_finite > 0 {
            self.faults.push(VectorFault::NotFinite { rows: not_finite });
        }
        self.written = self.ids.len();
        // Rows beyond the count belong to an unfinished append; they are removed.
        let sound = length == expected && self.ids.len() == count as usize;
        self.length = sound.then_some(length);
        if !hold {
            self.held_from = self.ids.len();
            self.is_released = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
