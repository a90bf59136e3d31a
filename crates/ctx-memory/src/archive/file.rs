//! The bytes of the archive: appended under a lock, or replaced.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctx_core::Result;

use crate::disk::{self, FileLock};

/// How long another process may have the lock. It holds it for as long as a write takes, or as
/// writing the file anew does.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many bytes before a place tell whether the file is still the one that was read up to there.
const TAIL: usize = 64;

/// What is known of the file's beginning, to be read on from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) read_to: u64,
    tail: Vec<u8>,
    generation: u64,
}

impl Mark {
    /// How often the file had been replaced.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

#[derive(Debug)]
pub(super) struct SegmentFile {
    path: PathBuf,
}

impl SegmentFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lock(&self) -> Result<FileLock> {
        disk::create_private_dir(disk::parent(&self.path))?;
        FileLock::within(&self.path, PATIENCE)
    }

    /// The file to read from. None: there is none yet.
    pub(super) fn open(&self) -> Result<Option<File>> {
        match disk::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(disk::io_error("cannot open the archive", &self.path, e)),
        }
    }

    /// How often the file was replaced, as far as the file beside it says.
    pub(super) fn generation(&self) -> u64 {
        let text = disk::read_to_string(disk::beside(&self.path, ".lock"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
    }

    /// Whether the file is the one of which `mark` was taken, or that with more behind it.
    pub(super) fn is_same(&self, file: &File, mark: &Mark) -> Result<bool> {
        if self.generation() != mark.generation {
            return Ok(false);
        }
        let mut there = Vec::new();
        let from = mark.read_to.saturating_sub(mark.tail.len() as u64);
        let read = (&mut &*file)
            .seek(SeekFrom::Start(from))
            .and_then(|_| file.take(mark.tail.len() as u64).read_to_end(&mut there));
        read.map_err(|e| self.failed("cannot read the archive", e))?;
        Ok(there == mark.tail)
    }

    /// What is to be known of a file that was read up to `read_to`, when `generation` was its own.
    pub(super) fn mark(&self, file: &File, read_to: u64, generation: u64) -> Result<Mark> {
        let mut tail = Vec::new();
        let from = read_to.saturating_sub(TAIL as u64);
        let read = (&mut &*file)
            .seek(SeekFrom::Start(from))
            .and_then(|_| file.take(read_to - from).read_to_end(&mut tail));
        read.map_err(|e| self.failed("cannot read the archive", e))?;
        Ok(Mark { read_to, tail, generation })
    }

    /// Appends whole lines, and returns when they are on the disk: where they begin, and the file.
    /// Everything up to `whole` is known to be whole lines; `bridge` is what lacks before the first.
    pub(super) fn append(
        &self,
        _lock: &FileLock,
        whole: u64,
        bridge: &[u8],
        lines: &[u8],
    ) -> Result<(u64, File)> {
        let is_new = !self.path.exists();
        let opened = disk::private().read(true).append(true).create(true).open(&self.path);
        let mut file = opened.map_err(|e| self.failed("cannot open the archive", e))?;
        let mut write = || {
            file.write_all(bridge)?;
            file.write_all(lines)?;
            file.sync_data()
        };
        if let Err(e) = write() {
            // Should this fail as well, a torn line stays that was never acknowledged.
            let _ = file.set_len(whole);
            return Err(self.failed("cannot write to the archive", e));
        }
        if is_new {
            disk::sync_dir(disk::parent(&self.path))?;
        }
        Ok((whole + bridge.len() as u64, file))
    }

    /// Moves what stands behind `whole` to a file of its own.
    pub(super) fn keep_aside(&self, _lock: &FileLock, whole: u64) -> Result<PathBuf> {
        let aside = disk::keep_aside(&self.path, whole)?;
        let cut = File::options().write(true).open(&self.path).and_then(|file| {
            file.set_len(whole)?;
            file.sync_data()
        });
        cut.map_err(|e| self.failed("cannot cut off the torn line", e))?;
        Ok(aside)
    }

    /// Puts these parts of the file, in their order, in its place.
    pub(super) fn keep_only(
        &self,
        lock: &FileLock,
        mut old: &File,
        parts: &[Range<u64>],
    ) -> Result<u64> {
        // First, so that nobody takes the new file for the old one. A crash in between costs the
        // others a scan.
        let generation = self.generation().wrapping_add(1);
        self.write_generation(lock, generation)?;
        disk::replace(&self.path, |out| {
            for part in parts {
                old.seek(SeekFrom::Start(part.start))?;
                let wanted = part.end - part.start;
                if io::copy(&mut old.take(wanted), out)? != wanted {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })?;
        Ok(generation)
    }

    /// Adds lines that could not be read to the file beside that keeps them.
    pub(super) fn keep_unreadable(
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

    /// Removes what was kept aside: of what was to be forgotten, it may hold a part.
    pub(super) fn remove_aside(&self, _lock: &FileLock) -> Result<()> {
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

    /// Removes what a rewrite that was killed left behind.
    pub(super) fn sweep(&self, _lock: &FileLock) {
        let _ = std::fs::remove_file(disk::temporary(&self.path));
    }

    pub(super) fn unreadable(&self) -> PathBuf {
        disk::beside(&self.path, ".unreadable")
    }

    fn write_generation(&self, lock: &FileLock, generation: u64) -> Result<()> {
        let mut sidecar = lock.sidecar();
        // Of one width, so that it is replaced in one write.
        let write = sidecar
            .seek(SeekFrom::Start(0))
            .and_then(|_| sidecar.write_all(format!("{generation:020}\n").as_bytes()));
        write.map_err(|e| self.failed("cannot write to the lock file", e))
    }

    pub(super) fn failed(&self, doing: &'static str, error: io::Error) -> ctx_core::Error {
        disk::io_error(doing, &self.path, error)
    }
}
