//! One writer at a time, across threads and processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use crate::disk;

/// An exclusive lock on a file, held on a sidecar `<file>.lock`.
///
/// The lock is the operating system's, so it ends with its process, however that ends. It sits on
/// a sidecar because the guarded file may be replaced, and a lock on the old file would then guard
/// nothing. The sidecar is never removed: a second process might be waiting on it.
#[derive(Debug)]
pub(crate) struct FileLock {
    sidecar: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock, or fails with [`ErrorKind::Locked`] if another writer has it.
    pub(crate) fn try_exclusive(guarded: &Path) -> Result<Self> {
        let lock = Self::open(guarded)?;
        match lock.sidecar.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => {
                Err(Error::new(ErrorKind::Locked, "another writer has the file open")
                    .with("path", guarded.display())
                    .hint("wait until it is done, or end the process that writes the file")
                    .retryable())
            }
            Err(TryLockError::Error(e)) => Err(disk::io_error("cannot lock the file", guarded, e)),
        }
    }

    /// Takes the lock, waiting for as long as another process has it.
    pub(crate) fn exclusive(guarded: &Path) -> Result<Self> {
        let lock = Self::open(guarded)?;
        match lock.sidecar.lock() {
            Ok(()) => Ok(lock),
            Err(e) => Err(disk::io_error("cannot lock the file", guarded, e)),
        }
    }

    /// The sidecar itself; what it holds is its lock's business.
    pub(crate) fn sidecar(&self) -> &File {
        &self.sidecar
    }

    /// Where the sidecar is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn open(guarded: &Path) -> Result<Self> {
        let path = sidecar_of(guarded);
        let sidecar = disk::private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| disk::io_error("cannot open the lock file", &path, e))?;
        Ok(Self { sidecar, path })
    }
}

/// The sidecar of a guarded file.
pub(crate) fn sidecar_of(guarded: &Path) -> PathBuf {
    disk::beside(guarded, ".lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_which_file_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let held = FileLock::try_exclusive(&file).unwrap();
        let error = FileLock::try_exclusive(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.is_retryable() && error.to_string().contains("s.jsonl"), "{error}");
        drop(held);
        assert!(FileLock::try_exclusive(&file).is_ok());
    }
}
