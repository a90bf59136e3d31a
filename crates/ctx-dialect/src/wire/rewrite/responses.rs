//! Items of OpenAI's Responses API.

use ctx_core::{Block, Message};

use super::super::Unit;
use super::{Origin, changed_text, list, origins, patched};
use crate::json::{Object, arguments_text, array, elements, quote, string};
use crate::openai_responses::{self, ARGUMENTS, part};
use crate::shape::texts;

/// Writes a message as items of the list.
pub(super) fn write(message: &Message, of: Option<&Unit<'_>>) -> Vec<String> {
    match of.filter(|unit| unit.read().role == message.role) {
        Some(unit) => replacing(message, unit),
        None => fresh(message),
    }
}

fn fresh(message: &Message) -> Vec<String> {
    let written = openai_responses::write([message]);
    written.into_iter().map(|json| json.as_str().to_owned()).collect()
}

/// An item, and the range of its blocks in the answer.
struct ResponsesItem<'a> {
    raw: &'a str,
    object: &'a Object<'a>,
    first: usize,
    blocks: Vec<Block>,
}

impl ResponsesItem<'_> {
    fn is_message(&self) -> bool {
        matches!(self.object.text("type").as_deref(), None | Some("message"))
    }

    fn is_reasoning(&self) -> bool {
        self.object.text("type").is_some_and(|kind| kind == "reasoning")
    }
}

/// Returns the original items with the new content.
fn replacing(message: &Message, unit: &Unit<'_>) -> Vec<String> {
    let mut items = Vec::new();
    let mut owners = Vec::new();
    let mut old = Vec::new();
    for element in unit.elements() {
        let Some(object) = &element.object else { return fresh(message) };
        let blocks = openai_responses::read(element).blocks;
        let first = old.len();
        owners.extend(std::iter::repeat_n(items.len(), blocks.len()));
        old.extend(blocks.iter().cloned());
        items.push(ResponsesItem { raw: element.raw, object, first, blocks });
    }
    let origins = origins(&old, &message.blocks);
    let mut kept = vec![false; old.len()];
    for origin in &origins {
        if let Origin::Same(at) = origin {
            kept[*at] = true;
        }
    }
    // Without its reasoning, an item that refers to it by id is refused.
    let lost = items
        .iter()
        .any(|item| item.is_reasoning() && !kept.get(item.first).copied().unwrap_or_default());
    let mut out: Vec<String> = Vec::new();
    let mut after_reasoning = 0;
    let mut at = 0;
    while at < message.blocks.len() {
        let owner = |at: usize| match origins.get(at) {
            Some(Origin::Same(n) | Origin::Changed(n)) => owners.get(*n).copied(),
            _ => None,
        };
        let own = owner(at);
        let mut end = at + 1;
        while end < message.blocks.len() && owner(end) == own {
            end += 1;
        }
        let new = &message.blocks[at..end];
        let same = origins[at..end].iter().all(|origin| matches!(origin, Origin::Same(_)));
        at = end;
        let Some(item) = own.and_then(|n| items.get(n)) else {
            out.extend(fresh(&Message { blocks: new.to_vec(), ..message.clone() }));
            after_reasoning = out.len();
            continue;
        };
        let json = match same && new.len() == item.blocks.len() {
            true => Some(item.raw.to_owned()),
            false => changed(item, message, new),
        };
        let Some(json) = json else { continue };
        out.push(if lost { without_id(&json) } else { json });
        if !item.is_reasoning() {
            after_reasoning = out.len();
        }
    }
    // Reasoning without the item that follows it is refused.
    out.truncate(after_reasoning);
    out
}

/// Returns an item with new content; `None` if it cannot be represented.
fn changed(item: &ResponsesItem<'_>, message: &Message, new: &[Block]) -> Option<String> {
    if item.is_message() {
        let content = item.object.get("content");
        let text_type = match message.role {
            ctx_core::Role::Assistant => "output_text",
            _ => "input_text",
        };
        let content = match content.and_then(elements) {
            Some(raws) => {
                let fresh = |block: &Block| Some(part(block, text_type));
                array(list(&raws, &item.blocks, new, changed_text, fresh))
            }
            None if super::only_texts(new) => quote(&texts(new)),
            None => array(new.iter().map(|block| part(block, text_type))),
        };
        return Some(patched(item.object, &[("content", Some(content))]));
    }
    match new.first()? {
        Block::ToolCall(call) => {
            let keys = ["input"].into_iter().chain(ARGUMENTS);
            let key = keys.into_iter().find(|key| item.object.has(key)).unwrap_or("arguments");
            // Functions and custom tools have text arguments; other tools have JSON values.
            let is_text = item.object.get(key).is_none_or(|raw| raw.get().starts_with('"'));
            let value = match is_text {
                true => quote(&arguments_text(&call.arguments)),
                false => call.arguments.as_str().to_owned(),
            };
            Some(patched(item.object, &[(key, Some(value))]))
        }
        Block::ToolResult(result) => {
            let before = item.object.get("output");
            if !takes_text(item.object) {
                return Some(item.raw.to_owned());
            }
            let old = match item.blocks.first() {
                Some(Block::ToolResult(old)) => old.content.as_slice(),
                _ => &[],
            };
            let has_pictures = result.content.iter().any(|b| matches!(b, Block::Image(_)));
            let output = match before.and_then(elements) {
                Some(raws) => {
                    let fresh = |block: &Block| Some(part(block, "input_text"));
                    array(list(&raws, old, &result.content, changed_text, fresh))
                }
                None if has_pictures => {
                    array(result.content.iter().map(|block| part(block, "input_text")))
                }
                None => quote(&texts(&result.content)),
            };
            Some(patched(item.object, &[("output", Some(output))]))
        }
        _ => None,
    }
}

/// Whether a tool output is text. A screenshot, a list of tools or shell streams cannot be
/// rewritten: they are sent unchanged or dropped.
fn takes_text(output: &Object<'_>) -> bool {
    let kind = output.text("type").unwrap_or_default();
    let is_plain = output.get("output").and_then(string).is_some();
    is_plain || ["function_call_output", "custom_tool_call_output"].contains(&&*kind)
}

fn without_id(item: &str) -> String {
    match Object::parse(item) {
        Ok(object) if object.get("id").and_then(string).is_some() => {
            patched(&object, &[("id", None)])
        }
        _ => item.to_owned(),
    }
}
