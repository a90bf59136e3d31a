//! Gives unique ids to the calls of a chat answer that share an id or have none.
//!
//! OpenAI's chat links a result to its call only by id. Compatible providers send empty ids, or the
//! same id for all calls of an answer, and match results by the order of the calls. Here a number
//! is appended to every id that is empty or repeated, of calls and their results. The outgoing
//! request has the original ids.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{JsonElement, Object};
use crate::{block, openai_chat};
use ctx_core::{Block, CallId, Message, ToolCall};

/// The separator between an original id and its number.
const SEPARATOR: &str = "#ctx";

/// Parses a message. `nth` numbers a result among those with its id; 0 if it needs no number.
pub(super) fn parse(element: &JsonElement<'_>, nth: usize) -> Message {
    let mut message = openai_chat::read(element, calls);
    if nth > 0
        && let Some(object) = &element.object
        && let [Block::ToolResult(result)] = &mut message.blocks[..]
    {
        result.call_id = numbered(result_id(object), nth);
    }
    message
}

/// Returns the original id of a result.
pub(super) fn result_id(object: &Object<'_>) -> CallId {
    block::call_id(object, &block::RESULT_IDS)
}

/// Returns the calls of a message, each with a unique id.
pub(super) fn calls(object: &Object<'_>) -> Vec<Block> {
    let mut seen: HashMap<CallId, usize> = HashMap::new();
    openai_chat::calls_by(object, |call| {
        let id = block::call_id(call, &block::CALL_IDS);
        let count = seen.entry(id.clone()).or_insert(0);
        *count += 1;
        ToolCall { id: numbered(id, *count), ..openai_chat::call_of(call) }
    })
}

fn numbered(id: CallId, nth: usize) -> CallId {
    match nth {
        1 if !id.is_empty() => id,
        _ => format!("{id}{SEPARATOR}{nth}").into(),
    }
}

/// Returns a message with the original ids.
pub(super) fn with_original_ids(message: &Message) -> Cow<'_, Message> {
    let is_numbered = |block: &Block| match block {
        Block::ToolCall(call) => original_id(&call.id).is_some(),
        Block::ToolResult(result) => original_id(&result.call_id).is_some(),
        _ => false,
    };
    if !message.blocks.iter().any(is_numbered) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for block in &mut message.blocks {
        let id = match block {
            Block::ToolCall(call) => &mut call.id,
            Block::ToolResult(result) => &mut result.call_id,
            _ => continue,
        };
        if let Some(original_id) = original_id(id) {
            *id = original_id;
        }
    }
    Cow::Owned(message)
}

/// Returns the original id, if a number was appended.
fn original_id(id: &str) -> Option<CallId> {
    let (original_id, nth) = id.rsplit_once(SEPARATOR)?;
    let is_number = !nth.is_empty() && nth.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| original_id.into())
}
