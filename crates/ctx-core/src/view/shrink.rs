//! Truncating one message.

use std::collections::HashSet;

use serde::Deserialize;

use crate::text::head;
use crate::{Block, Chars, Counter, Message, RawJson, Role, Tokens, ToolCall};

use super::protected::common_cap;

/// Marks the place where the middle of a tool result was removed.
pub const CONTEXT_LIMIT_TRUNCATION_NOTICE: &str = "[truncated: output exceeded context limit]";

/// Marks the place where the middle of any other text was removed.
pub const MIDDLE_OMITTED_NOTICE: &str =
    "[... middle omitted: it does not fit the context window ...]";

/// Replaces a text that does not fit at all. Providers refuse empty blocks.
const NOTHING: &str = "…";

/// The reason why a message is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Pinned,
    Results,
    Newest,
    Call,
}

/// Returns a form of `message` of at most `max` tokens, as far as its structure allows: the middle
/// of its texts is replaced by a notice. Other parts are removed in the order described in
/// [`ContextView::finish`](crate::ContextView::finish). Role, calls and the ids of results stay.
#[must_use]
pub fn shortened(message: &Message, max: Tokens, counter: &Counter) -> Message {
    let results = message.tool_results().next().is_some();
    shrink(message, max, if results { Protection::Results } else { Protection::Newest }, counter)
}

/// Returns a form of `message` of at most `max` tokens, as far as its structure allows: calls keep
/// their ids and names, results keep their ids, and no message or result becomes empty.
///
/// These steps are applied in order until it fits: remove thinking (it is signed, so a part of it
/// would be refused); remove images and unknown blocks; truncate the texts to one common cap;
/// truncate the arguments likewise; merge the texts of the message and of each result into one
/// block.
pub(super) fn shrink(
    message: &Message,
    max: Tokens,
    part: Protection,
    counter: &Counter,
) -> Message {
    let mut form = message.clone();
    let marker = if part == Protection::Results {
        CONTEXT_LIMIT_TRUNCATION_NOTICE
    } else {
        MIDDLE_OMITTED_NOTICE
    };
    let steps: [fn(&mut Message, Tokens, &str, &Counter); 5] =
        [drop_thinking, drop_attachments, shrink_texts, shrink_arguments, collapse];
    for step in steps {
        if counter.message(&form) <= max {
            break;
        }
        step(&mut form, max, marker, counter);
    }
    form
}

fn drop_thinking(message: &mut Message, _: Tokens, _: &str, _: &Counter) {
    message.blocks.retain(|b| !matches!(b, Block::Thinking { .. }));
    if message.blocks.is_empty() {
        message.blocks.push(Block::text(NOTHING));
    }
}

/// Removes images and unknown blocks, the first ones first, until the message fits or none is left.
/// The result of a provider's own tool is removed together with its call.
fn drop_attachments(message: &mut Message, max: Tokens, _: &str, counter: &Counter) {
    let mut over = counter.message(message) - max;
    let mut gone: HashSet<String> = HashSet::new();
    let mut visit = |block: &mut Block, role: &Role| {
        let tie = if let Block::Opaque { json } = &*block { tie(json) } else { None };
        let is_half = tie.as_ref().is_some_and(|tie| gone.contains(tie));
        let is_droppable = matches!(block, Block::Image(_) | Block::Opaque { .. });
        if is_half || (over > Tokens::ZERO && is_droppable) {
            gone.extend(tie);
            let size = counter.message(&Message::new(role.clone(), vec![block.clone()]));
            *block = Block::text(NOTHING);
            // Sizes are rounded up, so the freed size must be underestimated, never overestimated.
            over -= (size - Tokens(1)) - counter.text(NOTHING);
        }
    };
    for block in &mut message.blocks {
        match block {
            Block::ToolResult(result) => {
                result.content.iter_mut().for_each(|b| visit(b, &Role::ToolResult));
            }
            block => visit(block, &message.role),
        }
    }
}

/// Returns the id that an unknown block shares with the call or result of a provider's own tool.
fn tie(json: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Tied {
        id: Option<String>,
        tool_use_id: Option<String>,
    }
    let tied: Tied = serde_json::from_str(json.as_str()).ok()?;
    tied.tool_use_id.or(tied.id).filter(|id| !id.is_empty())
}

/// Truncates the texts to one common cap.
fn shrink_texts(message: &mut Message, max: Tokens, marker: &str, counter: &Counter) {
    let mut texts: Vec<&mut String> = Vec::new();
    collect_texts(&mut message.blocks, &mut texts);
    let taken: Vec<String> = texts.into_iter().map(std::mem::take).collect();
    let room = max - counter.message(message);
    let sizes: Vec<Tokens> = taken.iter().map(|t| counter.text(t)).collect();
    let cap = common_cap(&sizes, room);
    let mut texts: Vec<&mut String> = Vec::new();
    collect_texts(&mut message.blocks, &mut texts);
    for ((slot, text), size) in texts.into_iter().zip(taken).zip(sizes) {
        *slot = match size <= cap {
            true => text,
            false => counter.truncate_middle(&text, marker, cap),
        };
        if slot.is_empty() && size > cap {
            NOTHING.clone_into(slot);
        }
    }
}

fn collect_texts<'a>(blocks: &'a mut [Block], out: &mut Vec<&'a mut String>) {
    for block in blocks {
        match block {
            Block::Text { text } => out.push(text),
            Block::Bash(run) => out.extend([&mut run.command, &mut run.output]),
            Block::ToolResult(result) => collect_texts(&mut result.content, out),
            _ => {}
        }
    }
}

/// Truncates the arguments of the calls to one common cap.
fn shrink_arguments(message: &mut Message, max: Tokens, _: &str, counter: &Counter) {
    let over = counter.message(message) - max;
    let mut calls: Vec<&mut ToolCall> = message
        .blocks
        .iter_mut()
        .filter_map(|b| match b {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
        .collect();
    let sizes: Vec<Tokens> = calls.iter().map(|call| counter.json(&call.arguments)).collect();
    let total: u64 = sizes.iter().map(|t| t.get()).sum();
    // Each size is rounded up, so each may free one token less than computed.
    let wanted = over.get().saturating_add(sizes.len() as u64);
    let cap = common_cap(&sizes, Tokens::saturating_from(total.saturating_sub(wanted)));
    for (call, size) in calls.iter_mut().zip(sizes) {
        if size > cap {
            call.arguments = cut_arguments(&call.arguments, cap, counter);
        }
    }
}

/// Merges the texts of the message, and the texts of each result, into one block and truncates them
/// again: each block has a cost, and there may be thousands.
fn collapse(message: &mut Message, max: Tokens, marker: &str, counter: &Counter) {
    for block in &mut message.blocks {
        if let Block::ToolResult(result) = block {
            result.content = vec![Block::Text { text: joined(&result.content) }];
        }
    }
    let text = joined(&message.blocks);
    let had = message.blocks.len();
    message.blocks.retain(|b| matches!(b, Block::ToolCall(_) | Block::ToolResult(_)));
    if message.blocks.len() < had {
        message.blocks.insert(0, Block::Text { text });
    }
    shrink_texts(message, max, marker, counter);
}

fn joined(blocks: &[Block]) -> String {
    let mut out = String::new();
    let mut push = |text: &str| {
        if !text.is_empty() {
            out.push_str(if out.is_empty() { "" } else { "\n" });
            out.push_str(text);
        }
    };
    for block in blocks {
        match block {
            Block::Text { text } => push(text),
            Block::Bash(run) => [&run.command, &run.output].into_iter().for_each(|t| push(t)),
            _ => {}
        }
    }
    if out.is_empty() { NOTHING.to_owned() } else { out }
}

/// Truncates the long strings of the arguments, or returns `{}` if that is not enough.
fn cut_arguments(arguments: &RawJson, max: Tokens, counter: &Counter) -> RawJson {
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments.as_str()) {
        for longest in [1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4] {
            let mut value = value.clone();
            cut_strings(&mut value, Chars(longest));
            let text = RawJson::from_text(value.to_string());
            if counter.json(&text) <= max {
                return text;
            }
        }
    }
    RawJson::from_text("{}")
}

fn cut_strings(value: &mut serde_json::Value, longest: Chars) {
    match value {
        serde_json::Value::String(text) if Chars::of(text) > longest => {
            *text = format!("{}{NOTHING}", head(text, longest));
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|v| cut_strings(v, longest)),
        serde_json::Value::Object(map) => map.values_mut().for_each(|v| cut_strings(v, longest)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_provider_tool_is_removed_with_its_call() {
        let opaque = |json: String| Block::Opaque { json: RawJson::from_text(json) };
        let call = |id: &str, query: &str| {
            opaque(format!(
                r#"{{"type":"server_tool_use","id":"{id}","name":"web_search","input":{{"query":"{query}"}}}}"#
            ))
        };
        let result = |id: &str| {
            opaque(format!(
                r#"{{"type":"web_search_tool_result","tool_use_id":"{id}","content":[]}}"#
            ))
        };
        let long = "words of a question ".repeat(400);
        let blocks = vec![call("a", &long), call("b", "x"), result("a"), result("b")];
        let message = Message::new(Role::Assistant, blocks);
        let counter = Counter::default();
        let form = shortened(&message, Tokens(400), &counter);
        assert!(counter.message(&form) <= Tokens(400));
        let left: Vec<_> = form
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Opaque { json } => tie(json),
                _ => None,
            })
            .collect();
        assert_eq!(left, ["b", "b"]);
    }
}
