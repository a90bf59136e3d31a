//! The clock of an engine: cancels what is late or not wanted, and ends who does not give up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::line::{Line, Next, State};
use crate::carrier::{Canceller, Fault};

/// How long an engine that was told to give a call up may take for it.
fn grace(deadline: Duration) -> Duration {
    (deadline / 10).clamp(Duration::from_millis(250), Duration::from_secs(1))
}

/// Watches until the engine has ended, or was abandoned.
pub(super) fn run(line: &Line) {
    let mut state = line.lock();
    loop {
        let now = Instant::now();
        give_up_waiting(&mut state, now);
        if let Some((engine, id)) = whom_to_tell(&mut state, now) {
            // Without the lock, as code of the engine may run.
            drop(state);
            engine.cancel(id);
            state = line.lock();
            continue;
        }
        end_who_does_not_give_up(&mut state, now);
        let is_abandoned = state.gone.is_some() && state.canceller.is_none();
        if state.has_ended || is_abandoned {
            return;
        }
        let soonest = soonest(&state);
        state = line.wait(state, soonest);
    }
}

fn give_up_waiting(state: &mut State, now: Instant) {
    if state.waiting.iter().all(|job| job.give_up > now) {
        return;
    }
    for job in std::mem::take(&mut state.waiting) {
        if job.give_up > now {
            state.waiting.push_back(job);
        } else {
            let busy = Fault::Busy { verb: job.verb, after: job.deadline };
            // Who does not wait any more needs no answer.
            let _ = job.reply.send(Err(busy));
        }
    }
}

/// The engine, and the call that it is to give up: one that is late, or that nobody waits for.
fn whom_to_tell(state: &mut State, now: Instant) -> Option<(Arc<dyn Canceller>, u64)> {
    let work = state.at_work.as_mut()?;
    if matches!(work.next, Next::Cancel(at) if at <= now) {
        work.next = Next::End(now + grace(work.deadline));
        work.cancelled.set();
    }
    if (work.is_wanted && !work.has_missed_its_deadline()) || work.is_told {
        return None;
    }
    // Who is not open yet cannot be told; it is then ended at its time.
    let engine = state.canceller.clone()?;
    work.is_told = true;
    Some((engine, work.id))
}

fn end_who_does_not_give_up(state: &mut State, now: Instant) {
    let Some(work) = &mut state.at_work else { return };
    if !matches!(work.next, Next::End(at) if at <= now) {
        return;
    }
    work.next = Next::Nothing;
    // A process is ended, and its thread with it; the thread of a library is left alone.
    let stderr = state.canceller.as_ref().and_then(|engine| engine.kill());
    let late = work.late(stderr.clone().unwrap_or_default());
    let why = late.to_string();
    if let Some(reply) = work.reply.take() {
        // Who does not wait any more needs no answer.
        let _ = reply.send(Err(late));
    }
    if stderr.is_none() {
        state.canceller = None;
    }
    state.lose(why);
}

fn soonest(state: &State) -> Option<Instant> {
    let work = state.at_work.as_ref().and_then(|work| match work.next {
        Next::Cancel(at) | Next::End(at) => Some(at),
        Next::Nothing => None,
    });
    state.waiting.iter().map(|job| job.give_up).chain(work).min()
}
