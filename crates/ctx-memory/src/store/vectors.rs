//! The vectors of a store: their file, and hash vectors.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ctx_core::Result;

use super::live::Live;
use super::{Inner, Vectors};
use crate::archive::Source;
use ctx_search::near::{KeptVectors, Rows};
use ctx_search::vectors::{Embedding, VectorFile};
use ctx_search::{HashEmbedder, Segment, SegmentId, embedded_text};

/// The number of missing hash vectors that are computed when a store is opened. If there are more,
/// a thread computes them.
const HASHED_AT_ONCE: usize = 512;

/// The number of vectors computed before they are published and stored.
const HASHED: usize = 256;

/// The file is rewritten when it holds at least this many vectors of removed segments and they are
/// an eighth of all, like the archive.
const SLACK: usize = 256;

/// The vectors are kept for the next start when there are this many that are not, and they are an eighth
/// of all.
const UNKEPT: usize = 8_192;

/// Returns the hash vector of a segment.
pub(super) fn hashed(segment: &Segment) -> Vec<f32> {
    HashEmbedder.vector(&embedded_text(std::slice::from_ref(segment), 0))
}

impl Inner {
    /// Returns what makes the vectors; `None` if there are to be none.
    fn embedding(&self) -> Option<Embedding> {
        match &self.settings.vectors {
            _ if self.settings.weight() <= 0.0 => None,
            Vectors::None => None,
            Vectors::Hash => Some(Embedding::new("hash", HashEmbedder.vector("").len())),
            // The embedded context is part of a message's vector.
            Vectors::Model(model) => Some(Embedding::new(
                format!("{} after {}", model.embedder.name(), self.settings.search.embed_context),
                model.embedder.dimensions(),
            )),
        }
    }

    /// Sets the vectors of renumbered rows, from the file or, for hash vectors, from the segments.
    /// If many are missing, a thread computes them.
    pub(super) fn load_vectors(&self, live: &mut Live, source: &mut dyn Source) -> Result<()> {
        self.read_vectors(live);
        if !self.settings.hashes() {
            return Ok(());
        }
        let has = |row: u32| live.vectors.as_ref().is_some_and(|vectors| vectors.has(row));
        let missing: Vec<u32> =
            (0..live.index.row_count() as u32).filter(|row| !has(*row)).collect();
        if missing.len() > HASHED_AT_ONCE {
            live.vectorless = missing;
            return Ok(());
        }
        let ids: Vec<_> = missing.iter().filter_map(|row| live.id(*row)).collect();
        let segments: Vec<_> = source.get(&ids)?;
        for ((row, id), segment) in missing.iter().zip(&ids).zip(segments) {
            let Some(segment) = segment.or_else(|| live.pending.get(id).cloned()) else { continue };
            let vector = hashed(&segment);
            live.vectors.get_or_insert_with(|| Rows::new(vector.len())).add(*row, &vector);
            self.keep_in_file(*id, &vector, |_| true);
        }
        Ok(())
    }

    /// Sets the vectors of the rows from the file, which is opened with the store.
    fn read_vectors(&self, live: &mut Live) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let embedding = self.embedding().filter(|_| self.folder.is_some());
        let mut rows = Rows::new(embedding.as_ref().map_or(0, |embedding| embedding.dimensions));
        match (file.as_mut(), &self.folder, embedding) {
            (Some(file), ..) => {
                let mut row = None;
                let each = |id, vector: &[f32]| {
                    row = live.row_after(row, id);
                    rows.add_next(row, vector);
                };
                if let Err(error) = file.each(each) {
                    self.warn(format!("cannot read the vectors: {error}"));
                }
                file.release();
            }
            (None, Some(folder), Some(embedding)) if !self.is_open.load(Ordering::Acquire) => {
                match self.open_vectors(&folder.join("vectors.bin"), embedding, live, &mut rows) {
                    Ok(opened) => *file = Some(opened),
                    Err(error) => self.warn(format!("recall is lexical only: {error}")),
                }
            }
            _ => {}
        }
        live.vectors = match *file {
            Some(_) => Some(rows),
            // Vectors that are in no file are dropped when rows are renumbered.
            None => self.live().vectors.as_ref().map(|old| Rows::new(old.dimensions())),
        };
    }

    /// Opens `vectors.bin`, and sets the vectors of the rows: those that were kept, and those after
    /// them. If these are many, all are kept for the next start.
    fn open_vectors(
        &self,
        path: &Path,
        embedding: Embedding,
        live: &Live,
        rows: &mut Rows,
    ) -> Result<VectorFile> {
        let rows_of = |kept| {
            let mut row = None;
            Rows::kept(kept, |id| {
                row = live.row_after(row, id);
                row
            })
        };
        let kept = KeptVectors::open(&KeptVectors::beside(path), embedding.dimensions);
        let kept = kept.filter(|kept| VectorFile::begins_with(path, &embedding, kept.ids()));
        let known = kept.as_ref().map_or(Vec::new(), |kept| kept.ids().to_vec());
        if let Some(kept) = kept {
            *rows = rows_of(kept);
        }
        let mut row = None;
        let each = |id, vector: &[f32]| {
            row = live.row_after(row, id);
            rows.add_next(row, vector);
        };
        let mut opened = VectorFile::read_after(path, embedding, &known, each)?;
        opened.take_faults().iter().for_each(|fault| self.warn(fault.to_string()));
        opened.release();
        let (all, new) = (rows.total(), rows.total() - known.len());
        let is_whole = opened.is_sound() && opened.ids().len() == all;
        if is_whole && !self.settings.read_only && new >= UNKEPT.max(all / 8) {
            let path = KeptVectors::beside(path);
            match rows.keep(&path, opened.ids()) {
                // From here on they are mapped.
                Ok(()) => {
                    if let Some(kept) = KeptVectors::open(&path, rows.dimensions()) {
                        *rows = rows_of(kept);
                    }
                }
                Err(error) => self.warn(format!("the next start reads all vectors: {error}")),
            }
        }
        Ok(opened)
    }

    /// Computes missing hash vectors, if an archive was made without vectors or its vector file was
    /// lost. Stops if another thread waits for the indexer.
    pub(super) fn hash_missing(&self) -> Result<()> {
        while !self.is_wanted_elsewhere.load(Ordering::Relaxed) {
            let (rows, ids, numbering) = {
                let live = self.live();
                let rows: Vec<u32> = live.vectorless.iter().take(HASHED).copied().collect();
                let ids: Vec<_> = rows.iter().filter_map(|row| live.id(*row)).collect();
                (rows, ids, live.numbering)
            };
            if rows.is_empty() {
                break;
            }
            let found = self.get(&ids)?.into_iter().flatten();
            let made: Vec<_> = found.map(|segment| (segment.id, hashed(&segment))).collect();
            {
                let mut live = self.live_mut();
                if live.numbering != numbering {
                    continue;
                }
                live.vectorless.drain(..rows.len());
                for (id, vector) in &made {
                    let Some(row) = live.row(*id) else { continue };
                    live.vectors.get_or_insert_with(|| Rows::new(vector.len())).add(row, vector);
                }
            }
            made.iter().for_each(|(id, vector)| self.keep_vector(*id, vector));
            self.flush_vectors();
        }
        Ok(())
    }

    /// Stores a vector for the next start, if its segment still exists.
    pub(super) fn keep_vector(&self, id: SegmentId, vector: &[f32]) {
        // Checked while the file is locked: forgetting a segment examines the file afterwards.
        self.keep_in_file(id, vector, |id| self.live().row(id).is_some());
    }

    fn keep_in_file(&self, id: SegmentId, vector: &[f32], is_there: impl Fn(SegmentId) -> bool) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut().filter(|_| !self.settings.read_only) else { return };
        if is_there(id)
            && let Err(error) = file.add(id, vector)
        {
            self.warn(format!("a vector was not saved: {error}"));
        }
    }

    pub(super) fn flush_vectors(&self) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut().filter(|_| !self.settings.read_only) else { return };
        match file.commit() {
            Ok(()) => file.release(),
            Err(error) => self.warn(format!("vectors were not saved: {error}")),
        }
    }

    /// Removes the vectors of removed segments from the file, if there are many.
    pub(super) fn thin_vectors(&self) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut().filter(|_| !self.settings.read_only) else { return };
        let live = self.live().len();
        if file.ids().len().saturating_sub(live) < SLACK.max(live / 8) {
            return;
        }
        match file.retain(|id| self.live().row(id).is_some()) {
            Ok(()) => file.release(),
            Err(error) => self.warn(format!("outdated vectors were not removed: {error}")),
        }
    }
}
