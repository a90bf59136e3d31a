//! Locks, disk work on blocking threads, and numbers in files.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk as disk;

/// Runs disk work on a blocking thread.
pub(crate) async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(ErrorKind::Cancelled, "disk work of a shared session was interrupted")
            .source(error)
            .hint("what the store has acknowledged is there"))
    })
}

/// Locks a mutex, whether or not a thread panicked while it held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a number from a file: 0 if it is none, `missing` without a file.
pub(crate) fn read_number(file: &Path, missing: u64) -> Result<u64> {
    match disk::read_to_string(file) {
        Ok(number) => Ok(number.trim().parse().unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(missing),
        Err(error) => Err(disk::io_error("cannot read a number of the shared store", file, error)),
    }
}

/// Writes a number to a file.
pub(crate) fn write_number(file: &Path, number: u64) -> Result<()> {
    disk::write_atomic(file, number.to_string().as_bytes())
}
