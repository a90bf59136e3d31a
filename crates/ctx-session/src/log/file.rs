//! The bytes of a log: whole lines, appended by one writer, durable when asked for.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};

use super::scan::{Tail, first_line, tail};
use super::shared::{Medium, SharedFile, System};
use crate::disk;
use crate::group_commit::{GroupCommit, Member, Outcome, pointer};
use crate::lock::FileLock;
use crate::opencode_db;

/// Beyond this many bytes between two commits, writing them a second time to the group's journal
/// costs more than a sync of one's own.
const MOST_JOURNALED: usize = 256 << 10;

/// How long an open waits for another writer. Storing a compaction takes milliseconds; who keeps a
/// file open keeps it for longer than anybody would wait.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// How much is written again at a time after a failed sync.
const STEP: u64 = 1 << 20;

/// An open log.
///
/// What is in the file is always a number of whole lines, the last `len` bytes included: a write
/// that fails half-way is taken back.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: Arc<SharedFile>,
    path: PathBuf,
    lock: FileLock,
    tail: Tail,
    /// Bytes in the file. The cursor stands there.
    len: u64,
    /// Bytes known to be on disk, in the file itself or in the group's journal.
    durable: u64,
    /// Bytes known to be on disk in the file itself: what was there when it was opened, and what
    /// its own syncs brought there. A failed sync may have given up on any after these.
    synced: u64,
    /// The file may hold something other than this struct believes. Nothing more is written.
    broken: bool,
    member: Option<Member>,
    /// The bytes since `durable`, for the group's journal. Beyond its limit they are not kept.
    pending: Vec<u8>,
}

impl LogFile {
    /// Creates the file with its first line, durably. An existing file is an error, but for an
    /// empty one, which a crash between creation and first line leaves behind.
    pub(crate) fn create(path: &Path, header: &[u8]) -> Result<Self> {
        Self::create_on(path, header, Box::new(System))
    }

    pub(super) fn create_on(path: &Path, header: &[u8], medium: Box<dyn Medium>) -> Result<Self> {
        disk::create_private_dir(disk::parent(path))?;
        let lock = FileLock::exclusive_within(path, LOCK_WAIT)?;
        let file = disk::private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|e| disk::io_error("cannot create the file", path, e))?;
        let mut log = Self::new(SharedFile::new(file, medium), path, lock);
        if log.length()? != 0 {
            return Err(Error::new(ErrorKind::Conflict, "the file exists already")
                .with("path", path.display())
                .hint("open it to append to it, or choose another session id"));
        }
        // A session of the same name may have been deleted; its journal must not reach this one.
        pointer::clear(&log.lock)?;
        log.append(header)?;
        log.commit()?;
        disk::sync_dir(disk::parent(path))?;
        Ok(log)
    }

    /// Opens a file to append to it, once `accept` has looked at its first line. What a crashed
    /// group left in its journal is put in place before anything is read.
    pub(crate) fn open(path: &Path, accept: impl FnMut(&[u8]) -> Result<()>) -> Result<Self> {
        Self::open_on(path, accept, Box::new(System))
    }

    pub(crate) fn open_on(
        path: &Path,
        mut accept: impl FnMut(&[u8]) -> Result<()>,
        medium: Box<dyn Medium>,
    ) -> Result<Self> {
        if opencode_db::parts(path).is_some() {
            return Err(opencode_db::read_only(path));
        }
        let failed = |e| disk::io_error("cannot open the file", path, e);
        let mut open = |options: &OpenOptions| {
            let file = options.open(path).map_err(failed)?;
            accept(&first_line(&file).map_err(failed)?)?;
            Ok::<_, Error>(file)
        };
        // Before anything is created beside it, and without the right to write: the file may not be
        // ours.
        open(File::options().read(true))?;
        let lock = FileLock::exclusive_within(path, LOCK_WAIT)?;
        // Whoever had the lock until now may have put another file in its place.
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

    /// From now on commits go through `group`.
    pub(crate) fn join(&mut self, group: &Arc<GroupCommit>) -> Result<()> {
        self.commit()?;
        self.member = Some(group.join(&self.file, &self.path, &self.lock)?);
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends a line. It is in the file, but not durable, when this returns.
    pub(crate) fn append(&mut self, line: &[u8]) -> Result<()> {
        self.check()?;
        if self.tail != Tail::Whole {
            self.heal()?;
        }
        if let Err(e) = self.file.write_all(line) {
            self.take_back_to(self.len)?;
            return Err(disk::io_error("cannot write to the file", &self.path, e));
        }
        self.len += line.len() as u64;
        if self.member.is_some() && self.pending.len() + line.len() <= MOST_JOURNALED {
            self.pending.extend_from_slice(line);
        }
        Ok(())
    }

    /// Makes everything appended so far durable.
    pub(crate) fn commit(&mut self) -> Result<()> {
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
                Outcome::Durable => {
                    self.durable = self.len;
                    self.pending.clear();
                    return Ok(());
                }
                Outcome::Refused => return self.leave(),
            }
        }
        self.sync()
    }

    /// Takes the last bytes of the file back, down to `len` of them. A broken log is left as it is
    /// for whoever opens the file next.
    pub(crate) fn take_back_to(&mut self, len: u64) -> Result<()> {
        self.pending.clear();
        if self.broken {
            return Ok(());
        }
        // Should this fail, the file no longer is what `len` says.
        self.broken = true;
        let mut file = self.file.get();
        let cut = file.set_len(len).and_then(|()| file.seek(SeekFrom::Start(len)));
        cut.map_err(|e| disk::io_error("cannot take back a failed write", &self.path, e))?;
        self.len = len;
        self.durable = self.durable.min(len);
        self.synced = self.synced.min(len);
        self.broken = false;
        Ok(())
    }

    /// Leaves the group, whose journal failed: the file is synced by itself and the journal's claim
    /// on it ends. If that fails too, a journal record may or may not be on disk, and only opening
    /// the file anew can tell.
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
            // Writing again may have stopped half-way, and the next line belongs at the end.
            self.broken |= self.seek_to_end().is_err();
            return Err(disk::io_error("cannot bring the file to disk", &self.path, e));
        }
        self.synced = self.len;
        self.durable = self.len;
        self.pending.clear();
        Ok(())
    }

    /// Writes again what a failed sync may have given up on: not only what was to be made durable
    /// then, but also what is durable in the group's journal alone.
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

    /// Puts the end of the file in order before the first append: a torn line is moved to a file
    /// beside it, a missing line break is added.
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
                self.keep_aside(at)?;
                self.take_back_to(at)?;
                self.tail = if after_whole { Tail::NoNewline } else { Tail::Whole };
                return self.heal();
            }
        }
        Ok(())
    }

    fn keep_aside(&self, start: u64) -> Result<()> {
        let mut n = 1u32;
        let (path, mut aside) = loop {
            let path = disk::beside(&self.path, &format!(".torn-{n}"));
            match disk::private().write(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
                Err(e) => return Err(disk::io_error("cannot keep the torn line", &path, e)),
            }
        };
        let copy = || {
            let mut file = self.file.get();
            file.seek(SeekFrom::Start(start))?;
            std::io::copy(&mut file, &mut aside)?;
            aside.sync_all()
        };
        let copied = { copy }();
        if let Err(e) = copied {
            let _ = std::fs::remove_file(&path);
            return Err(disk::io_error("cannot keep the torn line", &path, e));
        }
        disk::sync_dir(disk::parent(&self.path))
    }

    fn check(&mut self) -> Result<()> {
        if self.broken {
            return Err(Error::new(ErrorKind::Io, "an earlier failure left the file in doubt")
                .with("path", self.path.display())
                .hint("open the session again: what was stored is put in order then"));
        }
        if self.length()? != self.len {
            return Err(Error::new(ErrorKind::Conflict, "another program changed the file")
                .with("path", self.path.display())
                .with("bytes expected", self.len)
                .hint("open the session again; let no other program write to it meanwhile"));
        }
        Ok(())
    }

    fn length(&self) -> Result<u64> {
        let metadata = self.file.get().metadata();
        metadata
            .map(|m| m.len())
            .map_err(|e| disk::io_error("cannot look at the file", &self.path, e))
    }

    fn seek_to_end(&self) -> Result<()> {
        let seek = self.file.get().seek(SeekFrom::Start(self.len));
        seek.map(drop).map_err(|e| disk::io_error("cannot look at the file", &self.path, e))
    }

    /// Makes everything durable in the file itself and ends the journal's claim on it.
    pub(crate) fn close(&mut self) -> Result<()> {
        if self.broken {
            return self.check();
        }
        if self.member.is_some() { self.leave() } else { self.commit() }
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        // Nobody is left to tell. What could not be synced is in the journal, or was never
        // reported as durable.
        let _ = self.close();
    }
}
