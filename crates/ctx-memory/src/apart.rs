//! Work that blocks, on a thread of its own.

use ctx_core::{Error, ErrorKind, Result};
use futures_channel::oneshot;

/// Does work that waits for a disk or keeps a core busy on a thread called `name`, and waits for
/// what comes of it without blocking anybody. Work that nobody waits for any more is done all the
/// same.
///
/// # Errors
///
/// Where no thread can be had, or the work panics.
pub(crate) async fn apart<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let failed = |what: &'static str| {
        Error::new(ErrorKind::Io, what).with("thread", name).retryable().hint("try again later")
    };
    let (done, is_done) = oneshot::channel();
    let work = move || drop(done.send(work()));
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|e| failed("no thread can be started").source(e))?;
    is_done.await.map_err(|_| failed("work on a thread of its own did not end well"))
}

#[cfg(test)]
mod tests {
    use futures_executor::block_on;
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn work_is_done_on_another_thread_and_its_result_comes_back() {
        let here = std::thread::current().id();
        let there = block_on(apart("t", || std::thread::current().id())).unwrap();
        assert_ne!(here, there);
    }

    #[test]
    fn who_waits_is_not_blocked() {
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let mut work = Box::pin(apart("t", move || gate.recv().is_ok()));
        assert!(work.as_mut().now_or_never().is_none(), "it waits for the gate");
        go.send(()).unwrap();
        assert!(block_on(work).unwrap());
    }

    #[test]
    fn a_panic_is_an_error_of_who_waits() {
        let error =
            block_on(apart("t", || if true { panic!("on purpose") } else { 1 })).unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
    }
}
