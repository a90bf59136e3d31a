//! The thread of an engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use ctx_core::Result;

use super::queue::{CallInput, CallQueue, Escalation, RunningCall};
use crate::foreign::transport::{Canceller, Fault, RawAnswer, Request, Transport};

/// Opens the engine and works until the queue is closed or the engine is lost.
pub(super) fn run(queue: &CallQueue, open: impl FnOnce() -> Result<Box<dyn Transport>>) {
    let mut open = Some(open);
    let mut transport = None;
    while let Some(input) = next(queue) {
        let worked = AssertUnwindSafe(|| {
            if let Some(open) = open.take() {
                let opened = transport.insert(open()?);
                begin(queue, opened.canceller())?;
            }
            let Some(transport) = &mut transport else {
                return Err(Fault::Lost { why: "it was never opened".into() });
            };
            let CallInput { id, bytes, services, runtime, cancelled } = input;
            let _entered = runtime.as_ref().map(tokio::runtime::Handle::enter);
            let mut answering = |call: &[u8]| services.answer(call, &cancelled);
            transport.call(Request { id, bytes }, &mut answering)
        });
        // No panic is expected: panics of engines and services are caught where these are called.
        let result = catch_unwind(worked).unwrap_or_else(|_| {
            Err(Fault::Panicked { message: "the host's own code failed".into() })
        });
        let is_usable = transport.as_deref().is_some_and(Transport::is_usable);
        if !finish(queue, result, is_usable) {
            break;
        }
    }
    // Ends the engine. A library may take long, or never return.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(transport)));
    let mut state = queue.lock();
    state.lose("it was ended".into());
    state.has_ended = true;
    drop(state);
    queue.notify();
}

/// Waits for a call and makes it the running call.
fn next(queue: &CallQueue) -> Option<CallInput> {
    let mut state = queue.lock();
    loop {
        if state.is_closed || state.gone.is_some() {
            return None;
        }
        if let Some(job) = state.waiting.pop_front() {
            state.running = Some(RunningCall {
                id: job.input.id,
                next: Escalation::Cancel(Instant::now() + job.deadline),
                verb: job.verb,
                deadline: job.deadline,
                cancelled: job.input.cancelled.clone(),
                is_wanted: true,
                is_cancelled: false,
                reply: Some(job.reply),
            });
            drop(state);
            queue.notify();
            return Some(job.input);
        }
        state = queue.wait(state, None);
    }
}

/// Records that the engine is open. If its deadline has passed, it is ended before its first call.
fn begin(queue: &CallQueue, canceller: Arc<dyn Canceller>) -> Result<(), Fault> {
    let mut state = queue.lock();
    if let Some(why) = &state.gone {
        return Err(Fault::Lost { why: why.clone() });
    }
    if state.is_closed {
        return Err(Fault::Lost { why: "it was ended".into() });
    }
    state.canceller = Some(canceller);
    drop(state);
    queue.notify();
    Ok(())
}

/// Passes on the result of the running call. Returns whether there may be another call.
fn finish(queue: &CallQueue, result: Result<RawAnswer, Fault>, is_usable: bool) -> bool {
    let mut state = queue.lock();
    let Some(mut work) = state.running.take() else { return false };
    // A late answer is discarded, but shows that the engine reacts to a cancel.
    let result = match result {
        _ if work.is_overdue() => Err(work.late(Vec::new())),
        result => result,
    };
    if !is_usable {
        let why = result.as_ref().err().map(ToString::to_string);
        state.lose(why.unwrap_or_else(|| "it ended".into()));
    }
    if let Some(reply) = work.reply.take() {
        // The receiver may be gone.
        let _ = reply.send(result);
    }
    let goes_on = state.gone.is_none();
    drop(state);
    queue.notify();
    goes_on
}
