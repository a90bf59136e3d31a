//! The graph over the vectors of a store: loaded from disk, or built.
//!
//! A graph that another process saves later must not restore forgotten vectors. Therefore a graph
//! is saved and deleted under its own lock. It is saved only if the archive was not rewritten since
//! the vectors were read. And forgetting deletes it once more after the archive was rewritten.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ctx_core::Result;

use super::Inner;
use super::indexer::Indexer;
use crate::disk::{self, FileLock};
use ctx_search::near::{Built, Graph, Rows};

/// The file of the graph, beside the vectors.
pub(super) const GRAPH: &str = "vectors.graph";

/// How long to wait while another process holds the lock: the time to write a large graph.
const PATIENCE: Duration = Duration::from_secs(10);

/// The input for building a graph.
pub(super) struct GraphInput {
    vectors: Rows,
    numbering: u64,
    /// The generation of the archive.
    generation: u64,
}

/// The file of a graph, and the embedder of its vectors.
pub(super) struct GraphFile {
    path: PathBuf,
    owner: String,
}

impl Indexer {
    /// Loads or builds a graph over the vectors, if there are many.
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
        if ground.vectors.count() <= self.weak.saturating_mul(2) {
            return Ok(());
        }
        if kept.is_some() && inner.live().has_dead_vectors() {
            // Vectors of removed segments must not be written to disk again.
            self.reload(inner)?;
            self.looked_at = Some(inner.live().numbering);
            let Some(new_ground) = inner.ground()? else { return Ok(()) };
            ground = new_ground;
        }
        match Graph::build(&ground.vectors, &inner.is_wanted_elsewhere)? {
            Built::Good(graph) => {
                // Saved first, so that a process that stops now need not build it again.
                if let Some(kept) = &kept {
                    inner.keep_graph(kept, &ground, |path| {
                        let id_of = |slot| inner.live().id(ground.vectors.row(slot)?);
                        graph.save(path, &kept.owner, ground.vectors.dimensions(), id_of)
                    });
                }
                inner.use_graph(graph, ground.numbering);
            }
            Built::Weak(found) => {
                self.weak = ground.vectors.count();
                if let Some(kept) = &kept {
                    inner.keep_graph(kept, &ground, |path| {
                        Graph::save_weak(path, &kept.owner, &ground.vectors)
                    });
                }
                let found = found * 100.0;
                inner.warn(format!(
                    "queries are compared with all {} vectors: a graph finds only {found:.0} % of \
                     the nearest ones",
                    ground.vectors.count()
                ));
            }
            Built::Stopped => {}
        }
        Ok(())
    }

    /// Loads the graph on disk, or the record in its place that a graph has too little recall.
    fn look_at(&mut self, inner: &Inner, kept: &GraphFile, ground: &GraphInput) {
        let GraphFile { path, owner } = kept;
        let slot_of = |id| inner.live().row(id).and_then(|row| ground.vectors.slot(row));
        match Graph::load(path, owner, &ground.vectors, slot_of) {
            Ok(Some(graph)) => inner.use_graph(graph, ground.numbering),
            Ok(None) => {
                let weak = Graph::weak(path, owner, ground.vectors.dimensions());
                self.weak = weak.unwrap_or(self.weak);
            }
            Err(error) => inner.warn(format!("the vector graph is rebuilt: {error}")),
        }
    }
}

impl Inner {
    /// Returns the input for a graph, if one is worthwhile.
    pub(super) fn ground(&self) -> Result<Option<GraphInput>> {
        let (generation, _) = self.opened()?.generations();
        let live = self.live();
        let vectors = live.vectors.as_ref().filter(|_| live.wants_graph());
        let numbering = live.numbering;
        Ok(vectors.map(|vectors| GraphInput { vectors: vectors.clone(), numbering, generation }))
    }

    /// Returns the file of the graph; `None` for a memory without files.
    pub(super) fn graph_file(&self) -> Option<GraphFile> {
        let file = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = file.as_ref()?.embedding().name.clone();
        Some(GraphFile { path: self.folder.as_ref()?.join(GRAPH), owner })
    }

    /// Saves a graph, if its vectors still belong to the current archive.
    pub(super) fn keep_graph(
        &self,
        kept: &GraphFile,
        ground: &GraphInput,
        save: impl FnOnce(&Path) -> Result<()>,
    ) {
        if self.settings.read_only {
            return;
        }
        let keep = || {
            let _lock = FileLock::with_timeout(&kept.path, PATIENCE)?;
            let (_, generation) = self.opened()?.generations();
            let is_same =
                generation == ground.generation && self.live().numbering == ground.numbering;
            if is_same { save(&kept.path) } else { Ok(()) }
        };
        if let Err(error) = keep() {
            self.warn(format!("the vector graph is rebuilt at the next start: {error}"));
        }
    }

    /// Deletes the graph on disk: it contains removed vectors.
    pub(super) fn delete_graph(&self) -> Result<()> {
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(GRAPH)) else {
            return Ok(());
        };
        // Without a lock file no process is about to save a graph. One that creates it later checks
        // the archive after taking the lock.
        let temporary = disk::temporary(&path);
        let there = [&path, &temporary, &disk::beside(&path, ".lock")];
        if there.iter().all(|path| !path.exists()) {
            return Ok(());
        }
        let _lock = FileLock::with_timeout(&path, PATIENCE)?;
        disk::remove(&temporary, "cannot remove the graph of vectors")?;
        disk::remove(&path, "cannot remove the graph of vectors").map(drop)
    }

    /// Uses a graph for searches, if its slots are still valid.
    fn use_graph(&self, graph: Graph, numbering: u64) {
        let mut live = self.live_mut();
        if live.numbering == numbering {
            live.graph = Some(Arc::new(graph));
        }
    }
}
