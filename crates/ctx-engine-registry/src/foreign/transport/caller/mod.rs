//! The thread of an engine, and the deadlines of its calls.

mod queue;
mod watchdog;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ctx_core::Result;
use tokio::sync::oneshot;

use super::process::start;
use super::{Fault, HostServices, RawAnswer, Transport, envelope};
use queue::{CallInput, CallQueue, QueuedCall};

/// Upper bound of a deadline, so that clocks do not overflow.
const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a dropped caller waits for its engine to end.
const ENDING: Duration = Duration::from_secs(2);

/// Calls one engine from async code: one call at a time, each with a deadline.
///
/// The engine works on its own thread, so a call may be awaited on any executor. If that is a tokio
/// runtime, the host calls of the engine during the call run in it.
///
/// At its deadline a call is cancelled. If the engine does not return within a tenth of the
/// deadline (at least 250 ms, at most a second), a process is killed, and a library is abandoned
/// with its thread. In both cases the engine is [lost](Caller::is_lost): every further call is
/// refused.
///
/// A call whose future is dropped is cancelled too; the engine goes on, and its late answer is
/// discarded. Dropping the caller ends the engine.
pub struct Caller {
    queue: Arc<CallQueue>,
    ids: AtomicU64,
}

impl Caller {
    /// Starts the thread of an engine. `open` runs there, during the first call and within its
    /// deadline.
    ///
    /// # Errors
    ///
    /// If the system cannot start a thread.
    pub fn start(
        engine: &str,
        open: impl FnOnce() -> Result<Box<dyn Transport>> + Send + 'static,
    ) -> Result<Self> {
        let queue = Arc::new(CallQueue::default());
        let worker = queue.clone();
        start(format!("ctx-engine-{engine}"), move || worker::run(&worker, open))?;
        let caller = Self { queue: queue.clone(), ids: AtomicU64::new(1) };
        start(format!("ctx-watch-{engine}"), move || watchdog::run(&queue))?;
        Ok(caller)
    }

    /// Calls a verb, in the encoding of its parameters, and returns the answer.
    ///
    /// The deadline bounds the engine's work, and separately the time in the queue before it.
    ///
    /// # Errors
    ///
    /// A [`Fault`].
    pub async fn call(
        &self,
        verb: &str,
        params: &[u8],
        deadline: Duration,
        services: Arc<HostServices>,
    ) -> Result<RawAnswer, Fault> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let deadline = deadline.min(FOREVER);
        let (reply, replied) = oneshot::channel();
        let input = CallInput {
            id,
            bytes: envelope::call(id, verb, params),
            services,
            runtime: tokio::runtime::Handle::try_current().ok(),
            cancelled: Arc::default(),
        };
        let expires = Instant::now() + deadline;
        self.queue.push(QueuedCall { input, verb: verb.to_owned(), deadline, expires, reply })?;
        let _abandoned_if_dropped = AbandonOnDrop { queue: &self.queue, id };
        replied.await.unwrap_or_else(|_| Err(Fault::Lost { why: "its thread ended".into() }))
    }

    /// Whether the engine is permanently lost.
    pub fn is_lost(&self) -> bool {
        self.queue.lock().gone.is_some()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.queue.close(ENDING);
    }
}

ctx_core::partial_debug!(Caller, it, is_lost = it.is_lost());

/// Marks the call as unwanted when dropped. After the answer this has no effect.
struct AbandonOnDrop<'a> {
    queue: &'a CallQueue,
    id: u64,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.queue.abandon(self.id);
    }
}
