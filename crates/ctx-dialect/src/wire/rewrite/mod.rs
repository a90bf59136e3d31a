//! Writes a message in an API's format, reusing the unchanged parts of the message it replaces.

mod chat;
mod converse;
mod gemini;
pub(super) mod messages;
mod responses;

use std::collections::{HashMap, VecDeque};

use ctx_core::{Block, CallId, Message};
use serde_json::value::RawValue;

pub(super) use self::gemini::Names;
use super::{Protocol, Request, Unit};
use crate::json::{Object, ObjectWriter, quote};

/// Writes a message as elements of the list; `of` is the unit that it replaces. Returns none if the
/// API cannot represent any part of it.
pub(super) fn write(
    request: &Request<'_>,
    names: &Names,
    message: &Message,
    of: Option<&Unit<'_>>,
) -> Vec<String> {
    match request.protocol {
        Protocol::Chat => chat::write(message, of),
        Protocol::Responses => responses::write(message, of),
        Protocol::Messages | Protocol::Converse => {
            messages::write(request, message, of).into_iter().collect()
        }
        Protocol::Gemini => gemini::write(request, names, message, of).into_iter().collect(),
    }
}

/// The origin of a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The block with this index, unchanged.
    Same(usize),
    /// The block with this index, with new content.
    Changed(usize),
    /// A new block.
    New,
}

/// Identifies a block whose content changes.
#[derive(PartialEq, Eq, Hash)]
enum BlockKey<'b> {
    Text,
    Call(&'b CallId),
    Result(&'b CallId),
}

fn key_of(block: &Block) -> Option<BlockKey<'_>> {
    match block {
        Block::Text { .. } => Some(BlockKey::Text),
        Block::ToolCall(call) => Some(BlockKey::Call(&call.id)),
        Block::ToolResult(result) => Some(BlockKey::Result(&result.call_id)),
        _ => None,
    }
}

/// Returns the origin of each new block. Each old block is used at most once.
pub(super) fn origins(old: &[Block], new: &[Block]) -> Vec<Origin> {
    let mut equal: HashMap<&Block, VecDeque<usize>> = HashMap::with_capacity(old.len());
    for (at, block) in old.iter().enumerate() {
        equal.entry(block).or_default().push_back(at);
    }
    let mut taken = vec![false; old.len()];
    let mut origins: Vec<_> = new
        .iter()
        .map(|block| match equal.get_mut(block).and_then(VecDeque::pop_front) {
            Some(at) => {
                taken[at] = true;
                Origin::Same(at)
            }
            None => Origin::New,
        })
        .collect();
    let mut left: HashMap<BlockKey<'_>, VecDeque<usize>> = HashMap::new();
    for (at, block) in old.iter().enumerate().filter(|(at, _)| !taken[*at]) {
        if let Some(key_of) = key_of(block) {
            left.entry(key_of).or_default().push_back(at);
        }
    }
    for (block, origin) in new.iter().zip(&mut origins) {
        if *origin == Origin::New
            && let Some(at) = key_of(block).and_then(|key_of| left.get_mut(&key_of)?.pop_front())
        {
            *origin = Origin::Changed(at);
        }
    }
    origins
}

/// Rewrites a text part, if both are text.
fn changed_text(object: &Object<'_>, _: &Block, new: &Block) -> Option<String> {
    match new {
        Block::Text { text } if object.has("text") => {
            Some(patched(object, &[("text", Some(quote(text)))]))
        }
        _ => None,
    }
}

/// Replaces values of an object; `None` removes the field. New fields are appended.
pub(crate) fn patched(object: &Object<'_>, edits: &[(&str, Option<String>)]) -> String {
    let mut fresh = ObjectWriter::new();
    for (key, raw) in object.iter() {
        match edits.iter().find(|(edited, _)| *edited == key) {
            None => fresh = fresh.raw(key, raw.get()),
            Some(_) => {
                // The last of equal keys counts.
                let is_last = object.field(key).is_some_and(|last| std::ptr::eq(last, raw));
                let value = edits.iter().find(|(edited, _)| *edited == key);
                if let Some((_, Some(value))) = value.filter(|_| is_last) {
                    fresh = fresh.raw(key, value);
                }
            }
        }
    }
    for (key, value) in edits {
        if let Some(value) = value.as_ref().filter(|_| !object.has(key)) {
            fresh = fresh.raw(key, value);
        }
    }
    fresh.end()
}

/// Replaces values of an object nested in a field.
fn patched_within(object: &Object<'_>, key: &str, edits: &[(&str, Option<String>)]) -> String {
    match object.object(key) {
        Some(inner) => patched(object, &[(key, Some(patched(&inner, edits)))]),
        None => patched(object, edits),
    }
}

/// Writes a list of blocks, reusing the unchanged ones. `old` are the blocks parsed from `raws`,
/// one for each. `changed` rewrites an existing block, `fresh` writes a new one; both return `None`
/// for blocks that cannot be represented.
pub(crate) fn list(
    raws: &[&RawValue],
    old: &[Block],
    new: &[Block],
    changed: impl Fn(&Object<'_>, &Block, &Block) -> Option<String>,
    fresh: impl Fn(&Block) -> Option<String>,
) -> Vec<String> {
    let origins = origins(old, new);
    let written = new.iter().zip(origins).filter_map(|(block, origin)| {
        let raw = |at: usize| raws.get(at).copied();
        match origin {
            Origin::Same(at) => raw(at).map(|raw| raw.get().to_owned()),
            Origin::Changed(at) => match raw(at).and_then(Object::of) {
                Some(object) => changed(&object, old.get(at)?, block),
                None => fresh(block),
            },
            Origin::New => fresh(block),
        }
    });
    written.collect()
}

/// Whether all blocks are text.
fn only_texts(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| matches!(block, Block::Text { .. }))
}
