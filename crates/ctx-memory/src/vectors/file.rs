//! `vectors.bin`, with a file beside it that names the embedder.
//!
//! The file is derived: what of it is sound is used, and the rest is embedded again. So it is not
//! synced with every append; what a crash takes of it is made anew. A length that the count does not
//! explain, rows torn or of what are no numbers, another magic, version or embedder: each is a
//! [`VectorFault`], told once, and mended by the next write.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use foldhash::fast::RandomState;

use super::layout::{BadHeader, HEADER, read_header, read_row, row};
use super::{Embedding, VectorFault};
use crate::SegmentId;
use crate::disk;

/// The vectors of one agent's segments.
#[derive(Debug)]
pub struct VectorFile {
    pub(super) path: PathBuf,
    pub(super) embedding: Embedding,
    pub(super) ids: Vec<SegmentId>,
    /// Those of the rows from `held_from` on; the others are on disk alone.
    pub(super) values: Vec<f32>,
    pub(super) held_from: usize,
    is_let_go: bool,
    pub(super) places: HashMap<SegmentId, u32, RandomState>,
    faults: Vec<VectorFault>,
    /// Rows from here on are not in the file yet.
    pub(super) written: usize,
    /// Bytes in the file as this process left it. None: it is to be written anew.
    pub(super) length: Option<u64>,
}

/// Vectors that are in memory alone.
pub(super) struct Unwritten {
    ids: Vec<SegmentId>,
    values: Vec<f32>,
}

impl VectorFile {
    /// Opens `vectors.bin` at `path` for vectors of `embedding`. Opening creates nothing.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read. What is wrong in it is no error:
    /// [`take_faults`](Self::take_faults) tells.
    pub fn open(path: impl Into<PathBuf>, embedding: Embedding) -> Result<Self> {
        let mut vectors = Self {
            path: path.into(),
            embedding,
            ids: Vec::new(),
            values: Vec::new(),
            held_from: 0,
            is_let_go: false,
            places: HashMap::default(),
            faults: Vec::new(),
            written: 0,
            length: None,
        };
        let failed = |e| disk::io_error("cannot read the vectors", &vectors.path, e);
        match disk::open(&vectors.path) {
            Ok(file) => {
                let length = file.metadata().map_err(failed)?.len();
                vectors.load(file, length)?;
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        Ok(vectors)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What made the vectors.
    #[must_use]
    pub fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whose they are, in the order of the file.
    #[must_use]
    pub fn ids(&self) -> &[SegmentId] {
        &self.ids
    }

    /// Whether a segment has a vector.
    #[must_use]
    pub fn contains(&self, id: SegmentId) -> bool {
        self.places.contains_key(&id)
    }

    /// A segment's vector, while it is [held](Self::let_go).
    #[must_use]
    pub fn get(&self, id: SegmentId) -> Option<&[f32]> {
        let place = (*self.places.get(&id)? as usize).checked_sub(self.held_from)?;
        let at = place * self.embedding.dimensions;
        self.values.get(at..at + self.embedding.dimensions)
    }

    /// All that are [held](Self::let_go), in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &[f32])> {
        let ids = self.ids.get(self.held_from..).unwrap_or_default();
        ids.iter().copied().zip(self.values.chunks_exact(self.embedding.dimensions.max(1)))
    }

    /// Holds no vector in memory any more that is on disk: whoever searches has them in another form, and
    /// those of a million segments are 1.5 GB.
    pub fn let_go(&mut self) {
        if self.length.is_some() && self.written == self.ids.len() {
            self.values = Vec::new();
            self.held_from = self.ids.len();
            self.is_let_go = true;
        }
    }

    /// Holds all vectors again, those that others added as well. Those that are no longer in the file are
    /// gone.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub fn take_back(&mut self) -> Result<()> {
        if self.is_let_go { self.read_anew() } else { Ok(()) }
    }

    /// Takes the file for what is there, and keeps what is not in it yet.
    pub(super) fn read_anew(&mut self) -> Result<()> {
        let there = Self::open(&self.path, self.embedding.clone())?;
        let new = self.unwritten();
        let faults = std::mem::take(&mut self.faults);
        *self = Self { faults, ..there };
        self.place_all(&new);
        Ok(())
    }

    /// Takes out what is not in the file yet.
    pub(super) fn unwritten(&mut self) -> Unwritten {
        let ids = self.ids.split_off(self.written.min(self.ids.len()));
        for id in &ids {
            self.places.remove(id);
        }
        let held = (self.ids.len() - self.held_from) * self.embedding.dimensions;
        let values = self.values.split_off(held.min(self.values.len()));
        Unwritten { ids, values }
    }

    /// Puts it behind what is there.
    pub(super) fn place_all(&mut self, new: &Unwritten) {
        let vectors = new.values.chunks_exact(self.embedding.dimensions.max(1));
        new.ids.iter().zip(vectors).for_each(|(id, vector)| self.place(*id, vector));
    }

    /// What was wrong with the file, told once.
    pub fn take_faults(&mut self) -> Vec<VectorFault> {
        std::mem::take(&mut self.faults)
    }

    /// Takes a vector in, to be written by the next [`commit`](Self::commit). False if the segment
    /// has one.
    ///
    /// # Errors
    ///
    /// If the vector is of another length than the others, or holds what is no number.
    pub fn add(&mut self, id: SegmentId, vector: &[f32]) -> Result<bool> {
        if vector.len() != self.embedding.dimensions || !vector.iter().all(|v| v.is_finite()) {
            return Err(Error::new(
                ErrorKind::Upstream,
                "an embedder gave what is no vector of its",
            )
            .with("embedder", &self.embedding.name)
            .with("dimensions", vector.len())
            .with("expected", self.embedding.dimensions)
            .hint("memory goes on without it; check the model that makes the embeddings"));
        }
        let place = u32::try_from(self.ids.len()).ok();
        let (Entry::Vacant(vacant), Some(place)) = (self.places.entry(id), place) else {
            return Ok(false);
        };
        vacant.insert(place);
        self.ids.push(id);
        self.values.extend_from_slice(vector);
        Ok(true)
    }

    pub(super) fn place(&mut self, id: SegmentId, vector: &[f32]) {
        let Ok(place) = u32::try_from(self.ids.len()) else { return };
        if let Entry::Vacant(vacant) = self.places.entry(id) {
            vacant.insert(place);
            self.ids.push(id);
            self.values.extend_from_slice(vector);
        }
    }

    fn load(&mut self, file: File, length: u64) -> Result<()> {
        let failed = |path: &Path, e| disk::io_error("cannot read the vectors", path, e);
        let mut reader = BufReader::with_capacity(256 << 10, file);
        let mut head = Vec::new();
        let read = (&mut reader).take(HEADER as u64).read_to_end(&mut head);
        read.map_err(|e| failed(&self.path, e))?;
        let (dimensions, count) = match read_header(&head) {
            Ok(sound) => sound,
            Err(bad) => {
                let found = match bad {
                    BadHeader::Short => "the file ends within its header".to_owned(),
                    BadHeader::Magic => "the file is not of the format VMEM".to_owned(),
                    BadHeader::Version(version) => format!("the file is VMEM of version {version}"),
                    BadHeader::Dimensions(n) => format!("the file tells of {n} dimensions"),
                };
                self.faults.push(VectorFault::Foreign { found });
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
        self.values.reserve(whole.saturating_mul(dimensions));
        let mut read = 0;
        while read < whole {
            match reader.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(e) => return Err(failed(&self.path, e)),
            }
            read += 1;
            match read_row(&bytes, &mut self.values) {
                Some(id) => match (self.places.entry(id), u32::try_from(self.ids.len())) {
                    (Entry::Vacant(vacant), Ok(place)) => {
                        vacant.insert(place);
                        self.ids.push(id);
                    }
                    _ => self.values.truncate(self.ids.len() * dimensions),
                },
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
        // Rows behind the count are of an append that was not finished; they go.
        let sound = length == expected && self.ids.len() == count as usize;
        self.length = sound.then_some(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
