//! Blocking on a future on the plain thread of an engine.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Whether the running call was cancelled. Wakes the thread that waits for a future.
#[derive(Debug, Default)]
pub(super) struct CancelFlag {
    is_set: AtomicBool,
    waiting: Mutex<Option<Thread>>,
}

impl CancelFlag {
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*waiting {
            thread.unpark();
        }
    }

    /// Returns the future's output, or `None` if the call was cancelled first. A future that needs
    /// a runtime finds the one entered on this thread.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let waiting = |thread| {
            *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = thread;
        };
        waiting(Some(thread::current()));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let output = loop {
            if self.is_set.load(Ordering::SeqCst) {
                break None;
            }
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => break Some(output),
                // A wake-up between the poll and this makes it return at once.
                Poll::Pending => thread::park(),
            }
        };
        waiting(None);
        output
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_is_awaited_until_it_is_ready_or_cancelled() {
        let cancelled = Arc::new(CancelFlag::default());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || sender.send(7));
        assert_eq!(cancelled.block_on(receiver), Some(Ok(7)));
        assert_eq!(other.join().expect("no panic"), Ok(()));

        let by_another = cancelled.clone();
        let other = thread::spawn(move || by_another.set());
        assert_eq!(cancelled.block_on(std::future::pending::<()>()), None);
        other.join().expect("no panic");
        assert_eq!(cancelled.block_on(std::future::ready(7)), None);
    }
}
