//! Messages between the two crates: as JSON to an engine, and back as a form of a row.

use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{Block, CallId, Facts, Message, Meta, Node, Role};
use ctx_engine_sdk::protocol;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Rejection;

#[derive(Serialize)]
struct Told<'m> {
    role: &'m Role,
    blocks: &'m [Block],
}

#[derive(Deserialize)]
struct Answered {
    role: String,
    blocks: Vec<Block>,
}

/// A message as an engine is sent it: without what the transcript says about it.
pub(super) fn json(message: &Message) -> Option<Box<RawValue>> {
    let told = Told { role: &message.role, blocks: &message.blocks };
    serde_json::value::to_raw_value(&told).ok()
}

/// A message that an engine wrote.
pub(super) fn read(json: &str) -> Result<Message, Rejection> {
    let Answered { role, blocks } = serde_json::from_str(json)?;
    Ok(Message::new(Role::from_name(&role), blocks))
}

/// The form that an answer gives a row.
pub(super) fn replacement(node: &Node, of: &protocol::Replacement) -> Result<Message, Rejection> {
    let id = &of.id;
    match (&of.text, &of.message) {
        (Some(_), Some(_)) => Err(Rejection::mismatch(id, "it has both a text and a message")),
        (None, None) => Err(Rejection::mismatch(id, "it has neither a text nor a message")),
        (Some(text), None) => with_text(node, id, text),
        (None, Some(message)) => form(node, id, &serde_json::to_string(message)?),
    }
}

/// The form that a whole message gives a row. What a message of the protocol does not carry is the
/// row's own.
pub(super) fn form(node: &Node, id: &str, json: &str) -> Result<Message, Rejection> {
    let mut form = read(json)?;
    if form.role != *node.role() {
        return Err(Rejection::mismatch(id, "it has another role"));
    }
    let facts = Facts::of(&form);
    if *facts.calls != *node.calls() {
        return Err(Rejection::mismatch(id, "it makes other tool calls"));
    }
    if *facts.results != *node.results() {
        return Err(Rejection::mismatch(id, "it holds other results"));
    }
    if form.blocks.is_empty() {
        return Err(Rejection::mismatch(id, "it is empty: drop the row instead"));
    }
    let Ok(own) = node.message() else { return Ok(form) };
    let calls: HashMap<&CallId, _> = own.tool_calls().map(|call| (&call.id, call)).collect();
    let results: HashMap<&CallId, _> = own.tool_results().map(|r| (&r.call_id, r)).collect();
    for block in &mut form.blocks {
        match block {
            Block::ToolCall(call) => {
                if let Some(own) = calls.get(&call.id) {
                    call.spelling = own.spelling;
                }
            }
            Block::ToolResult(result) => {
                if let (None, Some(own)) = (&result.name, results.get(&result.call_id)) {
                    result.name.clone_from(&own.name);
                }
            }
            _ => {}
        }
    }
    form.meta = Meta::clone(&own.meta);
    Ok(form)
}

/// The row's message with another text.
fn with_text(node: &Node, id: &str, text: &str) -> Result<Message, Rejection> {
    if text.is_empty() {
        return Err(Rejection::mismatch(id, "its text is empty: drop the row instead"));
    }
    let own = node.message();
    let own = own.map_err(|_| Rejection::mismatch(id, "the row cannot be read any more"))?;
    let mut form = Message::clone(&own);
    match node.results() {
        [] => {
            let is_own = |block: &Block| matches!(block, Block::Text { .. } | Block::Bash(_));
            let at = form.blocks.iter().position(is_own).or_else(|| {
                form.blocks.iter().position(|block| matches!(block, Block::ToolCall(_)))
            });
            let at = at.unwrap_or(form.blocks.len());
            form.blocks.retain(|block| !is_own(block));
            form.blocks.insert(at.min(form.blocks.len()), Block::text(text));
        }
        [_] => {
            for block in &mut form.blocks {
                if let Block::ToolResult(result) = block {
                    result.content = vec![Block::text(text)];
                }
            }
        }
        _ => return Err(Rejection::mismatch(id, "it holds several results: give a message")),
    }
    Ok(form)
}

/// A message that an engine adds.
pub(super) fn insertion(of: &protocol::Insertion) -> Result<Message, Rejection> {
    let role = of.role.as_deref().map_or(Role::User, Role::from_name);
    addable(&of.id, Message::text(role, of.text.clone()))
}

/// Refuses what a view could not take as a message of no transcript.
pub(super) fn addable(id: &str, message: Message) -> Result<Message, Rejection> {
    if id.is_empty() || id.len() > 256 || id.chars().any(char::is_control) {
        return Err(Rejection::insertion(id, "its id must be 1 to 256 bytes of plain text"));
    }
    if !matches!(message.role, Role::User | Role::Assistant | Role::System | Role::Custom) {
        return Err(Rejection::insertion(id, "of this role"));
    }
    let is_said = |block: &Block| !matches!(block, Block::Text { text } if text.is_empty());
    if !message.blocks.iter().any(is_said) {
        return Err(Rejection::insertion(id, "it says nothing"));
    }
    let facts = Facts::of(&message);
    if !facts.calls.is_empty() || !facts.results.is_empty() {
        return Err(Rejection::insertion(id, "it holds tool calls or results"));
    }
    Ok(message)
}

/// Whether two messages say the same.
pub(super) fn same(one: &Arc<Message>, other: &Message) -> bool {
    one.role == other.role && one.blocks == other.blocks
}
