//! Saves what the summaries of clients lost, so that it is put back after a restart too.

use std::path::PathBuf;

use ctx_core::Result;
use ctx_disk::lru::LruFolder;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::{MOST, Remembered};
use crate::proxy::replica::{ReplicaStore, SharedFolder};

/// Maximum size of all files; beyond it, the least recently changed files are deleted.
const MOST_BYTES: u64 = 32 << 20;

/// A summary, and what it lost.
#[derive(Debug, Serialize, Deserialize)]
struct SavedSummary {
    owner: String,
    text: String,
    lost: String,
}

/// The folder of saved summaries.
#[derive(Debug)]
pub(super) struct SummaryFiles(SharedFolder);

impl SummaryFiles {
    pub(super) fn at(folder: PathBuf, replicas: Option<ReplicaStore>) -> Self {
        let files = LruFolder::at(folder, MOST_BYTES, MOST);
        Self(SharedFolder::new(files, "summaries", replicas))
    }

    /// Whether replicas share them.
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Returns the summaries of an owner that other replicas saved since the last call.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(super) async fn fetch(&self, owner: &str) -> Result<Vec<Remembered>> {
        let unknown = self.0.unknown(&format!("{owner}-")).await?;
        Ok(unknown.iter().filter_map(|id| self.read(id)).collect())
    }

    /// Saves an audited summary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be written, and those of the store.
    pub(super) fn save(&self, summary: &Remembered, lost: &str) -> Result<()> {
        let (owner, text, lost) = (summary.owner.clone(), summary.text.clone(), lost.to_owned());
        let id = format!("{owner}-{}", uuid::Uuid::new_v4().simple());
        let saved = SavedSummary { owner, text, lost };
        self.0.save_as(&id, &saved, "cannot save a client's summary")
    }

    /// Returns the saved summaries, oldest first. Damaged files are left out.
    pub(super) fn load(&self) -> Vec<Remembered> {
        self.0.oldest_first().iter().filter_map(|id| self.read(id)).collect()
    }

    fn read(&self, id: &str) -> Option<Remembered> {
        let SavedSummary { owner, text, lost } = self.0.read(id)?;
        let lost = OnceCell::new_with(Some(Some(lost)));
        Some(Remembered { lost, ..Remembered::new(owner, &text, None) })
    }
}
