//! Mending a session that was left in the middle of a turn.

use std::collections::HashSet;

use ctx_core::{MISSING_RESULT_NOTICE, Message, Result, Role, Timestamp, ToolCall, ToolOutput};
use ctx_session::Transcript;
use ctx_session::log::SessionLog;

/// Answers the calls at the session's end that have no results: whoever was to run them is gone. A
/// provider refuses a call without its result. Returns how many there were.
pub(super) fn answer_open_calls(
    transcript: &Transcript,
    log: &mut SessionLog,
    now: Timestamp,
) -> Result<usize> {
    let open = open_calls(transcript)?;
    for call in &open {
        let mut message = ToolOutput::error(MISSING_RESULT_NOTICE).into_message(call);
        message.meta.timestamp = Some(now);
        log.append_message(&message, now)?;
    }
    if !open.is_empty() {
        log.commit()?;
    }
    Ok(open.len())
}

/// The calls of the last answer that nothing but results follows, without those that have one.
fn open_calls(transcript: &Transcript) -> Result<Vec<ToolCall>> {
    let context = transcript.context(None)?;
    let mut answered = HashSet::new();
    for entry in context.entries.iter().rev() {
        let facts = entry.facts()?;
        match facts.role {
            Role::ToolResult => answered.extend(facts.results.iter().cloned()),
            Role::Assistant => {
                let message: &Message = &*entry.message()?;
                let open = message.tool_calls().filter(|call| !answered.contains(&call.id));
                return Ok(open.cloned().collect());
            }
            _ => break,
        }
    }
    Ok(Vec::new())
}
