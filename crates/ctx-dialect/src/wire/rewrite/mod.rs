//! A message in an API's own form, with what did not change of the one it replaces as it came.

mod chat;
mod gemini;
pub(super) mod messages;
mod responses;

use std::collections::{HashMap, VecDeque};

use ctx_core::{Block, CallId, Message};
use serde_json::value::RawValue;

pub(super) use self::gemini::Names;
use super::{Protocol, Request, Unit};
use crate::json::{Fresh, Object, quote};

/// The elements that a message becomes; `of`: what it replaces. None where nothing of it can be
/// said in that API.
pub(super) fn write(
    request: &Request<'_>,
    names: &Names,
    message: &Message,
    of: Option<&Unit<'_>>,
) -> Vec<String> {
    match request.protocol {
        Protocol::Chat => chat::write(message, of),
        Protocol::Responses => responses::write(message, of),
        Protocol::Messages => messages::write(message, of, request.thinks).into_iter().collect(),
        Protocol::Gemini => gemini::write(request, names, message, of).into_iter().collect(),
    }
}

/// What a new block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The block of that number, unchanged.
    Same(usize),
    /// The block of that number, with other words.
    Changed(usize),
    /// None.
    New,
}

/// What a block is known by where its words change.
#[derive(PartialEq, Eq, Hash)]
enum Mark<'b> {
    Text,
    Call(&'b CallId),
    Result(&'b CallId),
}

fn mark(block: &Block) -> Option<Mark<'_>> {
    match block {
        Block::Text { .. } => Some(Mark::Text),
        Block::ToolCall(call) => Some(Mark::Call(&call.id)),
        Block::ToolResult(result) => Some(Mark::Result(&result.call_id)),
        _ => None,
    }
}

/// Which of the old blocks each new one came from; each old one is taken once.
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
    let mut left: HashMap<Mark<'_>, VecDeque<usize>> = HashMap::new();
    for (at, block) in old.iter().enumerate().filter(|(at, _)| !taken[*at]) {
        if let Some(mark) = mark(block) {
            left.entry(mark).or_default().push_back(at);
        }
    }
    for (block, origin) in new.iter().zip(&mut origins) {
        if *origin == Origin::New
            && let Some(at) = mark(block).and_then(|mark| left.get_mut(&mark)?.pop_front())
        {
            *origin = Origin::Changed(at);
        }
    }
    origins
}

/// A text part with another text, where both are text.
fn changed_text(object: &Object<'_>, _: &Block, new: &Block) -> Option<String> {
    match new {
        Block::Text { text } if object.has("text") => {
            Some(patched(object, &[("text", Some(quote(text)))]))
        }
        _ => None,
    }
}

/// An object with other values, `None` for those that go. A field that was not there comes last.
pub(super) fn patched(object: &Object<'_>, edits: &[(&str, Option<String>)]) -> String {
    let mut fresh = Fresh::new();
    for (key, raw) in object.iter() {
        match edits.iter().find(|(edited, _)| *edited == key) {
            None => fresh = fresh.raw(key, raw.get()),
            Some(_) => {
                // Of equal keys the last one counts.
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

/// An object of which one field holds the object that changes.
fn patched_within(object: &Object<'_>, key: &str, edits: &[(&str, Option<String>)]) -> String {
    match object.object(key) {
        Some(inner) => patched(object, &[(key, Some(patched(&inner, edits)))]),
        None => patched(object, edits),
    }
}

/// A list of blocks in which what did not change is as it came. `old` are the blocks that `raws`
/// were read as, one for one. `changed` writes a block into the place of another, `fresh` one that
/// is new; `None` for what cannot be said.
fn list(
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

/// The texts among blocks, if they are nothing else.
fn only_texts(blocks: &[Block]) -> bool {
    blocks.iter().all(|block| matches!(block, Block::Text { .. }))
}
