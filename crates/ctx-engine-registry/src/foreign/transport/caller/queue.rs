//! Queued calls, the running call, and the state of the engine, behind one lock.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::foreign::transport::cancel::CancelFlag;
use crate::foreign::transport::{Canceller, Fault, HostServices, RawAnswer};

type Reply = oneshot::Sender<Result<RawAnswer, Fault>>;

/// A queued call.
pub(super) struct QueuedCall {
    pub(super) input: CallInput,
    pub(super) verb: String,
    pub(super) deadline: Duration,
    /// If it has not started at this time, it fails.
    pub(super) expires: Instant,
    pub(super) reply: Reply,
}

/// The part of a call that the engine's thread needs.
pub(super) struct CallInput {
    pub(super) id: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) services: Arc<HostServices>,
    /// The runtime in which the call is awaited.
    pub(super) runtime: Option<Handle>,
    pub(super) cancelled: Arc<CancelFlag>,
}

/// The part of the running call that other threads need.
pub(super) struct RunningCall {
    pub(super) id: u64,
    pub(super) verb: String,
    pub(super) deadline: Duration,
    pub(super) next: Escalation,
    pub(super) cancelled: Arc<CancelFlag>,
    /// Whether the caller still waits for the answer.
    pub(super) is_wanted: bool,
    /// Whether the engine was asked to cancel.
    pub(super) is_cancelled: bool,
    /// Taken by the first to reply.
    pub(super) reply: Option<Reply>,
}

/// What happens to the running call if it is not answered.
pub(super) enum Escalation {
    Cancel(Instant),
    End(Instant),
    Nothing,
}

impl RunningCall {
    pub(super) fn is_overdue(&self) -> bool {
        !matches!(self.next, Escalation::Cancel(_))
    }

    pub(super) fn late(&self, stderr: Vec<String>) -> Fault {
        Fault::Deadline { verb: self.verb.clone(), after: self.deadline, stderr }
    }
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) waiting: VecDeque<QueuedCall>,
    pub(super) running: Option<RunningCall>,
    pub(super) canceller: Option<Arc<dyn Canceller>>,
    /// Why the engine is lost.
    pub(super) gone: Option<String>,
    /// Whether no more calls will come.
    pub(super) is_closed: bool,
    /// Whether the engine was ended, as far as possible, and its thread is done.
    pub(super) has_ended: bool,
}

impl QueueState {
    /// Marks the engine as lost: no call will be answered any more.
    pub(super) fn lose(&mut self, why: String) {
        for job in self.waiting.drain(..) {
            // The receiver may be gone.
            let _ = job.reply.send(Err(Fault::Lost { why: why.clone() }));
        }
        self.gone.get_or_insert(why);
    }
}

/// The queue of calls.
#[derive(Default)]
pub(super) struct CallQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl CallQueue {
    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code of an engine runs under the lock, and if other code panics, the state is
        // consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, until `until` at the latest.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, QueueState> {
        let Some(until) = until else {
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let time = until.saturating_duration_since(Instant::now());
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Queues a call.
    pub(super) fn push(&self, job: QueuedCall) -> Result<(), Fault> {
        let mut state = self.lock();
        if let Some(why) = &state.gone {
            return Err(Fault::Lost { why: why.clone() });
        }
        state.waiting.push_back(job);
        drop(state);
        self.notify();
        Ok(())
    }

    /// Cancels a call whose caller is gone: removes it from the queue, or marks it as unwanted if
    /// it is running.
    pub(super) fn abandon(&self, id: u64) {
        let mut state = self.lock();
        state.waiting.retain(|job| job.input.id != id);
        let Some(work) = state.running.as_mut().filter(|work| work.id == id) else { return };
        work.is_wanted = false;
        work.cancelled.set();
        drop(state);
        self.notify();
    }

    /// Ends the engine, and waits at most `at_most` until it has ended.
    pub(super) fn close(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut state = self.lock();
        state.is_closed = true;
        let mut is_ending = true;
        if let Some(work) = &state.running {
            work.cancelled.set();
            is_ending = state.canceller.as_ref().is_some_and(|engine| engine.kill().is_some());
        }
        self.notify();
        while is_ending && !state.has_ended && Instant::now() < until {
            state = self.wait(state, Some(until));
        }
    }
}
