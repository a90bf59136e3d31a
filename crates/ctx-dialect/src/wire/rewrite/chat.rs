//! OpenAI Chat Completions.

use ctx_core::{Block, Message, Role};
use serde_json::value::RawValue;

use super::super::{Unit, call_ids};
use super::{changed_text, list, only_texts, patched, patched_within};
use crate::block;
use crate::json::{Object, arguments_text, array, elements, quote};
use crate::openai_chat::{self, REASONING, call_json, part};
use crate::shape::texts;

/// Writes a message as elements of the list.
pub(super) fn write(message: &Message, of: Option<&Unit<'_>>) -> Vec<String> {
    let replaced = of.and_then(|unit| replacing(message, unit));
    match replaced {
        Some(json) => vec![json],
        None => {
            let written = openai_chat::write([&*call_ids::with_original_ids(message)]);
            written.into_iter().map(|json| json.as_str().to_owned()).collect()
        }
    }
}

/// Returns the original message with the new content; `None` if they differ too much.
fn replacing(message: &Message, unit: &Unit<'_>) -> Option<String> {
    let object = &unit.object()?;
    let before = unit.read();
    if before.role != message.role || object.get("function_call").is_some() {
        return None;
    }
    if message.role == Role::ToolResult {
        return result(object, &before, message);
    }
    let is_content = |block: &&Block| !matches!(block, Block::ToolCall(_) | Block::Thinking { .. });
    let blocks: Vec<_> = message.blocks.iter().filter(is_content).cloned().collect();
    let calls: Vec<_> = message.tool_calls().collect();
    // An answer without text and calls is refused.
    if blocks.is_empty() && calls.is_empty() {
        return None;
    }
    let mut edits = Vec::new();
    if blocks.is_empty() {
        edits.push(("content", Some("null".to_owned())));
    } else {
        edits.push(("content", Some(content(object.get("content"), &blocks)?)));
    }
    // A `refusal` was parsed as text; the field is kept only if the text is unchanged.
    if object.get("refusal").is_some() {
        let kept =
            message.blocks.iter().filter(is_content).eq(before.blocks.iter().filter(is_content));
        if kept {
            edits.clear();
        } else {
            edits.push(("refusal", None));
        }
    }
    if calls.is_empty() {
        edits.push(("tool_calls", None));
    } else {
        edits.push(("tool_calls", Some(tool_calls(object, message)?)));
    }
    let thoughts = |message: &'_ Message| -> Vec<_> {
        let is_thought = |block: &&Block| matches!(block, Block::Thinking { .. });
        message.blocks.iter().filter(is_thought).cloned().collect()
    };
    let (new, old) = (thoughts(message), thoughts(&before));
    if new.is_empty() && !old.is_empty() {
        edits.extend(REASONING.into_iter().chain(["reasoning_details"]).map(|key| (key, None)));
    } else if new != old {
        return None;
    }
    Some(patched(object, &edits))
}

fn result(object: &Object<'_>, before: &Message, message: &Message) -> Option<String> {
    let (old, new) = (before.tool_results().next()?, message.tool_results().next()?);
    let is_one = message.blocks.len() == 1 && old.call_id == new.call_id;
    let has_pictures = new.content.iter().any(|block| matches!(block, Block::Image(_)));
    if !is_one || has_pictures {
        return None;
    }
    let content = match object.get("content") {
        Some(raw) if elements(raw).is_some() => content(Some(raw), &new.content)?,
        _ => quote(&texts(&new.content)),
    };
    Some(patched(object, &[("content", Some(content))]))
}

/// Writes the content of a message: a string if the original was one and only text is left,
/// otherwise a list.
fn content(before: Option<&RawValue>, blocks: &[Block]) -> Option<String> {
    let Some(raws) = before.and_then(elements) else {
        return match only_texts(blocks) {
            true => Some(quote(&texts(blocks))),
            false => Some(array(blocks.iter().map(part))),
        };
    };
    let old = block::content(before);
    let changed = |object: &Object<'_>, old: &Block, new: &Block| {
        changed_text(object, old, new).or_else(|| Some(part(new)))
    };
    let parts = list(&raws, &old, blocks, changed, |block| Some(part(block)));
    Some(array(parts))
}

fn tool_calls(object: &Object<'_>, message: &Message) -> Option<String> {
    let raws = object.array("tool_calls")?;
    let old = call_ids::calls(object);
    let new: Vec<_> = message.tool_calls().cloned().map(Block::ToolCall).collect();
    let changed = |object: &Object<'_>, _: &Block, new: &Block| match new {
        Block::ToolCall(call) if object.object("custom").is_none() => {
            let arguments = quote(&arguments_text(&call.arguments));
            Some(patched_within(object, "function", &[("arguments", Some(arguments))]))
        }
        Block::ToolCall(call) => Some(patched_within(
            object,
            "custom",
            &[("input", Some(call.arguments.as_str().into()))],
        )),
        _ => None,
    };
    let fresh = |block: &Block| match block {
        Block::ToolCall(call) => Some(call_json(call)),
        _ => None,
    };
    Some(array(list(&raws, &old, &new, changed, fresh)))
}
