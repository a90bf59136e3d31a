//! File locks: one writer at a time, across threads and processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};

/// The longest pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(10);

/// How long [`FileLock::with_default_timeout`] waits, in milliseconds.
static DEFAULT_TIMEOUT_MS: AtomicU64 = AtomicU64::new(500);

/// Sets how long this process waits for a session that another writer has open. Default: 0.5 s.
/// Storing a compaction locks the session for milliseconds; an open session stays locked longer.
pub fn set_default_timeout(timeout: Duration) {
    let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    DEFAULT_TIMEOUT_MS.store(millis, Ordering::Relaxed);
}

/// The longest wait while other writers make progress, as a multiple of the time limit.
const MOST_LIMITS: u32 = 20;

/// An exclusive lock on a file, held on a sidecar `<file>.lock`.
///
/// It is a lock of the operating system, so it is released when its process ends, even by a crash.
/// It is on a sidecar because the guarded file may be replaced, and a lock on the old file would
/// then guard nothing. The sidecar is never removed: another process might be waiting on it.
#[derive(Debug)]
pub struct FileLock {
    sidecar: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock, or fails with [`ErrorKind::Locked`] if another writer holds it.
    ///
    /// # Errors
    ///
    /// Those of [`with_timeout`](Self::with_timeout).
    pub fn try_exclusive(guarded: &Path) -> Result<Self> {
        Self::with_timeout(guarded, Duration::ZERO)
    }

    /// Takes the lock, waiting up to the time set by [`set_default_timeout`].
    ///
    /// # Errors
    ///
    /// Those of [`with_timeout`](Self::with_timeout).
    pub fn with_default_timeout(guarded: &Path) -> Result<Self> {
        Self::with_timeout(
            guarded,
            Duration::from_millis(DEFAULT_TIMEOUT_MS.load(Ordering::Relaxed)),
        )
    }

    /// Takes the lock. If another writer still holds it after `limit`, fails with
    /// [`ErrorKind::Locked`]. If the guarded file changed meanwhile, other writers take turns, and
    /// the limit starts again; the whole wait is at most 20 times the limit.
    ///
    /// System locks have no timeout, so this retries after short pauses. It is meant for locks that
    /// are held for milliseconds.
    pub fn with_timeout(guarded: &Path, limit: Duration) -> Result<Self> {
        let lock = Self::open(guarded)?;
        let stamp =
            || std::fs::metadata(guarded).ok().map(|found| (found.len(), found.modified().ok()));
        let (first, mut begin, mut seen) = (Instant::now(), Instant::now(), stamp());
        let mut pause = Duration::from_millis(1);
        loop {
            match lock.sidecar.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(e)) => {
                    return Err(crate::io_error("cannot lock the file", guarded, e));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                let now = stamp();
                if now == seen || first.elapsed() >= limit * MOST_LIMITS {
                    return Err(lock.timed_out(guarded, first.elapsed().min(limit * MOST_LIMITS)));
                }
                (begin, seen) = (Instant::now(), now);
                continue;
            }
            std::thread::park_timeout(pause.min(left));
            pause = (pause * 2).min(PAUSE);
        }
    }

    fn timed_out(&self, guarded: &Path, waited: Duration) -> Error {
        let error = Error::new(ErrorKind::Locked, "another writer has the file open")
            .with("path", guarded.display())
            .retryable();
        let error = if waited.is_zero() {
            error
        } else {
            error.with("waited", format!("{:.1} s", waited.as_secs_f64()))
        };
        error.hint(format!(
            "wait until it is done (session.lockWaitMs says how long ctx waits), or end the process \
             that holds the lock on {}",
            self.path.display()
        ))
    }

    /// Takes the lock, waiting without a limit.
    pub fn exclusive(guarded: &Path) -> Result<Self> {
        let lock = Self::open(guarded)?;
        match lock.sidecar.lock() {
            Ok(()) => Ok(lock),
            Err(e) => Err(crate::io_error("cannot lock the file", guarded, e)),
        }
    }

    /// Returns the sidecar file. The holder of the lock may store data in it.
    pub fn sidecar(&self) -> &File {
        &self.sidecar
    }

    /// Returns the path of the sidecar.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(guarded: &Path) -> Result<Self> {
        let path = sidecar_of(guarded);
        let sidecar = crate::private()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| crate::io_error("cannot open the lock file", &path, e))?;
        Ok(Self { sidecar, path })
    }
}

/// Unlocks, rather than only closing the file: a child that another thread is just starting has a
/// copy of every open file until it runs its program, and would keep the lock so long.
impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is the way out if this fails.
        let _ = self.sidecar.unlock();
    }
}

/// Returns the sidecar path of a guarded file.
pub fn sidecar_of(guarded: &Path) -> PathBuf {
    crate::beside(guarded, ".lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_error_names_the_locked_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let held = FileLock::try_exclusive(&file).unwrap();
        let error = FileLock::try_exclusive(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.is_retryable() && error.to_string().contains("s.jsonl"), "{error}");
        assert!(error.hint_text().is_some_and(|h| h.contains("s.jsonl.lock")));
        drop(held);
        assert!(FileLock::try_exclusive(&file).is_ok());
    }

    #[test]
    fn a_released_lock_is_free_while_a_child_has_a_copy_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let held = FileLock::try_exclusive(&file).unwrap();
        let inherited = held.sidecar().try_clone().unwrap();
        drop(held);
        assert!(FileLock::try_exclusive(&file).is_ok());
        drop(inherited);
    }

    #[test]
    fn waiting_ends_and_a_released_lock_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let held = FileLock::try_exclusive(&file).unwrap();
        let limit = Duration::from_millis(30);
        let begin = Instant::now();
        let error = FileLock::with_timeout(&file, limit).unwrap_err();
        assert!(begin.elapsed() >= limit);
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("waited"), "{error}");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| FileLock::with_timeout(&file, Duration::from_secs(60)));
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
    }
}
