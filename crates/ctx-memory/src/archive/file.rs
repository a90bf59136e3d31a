//! A file of lines, of the archive or of facts: appended to under a lock, or replaced.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use crate::disk::{self, FileLock};

/// How long to wait while another process holds the lock. It is held for one write or one rewrite
/// of the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of bytes before an offset that are compared to tell whether the file is still the same.
const TAIL: usize = 256;

/// How far the file was read, and how to recognise it, so that reading can continue there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadPosition {
    pub(crate) read_to: u64,
    tail: Vec<u8>,
    /// The file's generation, which increases with every replacement.
    generation: u64,
}

/// A file, and what errors call it.
#[derive(Debug)]
pub(crate) struct LinesFile {
    pub(crate) path: PathBuf,
    what: &'static str,
}

impl LinesFile {
    pub(crate) fn new(path: PathBuf, what: &'static str) -> Self {
        Self { path, what }
    }

    pub(crate) fn lock(&self) -> Result<FileLock> {
        disk::create_private_dir(disk::parent(&self.path))?;
        FileLock::with_timeout(&self.path, PATIENCE)
    }

    /// Opens the file for reading. Returns `None` if it does not exist yet.
    pub(crate) fn open(&self) -> Result<Option<File>> {
        match disk::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed("cannot open", e)),
        }
    }

    /// Returns the file's current generation, as recorded in the sidecar file.
    pub(crate) fn generation(&self) -> u64 {
        let text = disk::read_to_string(disk::beside(&self.path, ".lock"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
    }

    /// Whether `mark` was taken of this `file`, which may have grown since.
    pub(crate) fn is_same(&self, file: &File, mark: &ReadPosition) -> Result<bool> {
        if self.generation() != mark.generation {
            return Ok(false);
        }
        let length = mark.tail.len() as u64;
        let there = disk::read_at(file, mark.read_to.saturating_sub(length), length);
        Ok(there.map_err(|e| self.failed("cannot read", e))? == mark.tail)
    }

    /// Returns the mark of a file that was read up to `read_to` at `generation`.
    pub(crate) fn mark(&self, file: &File, read_to: u64, generation: u64) -> Result<ReadPosition> {
        let from = read_to.saturating_sub(TAIL as u64);
        let tail =
            disk::read_at(file, from, read_to - from).map_err(|e| self.failed("cannot read", e))?;
        Ok(ReadPosition { read_to, tail, generation })
    }

    /// Appends whole lines, flushes them to disk, and returns their offset and the file. Everything
    /// up to `whole` is known to be whole lines; `bridge` is written before the first new line.
    pub(crate) fn append(
        &self,
        _lock: &FileLock,
        whole: u64,
        bridge: &[u8],
        lines: &[u8],
    ) -> Result<(u64, File)> {
        let is_new = !self.path.exists();
        let opened = disk::private().read(true).append(true).create(true).open(&self.path);
        let mut file = opened.map_err(|e| self.failed("cannot open", e))?;
        let mut write = || {
            file.write_all(bridge)?;
            file.write_all(lines)?;
            file.sync_data()
        };
        if let Err(e) = write() {
            // If this fails too, a torn line remains that was never acknowledged.
            let _ = file.set_len(whole);
            return Err(self.failed("cannot write to", e));
        }
        if is_new {
            disk::sync_dir(disk::parent(&self.path))?;
        }
        Ok((whole + bridge.len() as u64, file))
    }

    /// Moves the bytes after `whole` to a separate file.
    pub(crate) fn keep_aside(&self, _lock: &FileLock, whole: u64) -> Result<PathBuf> {
        let aside = disk::copy_torn_tail(&self.path, whole)?;
        let cut = File::options().write(true).open(&self.path).and_then(|file| {
            file.set_len(whole)?;
            file.sync_data()
        });
        cut.map_err(|e| self.failed("cannot cut off the torn line of", e))?;
        Ok(aside)
    }

    /// Replaces the file by some of its parts, in this order.
    pub(crate) fn keep_only(
        &self,
        lock: &FileLock,
        mut old: &File,
        parts: &[Range<u64>],
    ) -> Result<u64> {
        // The generation is written first, so that no process takes the new file for the old one. A
        // crash in between only costs the other processes a scan.
        self.replace(lock, |out| {
            for part in parts {
                old.seek(SeekFrom::Start(part.start))?;
                let wanted = part.end - part.start;
                if io::copy(&mut old.take(wanted), out)? != wanted {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })
    }

    /// Replaces the file, and returns its new generation.
    pub(crate) fn replace(
        &self,
        lock: &FileLock,
        write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
    ) -> Result<u64> {
        let generation = self.generation().wrapping_add(1);
        self.write_generation(lock, generation)?;
        disk::replace(&self.path, write)?;
        Ok(generation)
    }

    /// Appends unreadable lines to the file beside the archive that keeps them.
    pub(crate) fn keep_unreadable(
        &self,
        _lock: &FileLock,
        mut old: &File,
        parts: &[Range<u64>],
    ) -> Result<()> {
        let path = self.unreadable();
        let mut copy = || {
            let mut file = disk::private().append(true).create(true).open(&path)?;
            for part in parts {
                old.seek(SeekFrom::Start(part.start))?;
                io::copy(&mut old.take(part.end - part.start), &mut file)?;
            }
            file.sync_all()
        };
        copy().map_err(|e| disk::io_error("cannot keep the lines that are damaged", &path, e))?;
        disk::sync_dir(disk::parent(&self.path))
    }

    /// Removes the files of torn and unreadable lines: they may contain text that must be
    /// forgotten.
    pub(crate) fn remove_aside(&self, _lock: &FileLock) -> Result<()> {
        let folder = disk::parent(&self.path);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let listed = std::fs::read_dir(folder);
        for entry in listed.map_err(|e| disk::io_error("cannot list the folder", folder, e))? {
            let Ok(entry) = entry else { continue };
            let found = entry.file_name().to_string_lossy().into_owned();
            let Some(suffix) = found.strip_prefix(&name) else { continue };
            if suffix.starts_with(".torn-") || suffix == ".unreadable" || suffix == ".tmp" {
                std::fs::remove_file(entry.path())
                    .map_err(|e| disk::io_error("cannot remove the file", &entry.path(), e))?;
            }
        }
        disk::sync_dir(folder)
    }

    /// Removes the temporary files of a rewrite that was killed.
    pub(crate) fn sweep(&self, _lock: &FileLock) {
        let _ = std::fs::remove_file(disk::temporary(&self.path));
    }

    pub(crate) fn unreadable(&self) -> PathBuf {
        disk::beside(&self.path, ".unreadable")
    }

    fn write_generation(&self, lock: &FileLock, generation: u64) -> Result<()> {
        let mut sidecar = lock.sidecar();
        // Fixed width, so that the value is replaced in one write.
        let write = sidecar
            .seek(SeekFrom::Start(0))
            .and_then(|_| sidecar.write_all(format!("{generation:020}\n").as_bytes()));
        write.map_err(|e| self.failed("cannot write to the lock file of", e))
    }

    /// Creates the error of a failed operation, such as "cannot read".
    pub(crate) fn failed(&self, doing: &str, error: io::Error) -> ctx_core::Error {
        disk::io_error(format!("{doing} {}", self.what), &self.path, error)
    }
}
