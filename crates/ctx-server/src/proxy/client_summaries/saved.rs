//! Saves what the summaries of clients lost, so that it is put back after a restart too.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use ctx_core::Result;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::{MOST, Remembered};
use crate::private_files::{self, LruFiles, file_of};

/// Maximum size of all files; beyond it, the least recently changed files are deleted.
const MOST_BYTES: u64 = 32 << 20;

/// A summary, and what it lost.
#[derive(Debug, Serialize, Deserialize)]
struct SavedSummary {
    owner: String,
    text: String,
    lost: Option<String>,
}

/// The folder of saved summaries.
#[derive(Debug)]
pub(super) struct SummaryFiles {
    folder: PathBuf,
    files: Mutex<LruFiles>,
}

impl SummaryFiles {
    pub(super) fn at(folder: PathBuf) -> Self {
        let files = Mutex::new(LruFiles::of(&folder, private_files::id_of));
        Self { folder, files }
    }

    /// Saves an audited summary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be written.
    pub(super) fn save(&self, summary: &Remembered) -> Result<()> {
        let failed = private_files::unwritable("cannot save a client's summary", &self.folder);
        private_files::create_folder(&self.folder).map_err(failed)?;
        let saved = SavedSummary {
            owner: summary.owner.clone(),
            text: summary.text.clone(),
            lost: summary.lost.get().cloned().flatten(),
        };
        let json = serde_json::to_vec(&saved).map_err(|error| failed(error.into()))?;
        let id = uuid::Uuid::new_v4().simple().to_string();
        ctx_disk::write_atomic(&file_of(&self.folder, &id), &json)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.record_use(&id, json.len() as u64);
        for old in files.evict(MOST_BYTES, MOST, &id) {
            // Best effort: the next server lists it again.
            let _ = fs::remove_file(file_of(&self.folder, &old));
        }
        Ok(())
    }

    /// Returns the saved summaries, oldest first. Damaged files are left out.
    pub(super) fn load(&self) -> Vec<Remembered> {
        let ids = self.files.lock().unwrap_or_else(PoisonError::into_inner).oldest_first();
        ids.iter().filter_map(|id| self.read(id)).collect()
    }

    fn read(&self, id: &str) -> Option<Remembered> {
        let bytes = ctx_disk::read(file_of(&self.folder, id)).ok()?;
        let SavedSummary { owner, text, lost } = serde_json::from_slice(&bytes).ok()?;
        let lost = OnceCell::new_with(Some(lost));
        Some(Remembered { lost, ..Remembered::new(owner, &text, None) })
    }
}
