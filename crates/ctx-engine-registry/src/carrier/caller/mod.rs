//! An engine's own thread, and the time that its calls may take.

mod line;
mod watch;
mod work;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::{Answered, Carrier, Fault, Offer, envelope};
use line::{Job, Line, Task};

/// No deadline is further away, so that clocks do not overflow.
const FOREVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a caller that is dropped waits for its engine to end.
const ENDING: Duration = Duration::from_secs(2);

/// Calls one engine from async code: one call at a time, each with a deadline.
///
/// The engine works on a thread of its own, so a call may be awaited on any executor. If that is a
/// tokio runtime, then what the engine asks of its host from inside the call runs in it.
///
/// At its deadline a call is cancelled. If the engine does not give it up within a tenth of the time
/// it had (at least 250 ms, at most a second), a process is killed, and a library is abandoned with
/// its thread. Either is then [lost](Caller::is_lost): every further call is refused.
///
/// A call whose future is dropped is cancelled too; the engine goes on, and its late answer is
/// thrown away. Dropping the caller ends the engine.
pub struct Caller {
    line: Arc<Line>,
    ids: AtomicU64,
}

impl Caller {
    /// Starts the thread of an engine. `open` runs there, within the first call and its deadline.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(
        engine: &str,
        open: impl FnOnce() -> Result<Box<dyn Carrier>> + Send + 'static,
    ) -> Result<Self> {
        let line = Arc::new(Line::default());
        let refused = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "the system gives no thread for an engine").source(error)
        };
        let worker = line.clone();
        thread::Builder::new()
            .name(format!("ctx-engine-{engine}"))
            .spawn(move || work::run(&worker, open))
            .map_err(refused)?;
        let caller = Self { line: line.clone(), ids: AtomicU64::new(1) };
        thread::Builder::new()
            .name(format!("ctx-watch-{engine}"))
            .spawn(move || watch::run(&line))
            .map_err(refused)?;
        Ok(caller)
    }

    /// Calls a verb with parameters that are JSON, and returns what was answered.
    ///
    /// The deadline bounds the engine's work, and before that the waiting for other calls.
    ///
    /// # Errors
    ///
    /// A [`Fault`].
    pub async fn call(
        &self,
        verb: &str,
        params: &[u8],
        deadline: Duration,
        services: Arc<Offer>,
    ) -> Result<Answered, Fault> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let deadline = deadline.min(FOREVER);
        let (reply, replied) = oneshot::channel();
        let task = Task {
            id,
            json: envelope::call(id, verb, params),
            services,
            runtime: tokio::runtime::Handle::try_current().ok(),
            cancelled: Arc::default(),
        };
        let give_up = Instant::now() + deadline;
        self.line.join(Job { task, verb: verb.to_owned(), deadline, give_up, reply })?;
        let _unwanted_if_dropped = Unwanted { line: &self.line, id };
        replied.await.unwrap_or_else(|_| Err(Fault::Lost { why: "its thread ended".into() }))
    }

    /// Whether the engine is gone for good.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.line.lock().gone.is_some()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.line.close(ENDING);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("is_lost", &self.is_lost()).finish_non_exhaustive()
    }
}

/// Says that nobody waits for an answer any more. After the answer that changes nothing.
struct Unwanted<'a> {
    line: &'a Line,
    id: u64,
}

impl Drop for Unwanted<'_> {
    fn drop(&mut self) {
        self.line.leave(self.id);
    }
}
