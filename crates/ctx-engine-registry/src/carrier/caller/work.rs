//! The thread that an engine lives on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use ctx_core::Result;

use super::line::{AtWork, Line, Next, Task};
use crate::carrier::{Answered, Canceller, Carrier, Fault, Request};

/// Opens the engine and works until the line is closed or the engine is lost.
pub(super) fn run(line: &Line, open: impl FnOnce() -> Result<Box<dyn Carrier>>) {
    let mut open = Some(open);
    let mut carrier = None;
    while let Some(task) = next(line) {
        let worked = AssertUnwindSafe(|| {
            if let Some(open) = open.take() {
                let opened = carrier.insert(open()?);
                begin(line, opened.canceller())?;
            }
            let Some(carrier) = &mut carrier else {
                return Err(Fault::Lost { why: "it was never opened".into() });
            };
            let Task { id, json, services, runtime, cancelled } = task;
            let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
            let mut answering = |call: &[u8]| services.answer(call, &cancelled);
            carrier.call(Request { id, json }, &mut answering)
        });
        // No panic is expected: those of engines and of services are caught where they are called.
        let result = catch_unwind(worked).unwrap_or_else(|_| {
            Err(Fault::Panicked { message: "the host's own code failed".into() })
        });
        let is_usable = carrier.as_deref().is_some_and(Carrier::is_usable);
        if !finish(line, result, is_usable) {
            break;
        }
    }
    // Ends the engine. A library may take its time, or never return.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(carrier)));
    let mut state = line.lock();
    state.lose("it was ended".into());
    state.has_ended = true;
    drop(state);
    line.notify();
}

/// Waits for a call, which is then at work.
fn next(line: &Line) -> Option<Task> {
    let mut state = line.lock();
    loop {
        if state.is_closed || state.gone.is_some() {
            return None;
        }
        if let Some(job) = state.waiting.pop_front() {
            state.at_work = Some(AtWork {
                id: job.task.id,
                next: Next::Cancel(Instant::now() + job.deadline),
                verb: job.verb,
                deadline: job.deadline,
                cancelled: job.task.cancelled.clone(),
                is_wanted: true,
                is_told: false,
                reply: Some(job.reply),
            });
            drop(state);
            line.notify();
            return Some(job.task);
        }
        state = line.wait(state, None);
    }
}

/// The engine is open. It may be too late: then it is ended before its first call.
fn begin(line: &Line, canceller: Arc<dyn Canceller>) -> Result<(), Fault> {
    let mut state = line.lock();
    if let Some(why) = &state.gone {
        return Err(Fault::Lost { why: why.clone() });
    }
    if state.is_closed {
        return Err(Fault::Lost { why: "it was ended".into() });
    }
    state.canceller = Some(canceller);
    drop(state);
    line.notify();
    Ok(())
}

/// Passes on what became of the call at work. Whether there will be another.
fn finish(line: &Line, result: Result<Answered, Fault>, is_usable: bool) -> bool {
    let mut state = line.lock();
    let Some(mut work) = state.at_work.take() else { return false };
    // An answer that is late is thrown away, but shows that the engine gives up when it is told to.
    let result = match result {
        _ if work.has_missed_its_deadline() => Err(work.late(Vec::new())),
        result => result,
    };
    if !is_usable {
        let why = result.as_ref().err().map(ToString::to_string);
        state.lose(why.unwrap_or_else(|| "it ended".into()));
    }
    if let Some(reply) = work.reply.take() {
        // Who does not wait any more needs no answer.
        let _ = reply.send(result);
    }
    let goes_on = state.gone.is_none();
    drop(state);
    line.notify();
    goes_on
}
