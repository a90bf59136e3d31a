//! Calls that wait, the call at work, and what became of the engine: one state behind one lock.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::carrier::wait::Cancelled;
use crate::carrier::{Answered, Canceller, Fault, Offer};

type Reply = oneshot::Sender<Result<Answered, Fault>>;

/// A call that waits for its turn.
pub(super) struct Job {
    pub(super) task: Task,
    pub(super) verb: String,
    pub(super) deadline: Duration,
    /// When it has waited too long.
    pub(super) give_up: Instant,
    pub(super) reply: Reply,
}

/// What the engine's thread needs of a call.
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) json: Vec<u8>,
    pub(super) services: Arc<Offer>,
    /// Where the call is awaited.
    pub(super) runtime: Option<Handle>,
    pub(super) cancelled: Arc<Cancelled>,
}

/// What is known of the call at work outside of the engine's thread.
pub(super) struct AtWork {
    pub(super) id: u64,
    pub(super) verb: String,
    pub(super) deadline: Duration,
    pub(super) next: Next,
    pub(super) cancelled: Arc<Cancelled>,
    /// Whether somebody waits for the answer.
    pub(super) is_wanted: bool,
    /// Whether the engine was told that it is not.
    pub(super) is_told: bool,
    /// Taken by who replies first.
    pub(super) reply: Option<Reply>,
}

/// What happens to a call at work if it is not answered.
pub(super) enum Next {
    Cancel(Instant),
    End(Instant),
    Nothing,
}

impl AtWork {
    pub(super) fn has_missed_its_deadline(&self) -> bool {
        !matches!(self.next, Next::Cancel(_))
    }

    pub(super) fn late(&self, stderr: Vec<String>) -> Fault {
        Fault::Deadline { verb: self.verb.clone(), after: self.deadline, stderr }
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) waiting: VecDeque<Job>,
    pub(super) at_work: Option<AtWork>,
    pub(super) canceller: Option<Arc<dyn Canceller>>,
    /// Why there is no engine any more.
    pub(super) gone: Option<String>,
    /// No more calls will come.
    pub(super) is_closed: bool,
    /// The engine was ended, as far as it can be, and its thread is done.
    pub(super) has_ended: bool,
}

impl State {
    /// No call will be answered any more.
    pub(super) fn lose(&mut self, why: String) {
        for job in self.waiting.drain(..) {
            // Who does not wait any more needs no answer.
            let _ = job.reply.send(Err(Fault::Lost { why: why.clone() }));
        }
        self.gone.get_or_insert(why);
    }
}

/// Where calls line up.
#[derive(Default)]
pub(super) struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

impl Line {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code of an engine runs under the lock, and what does leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, at most until `until`.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        let Some(until) = until else {
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        let time = until.saturating_duration_since(Instant::now());
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// A call lines up.
    pub(super) fn join(&self, job: Job) -> Result<(), Fault> {
        let mut state = self.lock();
        if let Some(why) = &state.gone {
            return Err(Fault::Lost { why: why.clone() });
        }
        state.waiting.push_back(job);
        drop(state);
        self.notify();
        Ok(())
    }

    /// Nobody waits for the answer to this call any more.
    pub(super) fn leave(&self, id: u64) {
        let mut state = self.lock();
        state.waiting.retain(|job| job.task.id != id);
        let Some(work) = state.at_work.as_mut().filter(|work| work.id == id) else { return };
        work.is_wanted = false;
        work.cancelled.set();
        drop(state);
        self.notify();
    }

    /// Ends the engine, and waits for that no longer than `at_most`.
    pub(super) fn close(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut state = self.lock();
        state.is_closed = true;
        let mut is_ending = true;
        if let Some(work) = &state.at_work {
            work.cancelled.set();
            is_ending = state.canceller.as_ref().is_some_and(|engine| engine.kill().is_some());
        }
        self.notify();
        while is_ending && !state.has_ended && Instant::now() < until {
            state = self.wait(state, Some(until));
        }
    }
}
