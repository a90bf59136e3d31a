//! Runs blocking work on a separate thread.

use ctx_core::{Error, ErrorKind, Result};
use futures_channel::oneshot;

/// Runs blocking or CPU-bound work on a new thread called `name` and awaits its result. The work
/// runs to its end even if the future is dropped.
///
/// # Errors
///
/// If the thread cannot be started, or the work panics.
pub async fn spawn_blocking<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let failed = |what: &'static str| {
        Error::new(ErrorKind::Io, what).with("thread", name).retryable().hint("try again later")
    };
    let (done, is_done) = oneshot::channel();
    let work = move || drop(done.send(work()));
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|e| failed("cannot start a thread").source(e))?;
    is_done.await.map_err(|_| failed("a background thread panicked"))
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn work_is_done_on_another_thread_and_its_result_comes_back() {
        let here = std::thread::current().id();
        let there = block_on(spawn_blocking("t", || std::thread::current().id())).unwrap();
        assert_ne!(here, there);
    }

    #[test]
    fn waiting_does_not_block_the_thread() {
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let mut work = Box::pin(spawn_blocking("t", move || gate.recv().is_ok()));
        assert!(work.as_mut().now_or_never().is_none(), "it waits for the gate");
        go.send(()).unwrap();
        assert!(block_on(work).unwrap());
    }

    #[test]
    fn a_panic_is_an_error_for_the_caller() {
        let error = block_on(spawn_blocking("t", || if true { panic!("on purpose") } else { 1 }))
            .unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
    }
}
