//! Calls of one chat answer under one id, or under none.
//!
//! OpenAI's chat ties a result to its call by an id alone. Providers that copy it send empty ids, or
//! the same for all calls of an answer, and take the results in the order of the calls. Here the
//! second call of an id is told from the first by its number, on both sides, and so is each without
//! an id; what goes out has the id that came.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, CallId, Message};
use serde_json::value::RawValue;

use crate::block;
use crate::json::Object;
use crate::openai_chat;

/// Stands between an id that came and its number.
const MARK: &str = "#ctx";

/// Reads a message. A result is the one of that number that has its id; 0 where that tells nothing.
pub(super) fn parse(raw: &RawValue, nth: usize) -> Message {
    let mut message = openai_chat::read(raw, calls);
    if nth > 0
        && let Some(object) = Object::of(raw)
        && let [Block::ToolResult(result)] = &mut message.blocks[..]
    {
        result.call_id = numbered(result_id(&object), nth);
    }
    message
}

/// The id that a result came with.
pub(super) fn result_id(object: &Object<'_>) -> CallId {
    block::call_id(
        object,
        &["tool_use_id", "toolCallId", "toolUseId", "tool_call_id", "call_id", "id"],
    )
}

/// The calls of a message, each with an id of its own.
pub(super) fn calls(object: &Object<'_>) -> Vec<Block> {
    let mut calls = openai_chat::tool_calls(object);
    let raws = openai_chat::told_calls(object);
    let mut seen: HashMap<CallId, usize> = HashMap::new();
    for (call, raw) in calls.iter_mut().zip(raws) {
        if let (Block::ToolCall(call), Some(object)) = (call, Object::of(raw)) {
            let id = block::call_id(&object, &["call_id", "id", "toolCallId", "toolUseId"]);
            let count = seen.entry(id.clone()).or_insert(0);
            *count += 1;
            call.id = numbered(id, *count);
        }
    }
    calls
}

fn numbered(id: CallId, nth: usize) -> CallId {
    match nth {
        1 if !id.is_empty() => id,
        _ => format!("{id}{MARK}{nth}").into(),
    }
}

/// A message with the ids that came.
pub(super) fn as_told(message: &Message) -> Cow<'_, Message> {
    let is_numbered = |block: &Block| match block {
        Block::ToolCall(call) => told(&call.id).is_some(),
        Block::ToolResult(result) => told(&result.call_id).is_some(),
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
        if let Some(told) = told(id) {
            *id = told;
        }
    }
    Cow::Owned(message)
}

/// The id that came, where a number was added to it.
fn told(id: &str) -> Option<CallId> {
    let (told, nth) = id.rsplit_once(MARK)?;
    let is_number = !nth.is_empty() && nth.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| told.into())
}
