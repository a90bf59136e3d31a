//! The file that takes what ctx adds to a transcript.

use std::path::Path;

use ctx_core::{EntryId, ErrorKind, Result, Timestamp};

use crate::Transcript;
use crate::log::{Body, Durability, LogOptions, SessionLog};
use crate::overlay::Overlay;
use crate::paths::Home;

/// A session of ours, locked, or the overlay of another file.
pub(super) enum Place {
    Ours(Box<SessionLog>),
    Beside(Box<Overlay>),
}

impl Place {
    /// The place for what is added to the transcript at `path`, and the transcript as it is while
    /// nobody else adds to it through ctx.
    pub(super) fn open(home: &Home, path: &Path) -> Result<(Self, Transcript)> {
        let options = LogOptions::default().with_durability(Durability::PerEntry);
        match SessionLog::open(path, options) {
            Ok(log) => Ok((Self::Ours(Box::new(log)), crate::open(home, path)?)),
            Err(error) if is_foreign(error.kind()) => {
                let overlay = Overlay::of(home, path)?;
                // Whoever holds the lock may be about to add what is to be seen here.
                overlay.lock()?;
                let transcript = Transcript::open(path)?.with_overlay(&overlay)?;
                Ok((Self::Beside(Box::new(overlay)), transcript))
            }
            Err(error) => Err(error),
        }
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
        }
    }
}

/// Whether opening for writing failed because the file is not ours, or too old.
pub(crate) fn is_foreign(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnknownFormat | ErrorKind::InvalidInput)
}
