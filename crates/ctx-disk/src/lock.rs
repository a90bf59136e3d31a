//! One writer at a time, across threads and processes.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};

/// The longest pause between two tries for a lock that another has.
const PAUSE: Duration = Duration::from_millis(10);

/// How long a session is waited for that another writer has open, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(500);

/// Sets how long this process waits for a session that another writer has open. Default: 0.5 s. To
/// store a compaction takes milliseconds; who keeps a session open keeps it for longer.
pub fn set_patience(patience: Duration) {
    let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    PATIENCE.store(millis, Ordering::Relaxed);
}

/// How often the time that somebody waits begins anew where others write meanwhile.
const MOST_LIMITS: u32 = 20;

/// An exclusive lock on a file, held on a sidecar `<file>.lock`.
///
/// The lock is the operating system's, so it ends with its process, however that ends. It sits on
/// a sidecar because the guarded file may be replaced, and a lock on the old file would then guard
/// nothing. The sidecar is never removed: a second process might be waiting on it.
#[derive(Debug)]
pub struct FileLock {
    sidecar: File,
    path: PathBuf,
}

impl FileLock {
    /// Takes the lock, or fails with [`ErrorKind::Locked`] if another writer has it.
    ///
    /// # Errors
    ///
    /// Those of [`within`](Self::within).
    pub fn try_exclusive(guarded: &Path) -> Result<Self> {
        Self::within(guarded, Duration::ZERO)
    }

    /// Takes the lock, waiting as long as [`set_patience`] says.
    ///
    /// # Errors
    ///
    /// Those of [`within`](Self::within).
    pub fn soon(guarded: &Path) -> Result<Self> {
        Self::within(guarded, Duration::from_millis(PATIENCE.load(Ordering::Relaxed)))
    }

    /// Takes the lock, waiting for at most `limit` while another writer has it, and then fails with
    /// [`ErrorKind::Locked`]. Where many wait for a short write each, the limit begins anew with each
    /// write that is seen, `MOST_LIMITS` times.
    ///
    /// The system's locks know no limit, so this tries again after short pauses. It is meant for
    /// locks that are held for milliseconds.
    pub fn within(guarded: &Path, limit: Duration) -> Result<Self> {
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
                    return Err(lock.taken(guarded, first.elapsed().min(limit * MOST_LIMITS)));
                }
                (begin, seen) = (Instant::now(), now);
                continue;
            }
            std::thread::park_timeout(pause.min(left));
            pause = (pause * 2).min(PAUSE);
        }
    }

    fn taken(&self, guarded: &Path, waited: Duration) -> Error {
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

    /// Takes the lock, waiting for as long as another process has it.
    pub fn exclusive(guarded: &Path) -> Result<Self> {
        let lock = Self::open(guarded)?;
        match lock.sidecar.lock() {
            Ok(()) => Ok(lock),
            Err(e) => Err(crate::io_error("cannot lock the file", guarded, e)),
        }
    }

    /// The sidecar itself; what it holds is its lock's business.
    pub fn sidecar(&self) -> &File {
        &self.sidecar
    }

    /// Where the sidecar is.
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

/// The sidecar of a guarded file.
pub fn sidecar_of(guarded: &Path) -> PathBuf {
    crate::beside(guarded, ".lock")
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
        assert!(error.hint_text().is_some_and(|h| h.contains("s.jsonl.lock")));
        drop(held);
        assert!(FileLock::try_exclusive(&file).is_ok());
    }

    #[test]
    fn waiting_has_an_end_and_a_lock_let_go_meanwhile_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.jsonl");
        let held = FileLock::try_exclusive(&file).unwrap();
        let limit = Duration::from_millis(30);
        let begin = Instant::now();
        let error = FileLock::within(&file, limit).unwrap_err();
        assert!(begin.elapsed() >= limit);
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("waited"), "{error}");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| FileLock::within(&file, Duration::from_secs(60)));
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
    }
}
