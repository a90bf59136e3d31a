//! Fixes messages that became adjacent, for providers that restrict the order of roles.
//!
//! Messages that the client itself put side by side are unchanged: it knows what its provider
//! accepts. Two messages of one role are merged, or separated by an inserted message, only where a
//! message was dropped or inserted.

use std::borrow::Cow;

use super::history::Element;
use super::rewrite::messages;
use super::{Protocol, system};
use crate::anthropic::DROPPED_PLACEHOLDER;
use crate::json::{Object, ObjectWriter, array};

/// The role of a message for these providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
    /// Any other role, which is left unchanged.
    Other,
}

/// Adjacent elements to be merged into one message.
struct MergedElements<'a> {
    speaker: Speaker,
    elements: Vec<Element<'a>>,
}

impl<'a> MergedElements<'a> {
    fn of(speaker: Speaker, element: Element<'a>) -> Self {
        Self { speaker, elements: vec![element] }
    }

    fn end(mut self, protocol: Protocol) -> Element<'a> {
        match self.elements.pop() {
            Some(only) if self.elements.is_empty() => only,
            last => joined(protocol, self.speaker, self.elements.into_iter().chain(last)),
        }
    }
}

/// Returns the list with adjacent messages merged or separated.
pub(super) fn merge(protocol: Protocol, all: Vec<Element<'_>>) -> Vec<Element<'_>> {
    let mut out: Vec<MergedElements<'_>> = Vec::with_capacity(all.len());
    for element in all {
        let next = speaker(&element);
        let Some(run) = out.last_mut() else {
            if next == Speaker::Model && element.unit != Some(0) {
                out.push(MergedElements::of(Speaker::User, placeholder(protocol)));
            }
            out.push(MergedElements::of(next, element));
            continue;
        };
        let follows = run.elements.last().is_some_and(|last| element.follows(last));
        if follows || run.speaker != next || next == Speaker::Other {
            out.push(MergedElements::of(next, element));
        } else if next == Speaker::Model && (thinks(&element) || run.elements.iter().any(thinks)) {
            // The signature of reasoning depends on its position in the answer.
            out.push(MergedElements::of(Speaker::User, placeholder(protocol)));
            out.push(MergedElements::of(next, element));
        } else {
            run.elements.push(element);
        }
    }
    out.into_iter().map(|run| run.end(protocol)).collect()
}

fn speaker(element: &Element<'_>) -> Speaker {
    match element.role().as_deref() {
        Some("user" | "function") | None => Speaker::User,
        Some("assistant" | "model") => Speaker::Model,
        Some(_) => Speaker::Other,
    }
}

fn placeholder(protocol: Protocol) -> Element<'static> {
    let text = system::part(protocol, DROPPED_PLACEHOLDER);
    Element::new(message(protocol, Speaker::User, &[text]))
}

fn message(protocol: Protocol, speaker: Speaker, blocks: &[String]) -> String {
    let (model, key) = match protocol {
        Protocol::Gemini => ("model", "parts"),
        _ => ("assistant", "content"),
    };
    let role = if speaker == Speaker::Model { model } else { "user" };
    ObjectWriter::new().text("role", role).raw(key, array(blocks)).end()
}

/// Merges several messages; in a user message, results come first.
fn joined<'a, 'b>(
    protocol: Protocol,
    speaker: Speaker,
    elements: impl Iterator<Item = Element<'b>>,
) -> Element<'a> {
    let blocks = elements.flat_map(|element| blocks(protocol, &element));
    let is_answer = |block: &String| speaker == Speaker::User && is_result(block);
    let (mut all, rest): (Vec<_>, Vec<_>) = blocks.partition(is_answer);
    all.extend(rest);
    Element { json: Cow::Owned(message(protocol, speaker, &all)), unit: None }
}

fn blocks(protocol: Protocol, element: &Element<'_>) -> Vec<String> {
    let Ok(object) = Object::parse(&element.json) else { return Vec::new() };
    match protocol {
        Protocol::Gemini => {
            let parts = object.array("parts").unwrap_or_default();
            parts.into_iter().map(|raw| raw.get().to_owned()).collect()
        }
        _ => messages::blocks(&object),
    }
}

fn is_result(block: &str) -> bool {
    Object::parse(block).is_ok_and(|block| {
        block.text("type").is_some_and(|kind| kind == "tool_result")
            || block.has("toolResult")
            || block.has("functionResponse")
            || block.has("function_response")
    })
}

fn thinks(element: &Element<'_>) -> bool {
    let fields = ["\"thinking\"", "\"redacted_thinking\"", "\"reasoningContent\""];
    fields.iter().any(|field| element.json.contains(field))
}
