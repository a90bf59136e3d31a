//! The journal file of one group.

use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use super::record;

/// When the journal reaches this length, the files of the group are synced and a new round begins at the
/// start of the journal.
pub(super) const ROUND: u64 = 16 << 20;

/// The journal grows by this much at a time, filled with zeros.
const STEP: u64 = 1 << 20;

/// An append-only file that is reused from its start in each round.
///
/// Its blocks are filled with zeros before they are used. A sync then writes only data, which takes
/// 0.6 of the time of a sync that also records a new file length.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    pub(super) path: PathBuf,
    round: u64,
    /// The number of this round, counted from one.
    pub(super) epoch: u64,
    position: u64,
    allocated: u64,
}

impl Journal {
    /// Creates a journal in `dir` and locks it: the lock is held as long as the process lives. The
    /// caller holds the folder's lock.
    pub(super) fn create(dir: &Path, round: u64) -> Result<Self> {
        let path = dir.join(format!("{}.journal", uuid::Uuid::new_v4()));
        let failed = |e| crate::io_error("cannot create the journal", &path, e);
        let file =
            crate::private().read(true).write(true).create_new(true).open(&path).map_err(failed)?;
        file.try_lock().map_err(|e| match e {
            TryLockError::Error(e) => failed(e),
            TryLockError::WouldBlock => {
                Error::new(ErrorKind::Locked, "the new journal is locked by another process")
                    .with("path", path.display())
            }
        })?;
        crate::sync_dir(dir)?;
        Ok(Self { file, path, round, epoch: 1, position: 0, allocated: 0 })
    }

    /// Whether a frame of that size needs a new round.
    pub(super) fn is_full(&self, frame: usize) -> bool {
        self.position > 0 && self.position + frame as u64 > self.round
    }

    /// Begins a new round. All files of the group must have been synced.
    pub(super) fn begin_round(&mut self) {
        self.epoch += 1;
        self.position = 0;
    }

    /// Writes a frame durably.
    pub(super) fn write(&mut self, frame: &mut [u8]) -> std::io::Result<()> {
        record::seal(frame, self.epoch);
        let end = self.position + frame.len() as u64;
        if end > self.allocated {
            self.grow(end)?;
        }
        self.file.seek(SeekFrom::Start(self.position))?;
        self.file.write_all(frame)?;
        self.file.sync_data()?;
        self.position = end;
        Ok(())
    }

    fn grow(&mut self, end: u64) -> std::io::Result<()> {
        let zeros = vec![0; 64 << 10];
        let target = end.div_ceil(STEP) * STEP;
        self.file.seek(SeekFrom::Start(self.allocated))?;
        while self.allocated < target {
            self.file.write_all(&zeros)?;
            self.allocated += zeros.len() as u64;
        }
        self.file.sync_all()
    }
}
