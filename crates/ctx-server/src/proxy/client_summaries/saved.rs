//! Saves what the summaries of clients lost, so that it is put back after a restart too.

use std::path::PathBuf;

use ctx_core::Result;
use ctx_disk::lru::LruFolder;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::{MOST, Remembered};

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
pub(super) struct SummaryFiles(LruFolder);

impl SummaryFiles {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self(LruFolder::at(folder, MOST_BYTES, MOST))
    }

    /// Saves an audited summary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be written.
    pub(super) fn save(&self, summary: &Remembered, lost: &str) -> Result<()> {
        let (owner, text, lost) = (summary.owner.clone(), summary.text.clone(), lost.to_owned());
        self.0.save(&SavedSummary { owner, text, lost }, "cannot save a client's summary")?;
        Ok(())
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
