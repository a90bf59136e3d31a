//! Locks, and disk work on blocking threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::{Error, ErrorKind, Result};

/// Runs disk work on a blocking thread.
pub(crate) async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => {
            Err(Error::new(ErrorKind::Cancelled, "disk work failed unexpectedly")
                .source(error)
                .hint("this is a bug in ctx: see its log; what was committed is on disk"))
        }
        Err(error) => Err(Error::new(ErrorKind::Cancelled, "disk work was interrupted")
            .source(error)
            .hint("the program is shutting down; what was committed is on disk")),
    }
}

/// Locks a mutex, whether or not a thread panicked while it held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
