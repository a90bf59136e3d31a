//! The forms in which a transcript's messages were sent, wherever they are kept: in the session
//! itself where it is ours, else in its overlay.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctx_core::{ErrorKind, Projection, ProjectionStore, Result};

use crate::compactions::is_foreign;
use crate::log::{LogOptions, SessionLog};
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::projections::{SessionProjections, in_force, read_kept};

/// All forms of the messages of the transcript at `path`, oldest first. A transcript that ctx never
/// sent anything of has none. Forms that came with a compaction are there while it is in force on
/// the way to the transcript's leaf; for another branch, see
/// [`Transcript::sent_forms`](crate::Transcript::sent_forms).
///
/// # Errors
///
/// [`ErrorKind::Io`] if a file that is there cannot be read.
pub fn sent_forms(home: &Home, path: &Path) -> Result<Vec<Projection>> {
    let mut kept = read_kept(path)?;
    match read_kept(Overlay::of(home, path)?.path()) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        read => kept.extend(read?),
    }
    in_force(kept, || crate::open(home, path))
}

/// Keeps the forms in which messages were sent. They are on disk when this returns. Returns the
/// file that holds them.
///
/// # Errors
///
/// [`ErrorKind::Locked`] while somebody else writes to it, and [`ErrorKind::Io`].
pub fn keep_sent_forms(home: &Home, path: &Path, forms: &[Projection]) -> Result<PathBuf> {
    match SessionLog::open(path, LogOptions::default()) {
        Ok(log) => {
            let log = Arc::new(Mutex::new(log));
            SessionProjections::new(log.clone()).save(forms)?;
            log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).commit()?;
            Ok(path.to_owned())
        }
        Err(error) if is_foreign(error.kind()) => {
            let overlay = Overlay::of(home, path)?;
            overlay.save(forms)?;
            Ok(overlay.path().to_owned())
        }
        Err(error) => Err(error),
    }
}
