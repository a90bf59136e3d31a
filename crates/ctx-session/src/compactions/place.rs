//! The file that takes what ctx adds to a transcript.

use std::path::Path;

use ctx_core::{EntryId, ErrorKind, Result, Timestamp};

use crate::Transcript;
use crate::log::{Body, Durability, LogOptions, SessionLog};
use crate::overlay::Overlay;
use crate::paths::Home;

/// A session of ours, locked, or the overlay of another file: opened for the purpose, or held by
/// somebody who goes on with it.
pub(super) enum Place<'o> {
    Ours(Box<SessionLog>),
    Beside(Box<Overlay>),
    Held(&'o Overlay),
}

impl<'o> Place<'o> {
    /// The place for what is added to the transcript at `path`, and the transcript as it is while
    /// nobody else adds to it through ctx. What `check` refuses creates no overlay.
    pub(super) fn open(
        home: &Home,
        path: &Path,
        check: impl FnOnce(&Transcript) -> Result<()>,
    ) -> Result<(Self, Transcript)> {
        let options = LogOptions::default().with_durability(Durability::PerEntry);
        match SessionLog::open(path, options) {
            Ok(log) => Ok((Self::Ours(Box::new(log)), crate::open(home, path)?)),
            Err(error) if is_foreign(error.kind()) => {
                let overlay = Overlay::of(home, path)?;
                let transcript = locked(&overlay, path, check)?;
                Ok((Self::Beside(Box::new(overlay)), transcript))
            }
            Err(error) => Err(error),
        }
    }

    /// An overlay that somebody holds, and its transcript.
    pub(super) fn held(
        overlay: &'o Overlay,
        check: impl FnOnce(&Transcript) -> Result<()>,
    ) -> Result<(Self, Transcript)> {
        let transcript = locked(overlay, overlay.source(), check)?;
        Ok((Self::Held(overlay), transcript))
    }

    /// Adds an entry behind `leaf`, durably.
    pub(super) fn append(
        self,
        entry: &impl Body,
        leaf: &EntryId,
        now: Timestamp,
    ) -> Result<EntryId> {
        match self {
            Self::Ours(mut log) => {
                let id = log.append_body(entry, now)?;
                log.close()?;
                Ok(id)
            }
            Self::Beside(overlay) => overlay.append_body(entry, leaf, now),
            Self::Held(overlay) => overlay.append_body(entry, leaf, now),
        }
    }
}

/// Locks an overlay, and reads its transcript.
fn locked(
    overlay: &Overlay,
    path: &Path,
    check: impl FnOnce(&Transcript) -> Result<()>,
) -> Result<Transcript> {
    if !overlay.path().exists() {
        check(&Transcript::open(path)?)?;
    }
    // Whoever holds the lock may be about to add what is to be seen here.
    overlay.lock()?;
    Transcript::open(path)?.with_overlay(overlay)
}

/// Whether opening for writing failed because the file is not ours, or too old.
pub(crate) fn is_foreign(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnknownFormat | ErrorKind::InvalidInput)
}
