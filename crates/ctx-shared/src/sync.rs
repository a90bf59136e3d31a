//! Locks, and disk work on blocking threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::{Error, ErrorKind, Result};

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
