//! The file that receives ctx's additions to a transcript.

use std::path::Path;

use ctx_core::{EntryId, Result, Timestamp};

use crate::disk::LogFile;
use crate::log::{Durability, LogOptions, SessionLog, is_foreign};
use crate::overlay::{Overlay, append};
use crate::paths::Home;
use crate::schema::NewEntry;
use crate::transcript::Transcript;

/// A locked ctx session, or the locked overlay of another file.
pub(super) enum StorageTarget {
    Session(Box<SessionLog>),
    Overlay(Box<LogFile>),
}

impl StorageTarget {
    /// Opens the target for additions to the transcript at `path`, and reads the transcript while
    /// the target is locked. If `check` fails, no overlay is created.
    pub(super) fn open(
        home: &Home,
        path: &Path,
        check: impl FnOnce(&Transcript) -> Result<()>,
    ) -> Result<(Self, Transcript)> {
        let options = LogOptions { durability: Durability::PerEntry, ..LogOptions::default() };
        match SessionLog::open(path, options) {
            Ok(log) => Ok((Self::Session(Box::new(log)), crate::overlay::open(home, path)?)),
            Err(error) if is_foreign(&error) => {
                let overlay = Overlay::of(home, path)?;
                if !overlay.path.exists() {
                    check(&Transcript::open(path)?)?;
                }
                let file = overlay.writer()?;
                // The previous holder of the lock may have added entries that must be visible here.
                let transcript = Transcript::open(path)?.with_overlay(&overlay)?;
                Ok((Self::Overlay(Box::new(file)), transcript))
            }
            Err(error) => Err(error),
        }
    }

    /// Appends an entry after `leaf`, durably.
    pub(super) fn append(
        self,
        entry: &NewEntry,
        leaf: &EntryId,
        now: Timestamp,
    ) -> Result<EntryId> {
        match self {
            Self::Session(mut log) => {
                let id = log.append(entry, now)?;
                log.close()?;
                Ok(id)
            }
            Self::Overlay(mut file) => append(&mut file, entry, Some(leaf), now),
        }
    }
}
