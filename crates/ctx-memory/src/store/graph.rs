//! The graph over the vectors of a store: the one that was kept, or another.
//!
//! What is forgotten must not come back with a graph that somebody else keeps later. So one is kept, and
//! taken away, under a lock of its own; it is kept only if the archive was not written anew since the
//! vectors were read; and who forgets takes it away once more after that was done.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ctx_core::Result;

use super::Inner;
use super::indexer::Indexer;
use crate::disk::{self, FileLock};
use crate::near::{Built, Graph, Rows};

/// The graph over the vectors, beside them.
pub(super) const GRAPH: &str = "vectors.graph";

/// How long another process may have the lock: as long as a large graph takes to be written.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a graph is built from.
pub(super) struct Ground {
    vectors: Rows,
    numbering: u64,
    /// How often the archive had been written anew.
    generation: u64,
}

/// Where a graph is kept, and what made its vectors.
pub(super) struct Kept {
    path: PathBuf,
    owner: String,
}

impl Indexer {
    /// Gets a graph over the vectors, where there are many: the one on disk, or another.
    pub(super) fn build_graph(&mut self, inner: &Inner) -> Result<()> {
        let Some(ground) = inner.ground()? else { return Ok(()) };
        let kept = inner.graph_file();
        if self.looked_at != Some(ground.numbering) {
            self.looked_at = Some(ground.numbering);
            if let Some(kept) = &kept {
                self.look_at(inner, kept, &ground);
            }
        }
        let Some(mut ground) = inner.ground()? else { return Ok(()) };
        if ground.vectors.len() <= self.weak.saturating_mul(2) {
            return Ok(());
        }
        if kept.is_some() && inner.live().has_dead_vectors() {
            // Vectors of what is gone are not to be on the disk again.
            self.reload(inner)?;
            self.looked_at = Some(inner.live().numbering);
            let Some(anew) = inner.ground()? else { return Ok(()) };
            ground = anew;
        }
        match Graph::build(&ground.vectors, &inner.is_wanted_elsewhere)? {
            Built::Good(graph) => {
                // Kept first: who stops now need not make it again.
                if let Some(kept) = &kept {
                    inner.keep_graph(kept, &ground, |path| {
                        let id_of = |slot| inner.live().id(ground.vectors.row(slot)?);
                        graph.save(path, &kept.owner, ground.vectors.dimensions(), id_of)
                    });
                }
                inner.use_graph(graph, ground.numbering);
            }
            Built::Weak(found) => {
                self.weak = ground.vectors.len();
                if let Some(kept) = &kept {
                    inner.keep_graph(kept, &ground, |path| {
                        Graph::save_weak(path, &kept.owner, &ground.vectors)
                    });
                }
                let found = found * 100.0;
                inner.warn(format!(
                    "a query is compared with all {} vectors: a graph finds only {found:.0} % of \
                     what is nearest",
                    ground.vectors.len()
                ));
            }
            Built::Stopped => {}
        }
        Ok(())
    }

    /// Takes the graph on disk, or what it says of one that found too little.
    fn look_at(&mut self, inner: &Inner, kept: &Kept, ground: &Ground) {
        let Kept { path, owner } = kept;
        let slot_of = |id| inner.live().row(id).and_then(|row| ground.vectors.slot(row));
        match Graph::load(path, owner, &ground.vectors, slot_of) {
            Ok(Some(graph)) => inner.use_graph(graph, ground.numbering),
            Ok(None) => {
                let weak = Graph::weak(path, owner, ground.vectors.dimensions());
                self.weak = weak.unwrap_or(self.weak);
            }
            Err(error) => inner.warn(format!("the graph is made anew: {error}")),
        }
    }
}

impl Inner {
    /// What a graph would be built from, where one is worth while.
    pub(super) fn ground(&self) -> Result<Option<Ground>> {
        let (generation, _) = self.opened()?.generations();
        let live = self.live();
        let vectors = live.vectors.as_ref().filter(|_| live.wants_graph());
        let numbering = live.numbering;
        Ok(vectors.map(|vectors| Ground { vectors: vectors.clone(), numbering, generation }))
    }

    /// Where the graph over the vectors is kept; nowhere without files.
    pub(super) fn graph_file(&self) -> Option<Kept> {
        let file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = file.as_ref()?.embedding().name.clone();
        Some(Kept { path: self.folder.as_ref()?.join(GRAPH), owner })
    }

    /// Has a graph written, if the archive is the one that its vectors are of.
    pub(super) fn keep_graph(
        &self,
        kept: &Kept,
        ground: &Ground,
        save: impl FnOnce(&Path) -> Result<()>,
    ) {
        if self.settings.read_only {
            return;
        }
        let keep = || {
            let _lock = FileLock::within(&kept.path, PATIENCE)?;
            let (_, generation) = self.opened()?.generations();
            let is_same =
                generation == ground.generation && self.live().numbering == ground.numbering;
            if is_same { save(&kept.path) } else { Ok(()) }
        };
        if let Err(error) = keep() {
            self.warn(format!("the graph is made anew with the next start: {error}"));
        }
    }

    /// Takes away the graph on disk: it tells of vectors that are gone.
    pub(super) fn delete_graph(&self) -> Result<()> {
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(GRAPH)) else {
            return Ok(());
        };
        // Whoever is about to keep one has made the lock, and looks at the archive after that.
        let temporary = disk::temporary(&path);
        let there = [&path, &temporary, &disk::beside(&path, ".lock")];
        if there.iter().all(|path| !path.exists()) {
            return Ok(());
        }
        let _lock = FileLock::within(&path, PATIENCE)?;
        disk::remove(&temporary, "cannot remove the graph of vectors")?;
        disk::remove(&path, "cannot remove the graph of vectors").map(drop)
    }

    /// Has a graph lead to vectors, if they are still where it says.
    fn use_graph(&self, graph: Graph, numbering: u64) {
        let mut live = self.live_mut();
        if live.numbering == numbering {
            live.graph = Some(Arc::new(graph));
        }
    }
}
