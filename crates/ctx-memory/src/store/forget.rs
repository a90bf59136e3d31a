//! Forgetting segments, with everything that was derived from them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ctx_core::Result;

use super::{Inner, Memory};
use crate::SegmentId;
use crate::vectors::{Embedding, VectorFile};

impl Memory {
    /// Removes segments from memory and from the disk, with everything that was derived from them,
    /// and says how many were there. Of none, only what a run that was killed left behind, and what
    /// is kept of segments that are gone, is taken away.
    ///
    /// The index of what stays is made by a thread; [`settle`](Self::settle) returns when it is there.
    ///
    /// # Errors
    ///
    /// Where a file cannot be written. What was removed by then is gone.
    pub fn forget(&self, ids: &HashSet<SegmentId>) -> Result<usize> {
        self.inner.ensure_open()?;
        let gone = {
            self.inner.is_wanted_elsewhere.store(true, Ordering::Relaxed);
            let mut indexer = self.inner.indexer();
            self.inner.is_wanted_elsewhere.store(false, Ordering::Relaxed);
            let mut source = self.inner.opened()?;
            if ids.is_empty() && !indexer.tells_of_what_is_gone(&self.inner) {
                return source.forget(ids);
            }
            // The source goes last: what is left of it after a crash says what is to be forgotten.
            // Terms of that would stay readable in the index.
            indexer.delete()?;
            self.inner.forget_vectors(ids)?;
            self.inner.live_mut().pending.retain(|id, _| !ids.contains(id));
            let gone = source.forget(ids);
            // Another process may have written an index of the old source meanwhile.
            indexer.delete()?;
            let live = self.inner.load(&mut source, &mut indexer)?;
            self.inner.swap(live);
            gone?
        };
        self.nudge();
        Ok(gone)
    }
}

impl Inner {
    fn forget_vectors(&self, ids: &HashSet<SegmentId>) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.delete_graph()?;
        let mut file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.as_ref().map(|folder| folder.join("vectors.bin"));
        let made_by = path.as_deref().filter(|path| path.exists()).and_then(Embedding::beside);
        match (file.as_mut(), path) {
            (Some(file), _) if made_by.as_ref().is_none_or(|by| by == file.embedding()) => {
                file.retain(|id| !ids.contains(&id))
            }
            (_, Some(path)) => forget_in(&path, made_by, ids),
            (_, None) => Ok(()),
        }
    }
}

/// Takes vectors out of a file that is not used as things are set. Those that stay cost a model's
/// time to make again; only of a file that nobody can read they go as well.
fn forget_in(path: &Path, made_by: Option<Embedding>, ids: &HashSet<SegmentId>) -> Result<()> {
    if let Some(made_by) = made_by
        && let Ok(mut file) = VectorFile::open(path, made_by)
        && file.take_faults().is_empty()
    {
        return file.retain(|id| !ids.contains(&id));
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(crate::disk::io_error("cannot remove the vectors", path, e))
        }
        _ => Ok(()),
    }
}
