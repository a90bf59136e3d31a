//! The claim of a journal on a file, stored in the sidecar of the file's lock.
//!
//! It is written before a file's first record and removed after its last sync. So a file with an
//! empty sidecar is complete, and a file whose sidecar names a journal may lack lines that the
//! journal has. Only the holder of the file's lock may change it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use super::{record, recover};
use crate::FileLock;
use crate::log::SharedFile;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pointer {
    pub(super) journal: PathBuf,
    pub(super) member: u64,
}

/// Sets the journal's name, durably.
pub(super) fn set(lock: &FileLock, journal: &Path, member: u64) -> Result<()> {
    let failed = |e| crate::io_error("cannot write to the lock file", lock.path(), e);
    let journal = std::path::absolute(journal).map_err(failed)?;
    let pointer = Pointer { journal, member };
    let json = serde_json::to_vec(&pointer).map_err(|e| failed(std::io::Error::other(e)))?;
    let mut sidecar = lock.sidecar();
    sidecar.seek(SeekFrom::Start(0)).map_err(failed)?;
    sidecar.set_len(0).map_err(failed)?;
    sidecar.write_all(&json).map_err(failed)?;
    sidecar.sync_data().map_err(failed)?;
    crate::sync_dir(crate::parent(lock.path()))
}

/// Clears the journal's name, durably.
pub(crate) fn clear(lock: &FileLock) -> Result<()> {
    let failed = |e| crate::io_error("cannot write to the lock file", lock.path(), e);
    let sidecar = lock.sidecar();
    if sidecar.metadata().map_err(failed)?.len() > 0 {
        sidecar.set_len(0).map_err(failed)?;
        sidecar.sync_data().map_err(failed)?;
    }
    Ok(())
}

/// Reads the journal's name from an open sidecar. An unreadable name was torn while it was written;
/// the journal has no record of the file then.
pub(super) fn get(mut sidecar: &File) -> std::io::Result<Option<Pointer>> {
    let mut json = Vec::new();
    sidecar.seek(SeekFrom::Start(0))?;
    sidecar.read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json).ok())
}

/// Completes a file whose lock was just taken, if a journal has a claim on it.
pub(crate) fn settle(path: &Path, file: &SharedFile, lock: &FileLock) -> Result<()> {
    let failed = |e| crate::io_error("cannot read the lock file", lock.path(), e);
    let Some(Pointer { journal, member }) = get(lock.sidecar()).map_err(failed)? else {
        return Ok(());
    };
    let dir = crate::parent(&journal);
    if dir.is_dir() {
        // While this lock is held no other process replays. The journal may still be in use by its
        // group: the file left the group after an error, or could not be opened. If a sync failed,
        // the file may lack records that the journal has.
        let _dir_lock = FileLock::exclusive(&recover::guard(dir))?;
        match crate::read(&journal) {
            Ok(bytes) => {
                let records =
                    record::read(&bytes).map_err(|e| e.with("path", journal.display()))?;
                recover::apply(file, &records, member)
                    .map_err(|e| crate::io_error("cannot complete the session", path, e))?;
            }
            // A journal is removed when every file that needed it is complete.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(crate::io_error("cannot read the journal", &journal, e)),
        }
    }
    file.sync().map_err(|e| crate::io_error("cannot sync the file to disk", path, e))?;
    clear(lock)
}
