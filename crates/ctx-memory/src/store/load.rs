//! From the files to what is searched.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ctx_core::Result;

use super::indexer::Indexer;
use super::live::Live;
use super::source::Source;
use super::{Inner, Vectors};
use crate::archive::{Changes, Segments};
use crate::near::{Graph, Rows};
use crate::search::Said;
use crate::vectors::{Embedding, VectorFile};
use crate::{HashEmbedder, Segment, SegmentId, embedded_text};

/// So many segments that are not in the index are read when a store is opened. More than these are
/// found as the index is made.
const READ_AT_ONCE: usize = 4_096;

/// A text of so many bytes is split into words before anybody has to wait for it.
const LONG: usize = 64 << 10;

impl Inner {
    pub(super) fn open(&self) -> Result<()> {
        let mut indexer = self.indexer();
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(folder) = &self.folder {
            let path = folder.join("segments.jsonl");
            let segments = Segments::open(path, self.settings.limits, self.settings.now())?;
            let damage = segments.damage();
            if damage.unreadable > 0 {
                let lines = damage.unreadable;
                self.warn(format!(
                    "{lines} lines of the archive cannot be read: they are left out"
                ));
            }
            *source = Source::Disk(Box::new(segments));
            self.open_vectors(folder);
        }
        let live = self.load(&mut source, &mut indexer)?;
        self.swap(live);
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Everything as the source has it. What was not committed is carried over.
    pub(super) fn load(&self, source: &mut Source, indexer: &mut Indexer) -> Result<Live> {
        let (numbering, pending) = {
            let live = self.live();
            (live.numbering + 1, live.pending.clone())
        };
        let mut live = Live::new(&self.settings, numbering);
        source.each_row(|id, session, time, said| {
            let row = live.index.add_row(id, session, time, said);
            live.add(id, row);
        });
        let stored = indexer.open(self, &live);
        let missing: Vec<u32> = match &stored {
            Some(stored) => {
                let keys = stored.keys();
                let is_missing = |row: &u32| {
                    !live.id(*row).is_some_and(|id| keys.contains(&crate::index::key_of(id)))
                };
                (0..live.index.len() as u32).filter(is_missing).collect()
            }
            None => (0..live.index.len() as u32).collect(),
        };
        if let Some(stored) = stored {
            live.index.publish(stored, 0);
        }
        // Without files, there is no index to be made later.
        if missing.len() <= READ_AT_ONCE || self.folder.is_none() {
            for rows in missing.chunks(256) {
                let ids: Vec<_> = rows.iter().filter_map(|row| live.id(*row)).collect();
                for (row, segment) in rows.iter().zip(source.get(&ids)?) {
                    if let Some(segment) = segment {
                        live.index.add_words(*row, &segment);
                    }
                }
            }
        } else {
            live.wordless = missing;
            self.was_wordless.store(true, Ordering::Release);
        }
        self.load_vectors(&mut live);
        let ids = live.index.ids().to_vec();
        live.locate(ids, |id| source.place(id));
        for (id, segment) in pending {
            if live.row(id).is_none() {
                let row = live.index.add(&segment);
                live.add(id, row);
                live.pending.insert(id, segment);
            }
        }
        Ok(live)
    }

    /// Makes a segment that was added be found.
    pub(super) fn show(&self, segment: &Segment, is_pending: bool) {
        let hash = (self.settings.weight() > 0.0 && matches!(self.settings.vectors, Vectors::Hash))
            .then(|| HashEmbedder.vector(&embedded_text(std::slice::from_ref(segment), 0)));
        // Split here, so that no search waits for a long text.
        let long = segment.content.len() > LONG;
        let said = Said::of(segment);
        {
            let mut live = self.live_mut();
            let row = live.index.add_row(segment.id, &segment.session_id, segment.timestamp, said);
            live.add(segment.id, row);
            if is_pending && self.folder.is_some() {
                live.pending.insert(segment.id, segment.clone());
            }
            if let Some(vector) = &hash {
                live.vectors.get_or_insert_with(|| Rows::new(vector.len())).add(row, vector);
            }
            if !long {
                live.index.add_words(row, segment);
            } else {
                drop(live);
                let words = crate::SearchIndex::words_of(row, segment);
                self.live_mut().index.add_frozen(words);
            }
        }
        if let Some(vector) = hash {
            self.keep_vector(segment.id, &vector);
        }
    }

    /// Takes over what became of the source.
    pub(super) fn follow(&self, source: &mut Source, changes: &Changes) -> Result<()> {
        let unknown: Vec<SegmentId> = {
            let mut live = self.live_mut();
            changes.added.iter().for_each(|id| {
                live.pending.remove(id);
            });
            changes.removed.iter().for_each(|id| live.remove(*id));
            changes.added.iter().filter(|id| live.row(**id).is_none()).copied().collect()
        };
        let removed: HashSet<_> = changes.removed.iter().collect();
        for ids in unknown.chunks(256) {
            for segment in source.get(ids)?.into_iter().flatten() {
                if !removed.contains(&segment.id) {
                    self.show(&segment, false);
                }
            }
        }
        self.live_mut().locate(changes.added.iter().copied(), |id| source.place(id));
        Ok(())
    }

    fn open_vectors(&self, folder: &std::path::Path) {
        let embedding = match &self.settings.vectors {
            _ if self.settings.weight() <= 0.0 => return,
            Vectors::None => return,
            Vectors::Hash => Embedding::new("hash", HashEmbedder.vector("").len()),
            Vectors::Model(model) => {
                Embedding::new(model.embedder.name(), model.embedder.dimensions())
            }
        };
        match VectorFile::open(folder.join("vectors.bin"), embedding) {
            Ok(mut file) => {
                file.take_faults().iter().for_each(|fault| self.warn(fault.to_string()));
                *self.vectors.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
            }
            Err(error) => self.warn(format!("words alone decide what is recalled: {error}")),
        }
    }

    fn load_vectors(&self, live: &mut Live) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = file.as_mut() {
            if let Err(error) = file.take_back() {
                self.warn(format!("vectors cannot be read: {error}"));
            }
            let mut rows = Rows::new(file.embedding().dimensions);
            for (id, vector) in file.iter() {
                if let Some(row) = live.row(id) {
                    rows.add(row, vector);
                }
            }
            file.let_go();
            live.vectors = Some(rows);
        } else {
            // Rows may be numbered anew, vectors that no file has go with them.
            live.vectors = self.live().vectors.as_ref().map(|old| Rows::new(old.dimensions()));
        }
    }

    /// Keeps a vector for the next start.
    pub(super) fn keep_vector(&self, id: SegmentId, vector: &[f32]) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = file.as_mut().map(|file| file.add(id, vector)) {
            self.warn(format!("a vector is not kept: {error}"));
        }
    }

    pub(super) fn flush_vectors(&self) {
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return };
        match file.commit() {
            Ok(()) => file.let_go(),
            Err(error) => self.warn(format!("vectors are not kept: {error}")),
        }
    }

    /// Where the graph over the vectors is kept, and what made these.
    pub(super) fn graph_file(&self) -> Option<(PathBuf, String)> {
        let file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = file.as_ref()?.embedding().name.clone();
        Some((self.folder.as_ref()?.join(GRAPH), owner))
    }

    /// Takes away the graph on disk: it tells of vectors that are gone.
    pub(super) fn delete_graph(&self) -> Result<()> {
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(GRAPH)) else {
            return Ok(());
        };
        delete(&crate::disk::temporary(&path))?;
        delete(&path)
    }

    /// Has a graph lead to vectors, if they are still where it says.
    pub(super) fn use_graph(&self, graph: Graph, numbering: u64) {
        let mut live = self.live_mut();
        if live.numbering == numbering {
            live.graph = Some(Arc::new(graph));
        }
    }
}

/// The graph over the vectors, beside them.
pub(super) const GRAPH: &str = "vectors.graph";

fn delete(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::disk::io_error("cannot remove the vectors", path, e))
        }
        _ => Ok(()),
    }
}

/// An index that both sides of a snapshot know.
pub(super) type Shared = Arc<crate::index::Snapshot>;
