//! Forgets segments and everything derived from them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ctx_core::Result;

use super::{Inner, Memory};
use crate::disk;
use ctx_search::SegmentId;
use ctx_search::near::KeptVectors;
use ctx_search::vectors::{Embedding, VectorFile};

impl Memory {
    /// Removes segments from memory and from the disk, with everything derived from them, and
    /// returns how many existed. With no ids, it only removes leftovers of a killed run and data
    /// derived from removed segments.
    ///
    /// A thread rebuilds the index of the remaining segments; [`settle`](Self::settle) returns when
    /// it is done.
    ///
    /// # Errors
    ///
    /// If a file cannot be written. Data that was removed before is not restored.
    pub fn forget(&self, ids: &HashSet<SegmentId>) -> Result<usize> {
        if self.inner.settings.read_only {
            return Err(super::read_only());
        }
        self.inner.ensure_open()?;
        let gone = {
            self.inner.is_wanted_elsewhere.store(true, Ordering::Relaxed);
            let mut indexer = self.inner.indexer();
            self.inner.is_wanted_elsewhere.store(false, Ordering::Relaxed);
            let mut source = self.inner.opened()?;
            // Vectors of segments that others archived meanwhile must stay.
            self.inner.catch_up(&mut **source)?;
            if ids.is_empty() && !indexer.may_contain_removed(&self.inner) {
                self.inner.forget_vectors(ids)?;
                return source.forget(ids);
            }
            // The segments are removed last: after a crash they still show what to forget. The
            // index is deleted first, because it contains their words.
            indexer.delete()?;
            self.inner.forget_vectors(ids)?;
            self.inner.live_mut().pending.retain(|id, _| !ids.contains(id));
            let gone = source.forget(ids);
            // Another process may have written an index of the old source meanwhile.
            indexer.delete()?;
            let live = self.inner.load(&mut **source, &mut indexer)?;
            self.inner.swap(live);
            // A model may have embedded one of them meanwhile.
            self.inner.forget_vectors(&HashSet::new())?;
            gone?
        };
        self.nudge();
        Ok(gone)
    }
}

impl Inner {
    /// Removes the vectors of `ids`, and of segments that no longer exist, from the file. With no
    /// ids, a file that the current settings do not use stays unchanged.
    fn forget_vectors(&self, ids: &HashSet<SegmentId>) -> Result<()> {
        let stays = |id: SegmentId| !ids.contains(&id) && self.live().row(id).is_some();
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.is_empty() {
            let file = file.as_mut().filter(|file| !file.ids().iter().all(|id| stays(*id)));
            return file.map_or(Ok(()), |file| file.retain(stays));
        }
        if let Some(folder) = &self.folder {
            // Earlier versions derived it from the vectors.
            disk::remove(&folder.join("vectors.graph"), "cannot remove the graph of vectors")?;
            // It may outlive a `vectors.bin` that was deleted.
            let kept = KeptVectors::beside(&folder.join("vectors.bin"));
            disk::remove(&kept, "cannot remove the vectors")?;
        }
        let path = self.folder.as_ref().map(|folder| folder.join("vectors.bin"));
        let made_by = path.as_deref().filter(|path| path.exists()).and_then(Embedding::beside);
        match (file.as_mut(), path) {
            (Some(file), _) if made_by.as_ref().is_none_or(|by| by == file.embedding()) => {
                file.retain(stays)
            }
            (_, Some(path)) => forget_in(&path, made_by, stays),
            (_, None) => Ok(()),
        }
    }
}

/// Removes vectors from a file that the current settings do not use. The others are kept, because
/// embedding them again takes time; an unreadable file is deleted.
fn forget_in(
    path: &Path,
    made_by: Option<Embedding>,
    stays: impl Fn(SegmentId) -> bool,
) -> Result<()> {
    if let Some(made_by) = made_by
        && let Ok(mut file) = VectorFile::open(path, made_by)
        && file.take_faults().is_empty()
    {
        return file.retain(stays);
    }
    disk::remove(path, "cannot remove the vectors").map(drop)
}
