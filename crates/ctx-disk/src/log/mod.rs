//! A log: a file of complete lines, appended by one writer, durable on request.

pub(crate) mod group_commit;
mod medium;
mod tail;

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};

use crate::FileLock;
use group_commit::{CommitOutcome, GroupCommit, Member, pointer};
use tail::{Tail, tail};

pub(crate) use medium::SharedFile;
pub use medium::{Medium, OsMedium};
pub use tail::first_line;

/// If more bytes than this are written between two commits, writing them again to the group's
/// journal costs more than a separate sync.
const MOST_JOURNALED: usize = 256 << 10;

/// The chunk size for rewriting bytes after a failed sync.
const STEP: u64 = 1 << 20;

/// An open log. There is one writer at a time: a second one, in this process or another, gets
/// [`ErrorKind::Locked`].
///
/// The file always consists of complete lines, up to its length `len`: a write that fails half-way
/// is rolled back.
#[derive(Debug)]
pub struct LogFile {
    file: Arc<SharedFile>,
    path: PathBuf,
    lock: FileLock,
    tail: Tail,
    /// The length of the file, and the position of its cursor.
    len: u64,
    /// The bytes known to be on disk, in the file itself or in the group's journal.
    durable: u64,
    /// The bytes known to be on disk in the file itself: bytes that were there when it was opened,
    /// and bytes that its own syncs wrote. A failed sync may have lost any bytes after these.
    synced: u64,
    /// The file may differ from this struct. Nothing more is written.
    broken: bool,
    member: Option<Member>,
    /// The bytes since `durable`, for the group's journal. Beyond its limit they are discarded.
    pending: Vec<u8>,
}

impl LogFile {
    /// Creates the file with its first line, durably. An existing file is an error, except for an
    /// empty one, which is left by a crash between creation and first line.
    pub fn create(path: &Path, header: &[u8]) -> Result<Self> {
        Self::create_on(path, header, Box::new(OsMedium))
    }

    fn create_on(path: &Path, header: &[u8], medium: Box<dyn Medium>) -> Result<Self> {
        crate::create_private_dir(crate::parent(path))?;
        let lock = FileLock::with_default_timeout(path)?;
        let file = crate::private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| crate::io_error("cannot create the file", path, e))?;
        let mut log = Self::new(SharedFile::new(file, medium), path, lock);
        if log.length()? != 0 {
            return Err(Error::new(ErrorKind::Conflict, "the file already exists")
                .with("path", path.display())
                .hint("open it to append to it, or choose another session id"));
        }
        // A session with the same name may have been deleted; its journal must not affect this one.
        pointer::clear(&log.lock)?;
        log.append(header)?;
        log.commit()?;
        crate::sync_dir(crate::parent(path))?;
        Ok(log)
    }

    /// Opens a file for appending if `accept` accepts its first line. First replays the journal of
    /// a crashed group.
    pub fn open(path: &Path, accept: impl FnMut(&[u8]) -> Result<()>) -> Result<Self> {
        Self::open_on(path, accept, Box::new(OsMedium))
    }

    /// Like [`LogFile::open`], on a medium other than the operating system: for tests.
    pub fn open_on(
        path: &Path,
        mut accept: impl FnMut(&[u8]) -> Result<()>,
        medium: Box<dyn Medium>,
    ) -> Result<Self> {
        let failed = |e| crate::io_error("cannot open the file", path, e);
        let mut open = |options: &OpenOptions| {
            let file = options.open(path).map_err(failed)?;
            accept(&first_line(&file).map_err(failed)?)?;
            Ok::<_, Error>(file)
        };
        // The file may belong to another program, so it is checked without write access, and before
        // a lock file is created beside it.
        open(File::options().read(true))?;
        let lock = FileLock::with_default_timeout(path)?;
        // The previous holder of the lock may have replaced the file.
        let file = SharedFile::new(open(File::options().read(true).write(true))?, medium);
        pointer::settle(path, &file, &lock)?;
        let (length, tail) = tail(file.get()).map_err(failed)?;
        let mut log = Self::new(file, path, lock);
        log.tail = tail;
        log.len = length;
        log.durable = length;
        log.synced = length;
        log.seek_to_end()?;
        Ok(log)
    }

    fn new(file: SharedFile, path: &Path, lock: FileLock) -> Self {
        Self {
            file: Arc::new(file),
            path: path.to_owned(),
            lock,
            tail: Tail::Whole,
            len: 0,
            durable: 0,
            synced: 0,
            broken: false,
            member: None,
            pending: Vec::new(),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Makes the commits from now on through `group`.
    pub fn join(&mut self, group: &Arc<GroupCommit>) -> Result<()> {
        self.commit()?;
        self.member = Some(group.join(&self.file, &self.path, &self.lock)?);
        Ok(())
    }

    /// Appends a line. It is in the file when this returns, but not durable.
    pub fn append(&mut self, line: &[u8]) -> Result<()> {
        self.check()?;
        if self.tail != Tail::Whole {
            self.heal()?;
        }
        if let Err(e) = self.file.write_all(line) {
            self.truncate_to(self.len)?;
            return Err(crate::io_error("cannot write to the file", &self.path, e));
        }
        self.len += line.len() as u64;
        if self.member.is_some() && self.pending.len() + line.len() <= MOST_JOURNALED {
            self.pending.extend_from_slice(line);
        }
        Ok(())
    }

    /// Appends a line durably. A line that cannot be synced is removed again, because the error
    /// tells the caller that it is not stored.
    pub fn append_durably(&mut self, line: &[u8]) -> Result<()> {
        let before = self.len;
        self.append(line)?;
        if let Err(e) = self.commit() {
            self.truncate_to(before)?;
            return Err(e);
        }
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub fn commit(&mut self) -> Result<()> {
        if self.durable == self.len {
            return Ok(());
        }
        if self.broken {
            return self.check();
        }
        if let Some(member) = &mut self.member
            && !self.file.is_doubtful()
            && self.pending.len() as u64 == self.len - self.durable
        {
            match member.commit(self.durable, &self.pending) {
                CommitOutcome::Durable => {
                    self.durable = self.len;
                    self.pending.clear();
                    return Ok(());
                }
                CommitOutcome::Refused => return self.leave(),
            }
        }
        self.sync()
    }

    /// Truncates the file to `len` bytes. A broken log is left unchanged for the next process that
    /// opens the file.
    fn truncate_to(&mut self, len: u64) -> Result<()> {
        self.pending.clear();
        if self.broken {
            return Ok(());
        }
        // If this fails, `len` is not the length of the file.
        self.broken = true;
        let mut file = self.file.get();
        let cut = file.set_len(len).and_then(|()| file.seek(SeekFrom::Start(len)));
        cut.map_err(|e| crate::io_error("cannot roll back a failed write", &self.path, e))?;
        self.len = len;
        self.durable = self.durable.min(len);
        self.synced = self.synced.min(len);
        self.broken = false;
        Ok(())
    }

    /// Leaves the group after a failure of its journal: syncs the file itself and removes the
    /// journal's claim. If that fails too, it is unknown whether the journal's record is on disk,
    /// until the file is opened again.
    fn leave(&mut self) -> Result<()> {
        self.broken = true;
        self.sync()?;
        pointer::clear(&self.lock)?;
        if let Some(member) = self.member.take() {
            member.settled();
        }
        self.broken = false;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if let Err(e) = self.file.sync_after(|| self.write_again()) {
            // Rewriting may have stopped half-way, and the next line belongs at the end.
            self.broken |= self.seek_to_end().is_err();
            return Err(crate::io_error("cannot sync the file to disk", &self.path, e));
        }
        self.synced = self.len;
        self.durable = self.len;
        self.pending.clear();
        Ok(())
    }

    /// Rewrites the bytes that a failed sync may have lost: those it was meant to make durable, and
    /// those that are durable only in the group's journal.
    fn write_again(&self) -> std::io::Result<()> {
        let mut file = self.file.get();
        let mut bytes = Vec::new();
        let mut at = self.synced;
        while at < self.len {
            bytes.resize(usize::try_from(STEP.min(self.len - at)).unwrap_or_default(), 0);
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)?;
            file.seek(SeekFrom::Start(at))?;
            self.file.write_all(&bytes)?;
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Repairs the end of the file before the first append: a torn line is moved to a separate
    /// file, a missing line break is added.
    fn heal(&mut self) -> Result<()> {
        match self.tail {
            Tail::Whole => {}
            Tail::NoNewline => {
                self.tail = Tail::Whole;
                if let Err(e) = self.append(b"\n") {
                    self.tail = Tail::NoNewline;
                    return Err(e);
                }
            }
            Tail::Torn { at, after_whole } => {
                crate::copy_torn_tail(&self.path, at)?;
                self.truncate_to(at)?;
                self.tail = if after_whole { Tail::NoNewline } else { Tail::Whole };
                return self.heal();
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        if self.broken {
            return Err(Error::new(
                ErrorKind::Io,
                "an earlier failure left the file in an unknown state",
            )
            .with("path", self.path.display())
            .hint("open the session again to recover what was stored"));
        }
        if self.length()? != self.len {
            return Err(Error::new(ErrorKind::Conflict, "another program changed the file")
                .with("path", self.path.display())
                .with("bytes expected", self.len)
                .hint("open the session again, with no other program writing to it"));
        }
        Ok(())
    }

    fn length(&self) -> Result<u64> {
        let metadata = self.file.get().metadata();
        metadata
            .map(|m| m.len())
            .map_err(|e| crate::io_error("cannot inspect the file", &self.path, e))
    }

    fn seek_to_end(&self) -> Result<()> {
        let seek = self.file.get().seek(SeekFrom::Start(self.len));
        seek.map(drop).map_err(|e| crate::io_error("cannot inspect the file", &self.path, e))
    }

    /// Makes everything durable in the file itself and removes the journal's claim on it.
    pub fn close(&mut self) -> Result<()> {
        if self.broken {
            return self.check();
        }
        if self.member.is_some() { self.leave() } else { self.commit() }
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // No caller can receive the error. Bytes that were not synced are in the journal, or were
        // never reported as durable.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests;
