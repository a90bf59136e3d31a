//! The file that receives ctx's additions to a transcript.

use std::path::Path;

use ctx_core::{EntryId, Result, Timestamp};

use crate::log::{Durability, LogOptions, SessionLog, is_foreign};
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::schema::Body;
use crate::transcript::Transcript;

/// A locked ctx session, or the overlay of another file: opened for this operation, or by the
/// caller.
pub(super) enum StorageTarget<'o> {
    Session(Box<SessionLog>),
    Overlay(Box<Overlay>),
    HeldOverlay(&'o Overlay),
}

impl<'o> StorageTarget<'o> {
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
                let transcript = locked(&overlay, path, check)?;
                Ok((Self::Overlay(Box::new(overlay)), transcript))
            }
            Err(error) => Err(error),
        }
    }

    /// Uses an overlay that the caller has open, and reads its transcript.
    pub(super) fn held(
        overlay: &'o Overlay,
        check: impl FnOnce(&Transcript) -> Result<()>,
    ) -> Result<(Self, Transcript)> {
        let transcript = locked(overlay, overlay.source(), check)?;
        Ok((Self::HeldOverlay(overlay), transcript))
    }

    /// Appends an entry after `leaf`, durably.
    pub(super) fn append(
        self,
        entry: &impl Body,
        leaf: &EntryId,
        now: Timestamp,
    ) -> Result<EntryId> {
        match self {
            Self::Session(mut log) => {
                let id = log.append_body(entry, now)?;
                log.close()?;
                Ok(id)
            }
            Self::Overlay(overlay) => overlay.append_body(entry, leaf, now),
            Self::HeldOverlay(overlay) => overlay.append_body(entry, leaf, now),
        }
    }
}

/// Locks an overlay, and reads its transcript. If the overlay would be new, runs `check` first.
fn locked(
    overlay: &Overlay,
    path: &Path,
    check: impl FnOnce(&Transcript) -> Result<()>,
) -> Result<Transcript> {
    if !overlay.path().exists() {
        check(&Transcript::open(path)?)?;
    }
    // The previous holder of the lock may have added entries that must be visible here.
    overlay.lock()?;
    Transcript::open(path)?.with_overlay(overlay)
}
