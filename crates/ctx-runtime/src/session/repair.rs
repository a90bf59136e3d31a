//! Repairs a session that was interrupted in the middle of a turn.

use ctx_core::{MISSING_RESULT_NOTICE, Result, Timestamp, ToolOutput};
use ctx_session::{SessionLog, Transcript};

/// Answers the calls without results at the session's end: the process that ran them has ended, and
/// providers reject a call without its result. Returns the number of calls.
pub(super) fn answer_open_calls(
    transcript: &Transcript,
    log: &mut SessionLog,
    now: Timestamp,
) -> Result<usize> {
    let Some((_, open)) = transcript.context(None)?.open_calls()? else { return Ok(0) };
    for call in &open {
        let mut message = ToolOutput::error(MISSING_RESULT_NOTICE).into_message(call);
        message.meta.timestamp = Some(now);
        log.append_message(&message, now)?;
    }
    log.commit()?;
    Ok(open.len())
}
