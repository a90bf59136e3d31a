//! A session's file, as its log writes it and its group syncs it.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// What stands between a file and the disk.
///
/// The system's own is [`System`]. The tests have one whose syncs fail, and which remembers what
/// really would be on disk.
pub(crate) trait Medium: Send + Sync + std::fmt::Debug {
    /// Writes all bytes where the file's cursor stands.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Brings to disk what was written.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The operating system.
#[derive(Debug)]
pub(crate) struct System;

impl Medium for System {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// A file that remembers a failed sync until what was written has been written again.
///
/// A system reports such a failure once per descriptor, and then counts the bytes as written
/// although they are not. So whoever shares the descriptor has to hear of it: if only the group
/// knew, the log's next sync would succeed without having stored anything.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    medium: Box<dyn Medium>,
    /// Held during a sync, as the report of a failure must not get between two syncs.
    doubtful: Mutex<bool>,
}

impl SharedFile {
    pub(crate) fn new(file: File, medium: Box<dyn Medium>) -> Self {
        Self { file, medium, doubtful: Mutex::new(false) }
    }

    /// The file, to read it and to move its cursor.
    pub(crate) fn get(&self) -> &File {
        &self.file
    }

    /// Writes all bytes where the cursor stands.
    pub(crate) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.medium.write(&self.file, bytes)
    }

    /// Whether a sync failed, and nobody has written those bytes again.
    pub(crate) fn is_doubtful(&self) -> bool {
        *self.doubtful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings to disk all that was written, or fails: also if an earlier sync did.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.sync_after(|| Err(io::Error::other("an earlier sync of the file failed")))
    }

    /// Brings to disk all that was written. If an earlier sync failed, `write_again` is called
    /// first, to write what that sync may have given up on.
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
