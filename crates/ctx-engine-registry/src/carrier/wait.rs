//! Waiting for a future on the plain thread of an engine.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Whether the call that an engine works on is wanted still. It wakes who waits for a future.
#[derive(Debug, Default)]
pub(super) struct Cancelled {
    is: AtomicBool,
    waiting: Mutex<Option<Thread>>,
}

impl Cancelled {
    pub(super) fn set(&self) {
        self.is.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*waiting {
            thread.unpark();
        }
    }

    /// The future's output, or nothing if the call was cancelled before. A future that needs a
    /// runtime finds the one that this thread has entered.
    pub(super) fn or<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let waiting = |thread| {
            *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = thread;
        };
        waiting(Some(thread::current()));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let output = loop {
            if self.is.load(Ordering::SeqCst) {
                break None;
            }
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => break Some(output),
                // Who wakes between the poll and this lets it return at once.
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
    fn a_future_is_waited_for_until_it_is_ready_or_not_wanted() {
        let cancelled = Arc::new(Cancelled::default());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || sender.send(7));
        assert_eq!(cancelled.or(receiver), Some(Ok(7)));
        assert_eq!(other.join().expect("no panic"), Ok(()));

        let by_another = cancelled.clone();
        let other = thread::spawn(move || by_another.set());
        assert_eq!(cancelled.or(std::future::pending::<()>()), None);
        other.join().expect("no panic");
        assert_eq!(cancelled.or(std::future::ready(7)), None);
    }
}
