//! The watchdog of an engine: cancels overdue and unwanted calls, and ends an engine that does not
//! stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue::{CallQueue, Escalation, QueueState};
use crate::foreign::transport::{Canceller, Fault};

/// How long a cancelled call may take to return.
fn grace(deadline: Duration) -> Duration {
    (deadline / 10).clamp(Duration::from_millis(250), Duration::from_secs(1))
}

/// Watches until the engine has ended or was abandoned.
pub(super) fn run(queue: &CallQueue) {
    let mut state = queue.lock();
    loop {
        let now = Instant::now();
        expire_queued(&mut state, now);
        if let Some((engine, id)) = next_to_cancel(&mut state, now) {
            // Without the lock, as code of the engine may run.
            drop(state);
            engine.cancel(id);
            state = queue.lock();
            continue;
        }
        kill_overdue(&mut state, now);
        let is_abandoned = state.gone.is_some() && state.canceller.is_none();
        if state.has_ended || is_abandoned {
            return;
        }
        let next_deadline = next_deadline(&state);
        state = queue.wait(state, next_deadline);
    }
}

fn expire_queued(state: &mut QueueState, now: Instant) {
    if state.waiting.iter().all(|job| job.expires > now) {
        return;
    }
    for job in std::mem::take(&mut state.waiting) {
        if job.expires > now {
            state.waiting.push_back(job);
        } else {
            let busy = Fault::Busy { verb: job.verb, after: job.deadline };
            // The receiver may be gone.
            let _ = job.reply.send(Err(busy));
        }
    }
}

/// Returns the engine and the call to cancel: an overdue call, or a call whose caller is gone.
fn next_to_cancel(state: &mut QueueState, now: Instant) -> Option<(Arc<dyn Canceller>, u64)> {
    let work = state.running.as_mut()?;
    if matches!(work.next, Escalation::Cancel(at) if at <= now) {
        work.next = Escalation::End(now + grace(work.deadline));
        work.cancelled.set();
    }
    if (work.is_wanted && !work.is_overdue()) || work.is_cancelled {
        return None;
    }
    // An engine that is not open yet cannot be cancelled; it is ended later.
    let engine = state.canceller.clone()?;
    work.is_cancelled = true;
    Some((engine, work.id))
}

fn kill_overdue(state: &mut QueueState, now: Instant) {
    let Some(work) = &mut state.running else { return };
    if !matches!(work.next, Escalation::End(at) if at <= now) {
        return;
    }
    work.next = Escalation::Nothing;
    // A process is killed, which ends its thread; the thread of a library is abandoned.
    let stderr = state.canceller.as_ref().and_then(|engine| engine.kill());
    let late = work.late(stderr.clone().unwrap_or_default());
    let why = late.to_string();
    if let Some(reply) = work.reply.take() {
        // The receiver may be gone.
        let _ = reply.send(Err(late));
    }
    if stderr.is_none() {
        state.canceller = None;
    }
    state.lose(why);
}

fn next_deadline(state: &QueueState) -> Option<Instant> {
    let work = state.running.as_ref().and_then(|work| match work.next {
        Escalation::Cancel(at) | Escalation::End(at) => Some(at),
        Escalation::Nothing => None,
    });
    state.waiting.iter().map(|job| job.expires).chain(work).min()
}
