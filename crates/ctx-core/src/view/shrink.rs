//! Making one message smaller.

use crate::text::{head, without_middle};
use crate::{Block, Chars, Counter, Message, RawJson, Role, Tokens, ToolCall};

/// Where the middle of a tool result was taken out.
pub const CONTEXT_LIMIT_TRUNCATION_NOTICE: &str = "[truncated: output exceeded context limit]";

/// Where the middle of any other text was taken out.
pub const MIDDLE_OMITTED_NOTICE: &str = "[... middle omitted: it does not fit the context window ...]";

/// What stands for a text of which nothing fits. Providers refuse empty blocks.
const NOTHING: &str = "…";

/// What a protected message is protected as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Pinned,
    Results,
    Newest,
    Call,
}

/// A form of `message` of at most `max` tokens, as far as its structure allows: calls keep their
/// ids and names, results their ids, and every block something.
pub(super) fn shrink(message: &Message, max: Tokens, part: Part, counter: &Counter) -> Message {
    let mut form = message.clone();
    let marker =
        if part == Part::Results { CONTEXT_LIMIT_TRUNCATION_NOTICE } else { MIDDLE_OMITTED_NOTICE };
    if part == Part::Call && form.role == Role::Assistant {
        form.blocks.retain(|b| !matches!(b, Block::Thinking { .. }));
        if form.blocks.is_empty() {
            form.blocks.push(Block::text(NOTHING));
        }
    }
    if counter.message(&form) <= max {
        return form;
    }
    drop_attachments(&mut form, max, counter);
    let over = counter.message(&form) - max;
    if over == Tokens::ZERO {
        return form;
    }
    shrink_texts(&mut form.blocks, over, marker, counter);
    let over = counter.message(&form) - max;
    if over > Tokens::ZERO {
        shrink_arguments(&mut form.blocks, over, counter);
    }
    form
}

/// Takes images and unknown blocks out, the first ones first, until the message fits or none is
/// left.
fn drop_attachments(message: &mut Message, max: Tokens, counter: &Counter) {
    let mut over = counter.message(message) - max;
    let mut visit = |block: &mut Block| {
        if over > Tokens::ZERO && matches!(block, Block::Image(_) | Block::Opaque { .. }) {
            let size = counter.message(&Message::new(Role::ToolResult, vec![block.clone()]));
            *block = Block::text(NOTHING);
            over -= size - counter.text(NOTHING);
        }
    };
    for block in &mut message.blocks {
        match block {
            Block::ToolResult(result) => result.content.iter_mut().for_each(&mut visit),
            block => visit(block),
        }
    }
}

/// Takes `over` tokens from the texts by one common cap.
fn shrink_texts(blocks: &mut [Block], over: Tokens, marker: &str, counter: &Counter) {
    let mut texts: Vec<&mut String> = Vec::new();
    collect_texts(blocks, &mut texts);
    let sizes: Vec<u64> = texts.iter().map(|t| counter.text(t).get()).collect();
    let target = sizes.iter().sum::<u64>().saturating_sub(over.get());
    let cap = cap_for(&sizes, target);
    for text in texts {
        if counter.text(text) > cap {
            *text = without_middle(text, marker, cap, counter);
        }
        if text.is_empty() {
            NOTHING.clone_into(text);
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

/// Takes `over` tokens from the arguments of the calls by one common cap.
fn shrink_arguments(blocks: &mut [Block], over: Tokens, counter: &Counter) {
    let mut calls: Vec<&mut ToolCall> = blocks
        .iter_mut()
        .filter_map(|b| match b {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
        .collect();
    let size = |call: &ToolCall| counter.text(call.arguments.as_str()).get();
    let sizes: Vec<u64> = calls.iter().map(|c| size(c)).collect();
    let cap = cap_for(&sizes, sizes.iter().sum::<u64>().saturating_sub(over.get()));
    for call in &mut calls {
        if counter.text(call.arguments.as_str()) > cap {
            call.arguments = cut_arguments(&call.arguments, cap, counter);
        }
    }
}

/// The arguments with their long strings cut, or `{}` where that is not enough.
fn cut_arguments(arguments: &RawJson, max: Tokens, counter: &Counter) -> RawJson {
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments.as_str()) {
        for longest in [1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4] {
            let mut value = value.clone();
            cut_strings(&mut value, Chars(longest));
            let text = value.to_string();
            if counter.text(&text) <= max {
                return RawJson::from_text(text);
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

/// As the cap over messages, for the pieces of one.
fn cap_for(sizes: &[u64], target: u64) -> Tokens {
    let sizes: Vec<Tokens> = sizes.iter().map(|&n| Tokens::saturating_from(n)).collect();
    super::protected::common_cap(&sizes, Tokens::saturating_from(target))
}
