//! Anthropic Messages, and Bedrock Converse, whose messages have other blocks.

use std::borrow::Cow;
use std::collections::HashSet;

use ctx_core::{Block, Message, Role};
use serde_json::value::RawValue;

use super::super::peek::peek;
use super::super::{Protocol, Request, Unit};
use super::{converse, list, only_texts, patched};
use crate::anthropic::{block_with_ids, inner_json, mark_as};
use crate::block;
use crate::json::{Object, ObjectWriter, arguments_object, array, elements, quote, string};
use crate::shape::{as_user_text, texts};

/// Block types that cannot have a cache mark.
const UNMARKED: [&str; 2] = ["thinking", "redacted_thinking"];

/// Writes a block; `None` if the API cannot represent it.
type WriteBlock = fn(&Block) -> Option<String>;

/// Writes a message as an element of the list; `None` if nothing of it can be represented.
pub(super) fn write(
    request: &Request<'_>,
    message: &Message,
    of: Option<&Unit<'_>>,
) -> Option<String> {
    let block = match request.protocol {
        Protocol::Converse => converse::block,
        _ => block_with_ids,
    };
    let object = of.and_then(Unit::object);
    if let (Some(unit), Some(object)) = (of, &object)
        && unit.read().role == message.role
    {
        return replacing(message, object, request.thinks, block);
    }
    let message = as_user_text(message)?;
    let mut blocks: Vec<_> = message.blocks.iter().filter_map(block).collect();
    if let Some(mark) = object.as_ref().and_then(last_mark) {
        carry(&mut blocks, mark);
    }
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    element(role, &blocks)
}

fn element(role: &str, blocks: &[String]) -> Option<String> {
    let json = || ObjectWriter::new().text("role", role).raw("content", array(blocks)).end();
    (!blocks.is_empty()).then(json)
}

/// Returns the original message with the new content.
fn replacing(
    message: &Message,
    object: &Object<'_>,
    thinks: bool,
    block: WriteBlock,
) -> Option<String> {
    let content = object.get("content");
    let raws = content.and_then(elements);
    let content = match raws {
        None if only_texts(&message.blocks) => {
            let text = texts(&message.blocks);
            (!text.trim().is_empty()).then(|| quote(&text))
        }
        None => {
            let blocks: Vec<_> = message.blocks.iter().filter_map(block).collect();
            (!blocks.is_empty()).then(|| array(blocks))
        }
        Some(raws) => {
            let old = block::content(content);
            let changed =
                |object: &Object<'_>, old: &Block, new: &Block| changed(object, old, new, block);
            let fresh = fresh_beside(&old, block);
            let mut blocks = list(&raws, &old, &message.blocks, changed, fresh);
            if message.role == Role::Assistant {
                if thinks {
                    blocks = with_thoughts(&raws, blocks);
                }
                // An answer of only reasoning is refused.
                if blocks.iter().all(|json| is_thought(json)) {
                    return None;
                }
            }
            if !blocks.iter().any(|json| mark_of(json).is_some())
                && let Some(mark) = last_mark(object)
            {
                carry(&mut blocks, mark);
            }
            (!blocks.is_empty()).then(|| array(blocks))
        }
    };
    Some(patched(object, &[("content", Some(content?))]))
}

fn is_thought(block: &str) -> bool {
    let [kind] = peek(block, ["type"]);
    match kind {
        Some(kind) => UNMARKED.contains(&&*kind),
        None => Object::parse(block).is_ok_and(|block| block.has("reasoningContent")),
    }
}

/// Restores the thinking before the remaining calls, unchanged: if thinking is enabled, the API
/// refuses a call without it.
fn with_thoughts(raws: &[&RawValue], blocks: Vec<String>) -> Vec<String> {
    let id_of = |block: &str| {
        let [kind, id] = peek(block, ["type", "id"]);
        match kind {
            Some(kind) => id.filter(|_| kind == "tool_use").map(Cow::into_owned),
            None => Object::parse(block).ok()?.object("toolUse")?.owned("toolUseId"),
        }
    };
    let calls: HashSet<_> = blocks.iter().filter_map(|json| id_of(json)).collect();
    let is_call = |raw: &&RawValue| id_of(raw.get()).is_some_and(|id| calls.contains(&id));
    let Some(last) = raws.iter().rposition(is_call) else { return blocks };
    let thoughts = raws.iter().take(last).map(|raw| raw.get()).filter(|raw| is_thought(raw));
    let thoughts: Vec<_> = thoughts.collect();
    let present = blocks.iter().filter(|json| is_thought(json)).count();
    if present == thoughts.len() {
        return blocks;
    }
    let thoughts = thoughts.into_iter().map(str::to_owned);
    thoughts.chain(blocks.into_iter().filter(|json| !is_thought(json))).collect()
}

/// Writes new blocks of a known message. Thinking that differs from the original is dropped: its
/// signature would not match.
fn fresh_beside(old: &[Block], write: WriteBlock) -> impl Fn(&Block) -> Option<String> {
    let signed: HashSet<String> = old
        .iter()
        .filter_map(|block| match block {
            Block::Thinking { signature, .. } => signature.clone(),
            _ => None,
        })
        .collect();
    move |block| match block {
        Block::Thinking { signature: Some(signature), .. } if signed.contains(signature) => None,
        block => write(block),
    }
}

/// Rewrites a block with new content.
fn changed(object: &Object<'_>, old: &Block, new: &Block, write: WriteBlock) -> Option<String> {
    match (old, new) {
        (_, Block::Text { text }) if text.trim().is_empty() => None,
        (_, Block::Text { text }) => Some(patched(object, &[("text", Some(quote(text)))])),
        (_, Block::ToolCall(call)) if object.has("input") => {
            Some(patched(object, &[("input", Some(arguments_object(&call.arguments)))]))
        }
        (Block::ToolResult(old), Block::ToolResult(new)) if object.has("tool_use_id") => {
            let content = result_content(object.get("content"), &old.content, &new.content);
            Some(patched(object, &[("content", Some(content))]))
        }
        (_, block) => write(block),
    }
}

fn result_content(before: Option<&RawValue>, old: &[Block], new: &[Block]) -> String {
    match before.and_then(elements) {
        Some(raws) => {
            let changed = |object: &Object<'_>, old: &Block, new: &Block| {
                changed(object, old, new, block_with_ids)
            };
            array(list(&raws, old, new, changed, inner_json))
        }
        None if only_texts(new) => quote(&texts(new)),
        None => array(new.iter().filter_map(inner_json)),
    }
}

/// Returns the cache mark of a block.
fn mark_of(block: &str) -> Option<&RawValue> {
    Object::parse(block).ok()?.get("cache_control")
}

/// Returns the last cache mark of a message.
fn last_mark<'a>(message: &Object<'a>) -> Option<&'a RawValue> {
    let blocks = message.array("content")?;
    blocks.iter().rev().find_map(|raw| Object::of(raw)?.get("cache_control"))
}

/// Adds a cache mark to the last block that can have one.
fn carry(blocks: &mut [String], mark: &RawValue) {
    let takes = |json: &&mut String| {
        let kind = Object::parse(json).ok().and_then(|block| block.owned("type"));
        kind.is_some_and(|kind| !UNMARKED.contains(&kind.as_str()))
    };
    if let Some(last) = blocks.iter_mut().rev().find(takes) {
        *last = mark_as(last, mark.get());
    }
}

/// Returns the raw blocks of an element; a string becomes a block.
pub(in super::super) fn blocks(element: &Object<'_>) -> Vec<String> {
    let Some(content) = element.get("content") else { return Vec::new() };
    match (elements(content), string(content)) {
        (Some(blocks), _) => blocks.iter().map(|raw| raw.get().to_owned()).collect(),
        (None, Some(text)) if text.trim().is_empty() => Vec::new(),
        (None, Some(_)) => {
            vec![ObjectWriter::new().text("type", "text").raw("text", content.get()).end()]
        }
        (None, None) => vec![content.get().to_owned()],
    }
}
