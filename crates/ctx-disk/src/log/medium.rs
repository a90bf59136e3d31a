//! A log's file, shared by the log, which writes it, and its group, which syncs it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// The layer between a file and the disk.
///
/// [`OsMedium`] is the operating system. Tests use a medium whose syncs fail and which tracks the
/// real content of the disk.
pub trait Medium: Send + Sync + std::fmt::Debug {
    /// Writes all bytes at the file's cursor.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Syncs written bytes to disk.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The operating system.
#[derive(Debug)]
pub struct OsMedium;

impl Medium for OsMedium {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// A file that remembers a failed sync until the bytes are written again.
///
/// A system reports such a failure once per descriptor, and then counts the bytes as written
/// although they are not. So all users of the descriptor must know of it: if only the group knew,
/// the log's next sync would succeed without having stored anything.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    medium: Box<dyn Medium>,
    /// Held during a sync, because a failure must be recorded before the next sync.
    doubtful: Mutex<bool>,
}

impl SharedFile {
    pub(crate) fn new(file: File, medium: Box<dyn Medium>) -> Self {
        Self { file, medium, doubtful: Mutex::new(false) }
    }

    /// Returns the file, for reading and for moving its cursor.
    pub(crate) fn get(&self) -> &File {
        &self.file
    }

    /// Writes all bytes at the cursor.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.medium.write(&self.file, bytes)
    }

    /// Whether a sync failed and those bytes were not written again.
    pub(crate) fn is_doubtful(&self) -> bool {
        *self.doubtful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs everything to disk. Also fails if an earlier sync failed.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.sync_after(|| Err(io::Error::other("an earlier sync of the file failed")))
    }

    /// Syncs everything to disk. If an earlier sync failed, `write_again` is called first, to
    /// rewrite the bytes that may be lost.
    pub(crate) fn sync_after(
        &self,
        write_again: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut doubtful = self.doubtful.lock().unwrap_or_else(PoisonError::into_inner);
        if *doubtful {
            write_again()?;
        }
        let synced = self.medium.sync(&self.file);
        *doubtful = synced.is_err();
        synced
    }
}
