//! Files of this crate: private, whole, one writer at a time, with errors that name them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};

/// The longest pause between two tries for a lock that another has.
const PAUSE: Duration = Duration::from_millis(10);

/// An exclusive lock on a file, held on a sidecar `<file>.lock`: the file itself may be replaced.
/// It is the operating system's, so it ends with its process, however that ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    sidecar: File,
}

impl FileLock {
    /// Takes the lock, waiting for at most `limit` while another writer has it.
    pub(crate) fn within(guarded: &Path, limit: Duration) -> Result<Self> {
        let path = beside(guarded, ".lock");
        let sidecar = private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| io_error("cannot open the lock file", &path, e))?;
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match sidecar.try_lock() {
                Ok(()) => return Ok(Self { sidecar }),
                Err(TryLockError::Error(e)) => {
                    return Err(io_error("cannot lock the file", guarded, e));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::Locked, "another process writes to the file")
                    .with("path", guarded.display())
                    .with("waited", format!("{:.1} s", limit.as_secs_f64()))
                    .retryable()
                    .hint("wait until it is done, or end the process that holds the lock"));
            }
            std::thread::park_timeout(pause.min(left));
            pause = (pause * 2).min(PAUSE);
        }
    }

    /// The sidecar itself; what it holds is its lock's business.
    pub(crate) fn sidecar(&self) -> &File {
        &self.sidecar
    }
}

/// An I/O error on `path`, with what was attempted.
pub(crate) fn io_error(doing: &'static str, path: &Path, error: io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "check whether it is still there",
        io::ErrorKind::NotADirectory => "a part of the path is a file, where a folder should be",
        io::ErrorKind::IsADirectory => "a folder stands where the file should be: move it away",
        io::ErrorKind::PermissionDenied => {
            "check the owner and the permissions of the file and its folder"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "the file system cannot be written to: mount it writable, or choose another folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some disk space; nothing that was stored before is lost"
        }
        _ => "check the path and its file system",
    };
    Error::new(ErrorKind::Io, doing).with("path", path.display()).source(error).hint(hint)
}

/// Options that create files readable and writable by their owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a folder and its missing parents, each for their owner alone, and durably.
pub(crate) fn create_private_dir(path: &Path) -> Result<()> {
    let missing: Vec<_> =
        path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
    for dir in missing.into_iter().rev() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
            created => created.map_err(|e| io_error("cannot create the folder", dir, e))?,
        }
        sync_dir(parent(dir))?;
    }
    Ok(())
}

/// The folder a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `path` with `suffix` added to its file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes the names in a folder durable. Only Unix has and needs this.
pub(crate) fn sync_dir(path: &Path) -> Result<()> {
    if cfg!(unix) {
        let sync = File::open(path).and_then(|dir| dir.sync_all());
        sync.map_err(|e| io_error("cannot sync the folder", path, e))?;
    }
    Ok(())
}

/// Puts what `write` writes in the place of `path`: readers see the old file or the new one, also
/// after a crash. The caller holds the lock that guards the file, so one temporary name is enough,
/// and what a killed writer left there is overwritten.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let temporary = temporary(path);
    let put = || {
        // A file of that name may be readable by others.
        match std::fs::remove_file(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = private().write(true).create_new(true).open(&temporary)?;
        let mut out = io::BufWriter::with_capacity(256 << 10, file);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        std::fs::rename(&temporary, path)
    };
    if let Err(e) = put() {
        // Best effort: the error that matters is the one being reported.
        let _ = std::fs::remove_file(&temporary);
        return Err(io_error("cannot replace the file", path, e));
    }
    sync_dir(parent(path))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path, doing: &'static str) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error(doing, path, e)),
        _ => Ok(()),
    }
}

/// Where [`replace`] writes.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    beside(path, ".tmp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_files_are_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        create_private_dir(&deep).unwrap();
        let file = deep.join("f");
        for text in ["one", "two"] {
            replace(&file, |out| out.write_all(text.as_bytes())).unwrap();
        }
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&deep), mode(&file)), (0o700, 0o600));
        }
    }

    #[test]
    fn a_replacement_that_fails_leaves_the_old_file_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "old").unwrap();
        let error = replace(&file, |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert!(error.to_string().contains('f') && error.hint_text().is_some(), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_second_writer_is_told_which_file_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        let held = FileLock::within(&file, Duration::ZERO).unwrap();
        let error = FileLock::within(&file, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.is_retryable() && error.hint_text().is_some());
        drop(held);
        assert!(FileLock::within(&file, Duration::ZERO).is_ok());
    }
}
