//! Pairs tool calls with their results.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use ctx_core::{Block, CallId, Message, Role, ToolCall, ToolResult};

use super::ids::CallIdMap;

/// The result inserted for a call without one.
const NO_RESULT: &str = "[ctx] this call has no result: it was interrupted";

/// Moves the results of each answer's calls right after it, in the order of the calls, and replaces
/// the ids. A call without a result gets an error result. Results without a call and duplicate
/// results are dropped. An answer that failed or was aborted keeps only the calls with results, and
/// its text if it has such calls or was aborted.
///
/// Each message has at most one result.
pub(super) fn pair<'m>(
    parts: Vec<Cow<'m, Message>>,
    mut names: CallIdMap,
) -> Vec<Cow<'m, Message>> {
    let (slots, answers) = answers(&parts);
    let mut results: Vec<Option<Cow<'m, Message>>> = vec![None; slots];
    let mut rest = Vec::with_capacity(parts.len());
    for (part, at) in parts.into_iter().zip(answers) {
        match at {
            PartRole::Plain => rest.push((part, 0..0)),
            PartRole::Calls(calls) => rest.push((part, calls)),
            PartRole::Answers(slot) => results[slot] = Some(part),
            PartRole::Orphan => {}
        }
    }
    let mut out = Vec::with_capacity(rest.len() + slots);
    for (part, calls) in rest {
        if calls.is_empty() {
            out.extend(without_failure(part, &[]));
            continue;
        }
        let results: Vec<_> =
            results.get_mut(calls).into_iter().flatten().map(Option::take).collect();
        let is_answered: Vec<_> = results.iter().map(Option::is_some).collect();
        let Some(part) = without_failure(part, &is_answered) else { continue };
        let keeps_all = !failed(&part);
        let mut renamed = Vec::new();
        let calls: Vec<_> = part.tool_calls().cloned().collect();
        let mut kept = calls.iter();
        for result in results {
            if result.is_none() && !keeps_all {
                continue;
            }
            let Some(call) = kept.next() else { break };
            let name = names.next(&call.id);
            renamed.push((name.clone(), answer(call, name, result)));
        }
        out.push(rename(part, renamed.iter().map(|(name, _)| name)));
        out.extend(renamed.into_iter().map(|(_, result)| result));
    }
    out
}

/// What happens to a part.
enum PartRole {
    /// Kept: neither a result nor a call.
    Plain,
    /// Kept: an answer whose calls have these slots.
    Calls(std::ops::Range<usize>),
    /// The result of the call in this slot.
    Answers(usize),
    /// Dropped: a result without a call.
    Orphan,
}

fn answers(parts: &[Cow<'_, Message>]) -> (usize, Vec<PartRole>) {
    let mut open: HashMap<&CallId, (usize, VecDeque<usize>)> = HashMap::new();
    let mut slots = 0;
    let mut places = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        if part.role == Role::ToolResult {
            let id = part.tool_results().next().map(|result| &result.call_id);
            let slot = id.and_then(|id| open.get_mut(id)?.1.pop_front());
            places.push(slot.map_or(PartRole::Orphan, PartRole::Answers));
            continue;
        }
        let first = slots;
        if part.role == Role::Assistant {
            for call in part.tool_calls() {
                let (frame, waiting) = open.entry(&call.id).or_default();
                // A reused id refers to the new call, even if the old one has no result.
                if *frame != at + 1 {
                    waiting.clear();
                    *frame = at + 1;
                }
                waiting.push_back(slots);
                slots += 1;
            }
        }
        places.push(if first == slots { PartRole::Plain } else { PartRole::Calls(first..slots) });
    }
    (slots, places)
}

fn stopped_by(message: &Message, reason: &str) -> bool {
    message.role == Role::Assistant && message.meta.stop_reason.as_deref() == Some(reason)
}

fn failed(message: &Message) -> bool {
    stopped_by(message, "error") || stopped_by(message, "aborted")
}

/// Removes the content of a failed answer that may be incomplete. `is_answered` has one value per
/// call.
fn without_failure<'m>(
    message: Cow<'m, Message>,
    is_answered: &[bool],
) -> Option<Cow<'m, Message>> {
    if !failed(&message) {
        return Some(message);
    }
    let has_calls = is_answered.iter().any(|answered| *answered);
    // The retry after an error repeats the text.
    let keeps_text = has_calls || stopped_by(&message, "aborted");
    let mut message = message;
    let mut answered = is_answered.iter();
    message.to_mut().blocks.retain(|block| match block {
        Block::ToolCall(_) => answered.next().copied().unwrap_or(false),
        Block::Text { .. } => keeps_text,
        _ => false,
    });
    (!message.blocks.is_empty()).then_some(message)
}

/// Returns the result of a call under its replaced id, or the placeholder for a missing result.
fn answer<'m>(call: &ToolCall, name: CallId, result: Option<Cow<'m, Message>>) -> Cow<'m, Message> {
    let Some(mut message) = result else {
        let result = ToolResult {
            call_id: name,
            name: Some(call.name.clone()),
            content: vec![Block::text(NO_RESULT)],
            is_error: true,
        };
        return Cow::Owned(Message::new(Role::ToolResult, vec![Block::ToolResult(result)]));
    };
    if message.tool_results().any(|result| result.call_id != name) {
        for block in &mut message.to_mut().blocks {
            if let Block::ToolResult(result) = block {
                result.call_id = CallId::clone(&name);
            }
        }
    }
    message
}

/// Replaces the ids of a message's calls, in order.
fn rename<'m, 'n>(
    mut message: Cow<'m, Message>,
    names: impl Iterator<Item = &'n CallId> + Clone,
) -> Cow<'m, Message> {
    if message.tool_calls().zip(names.clone()).all(|(call, name)| call.id == *name) {
        return message;
    }
    let calls = message.to_mut().blocks.iter_mut().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    for (call, name) in calls.zip(names) {
        call.id = CallId::clone(name);
    }
    message
}
