//! Neighbours that were none before, where a provider minds who speaks after whom.
//!
//! What the client itself put side by side stays as it came: it knows what its provider takes. Only
//! where something was left out or put in between do two messages of one role become one, and only
//! there may a message have to stand between them.

use std::borrow::Cow;

use super::Protocol;
use super::history::Element;
use super::rewrite::messages;
use crate::anthropic::LEFT_OUT;
use crate::json::{Fresh, Object, array};

/// Who speaks, as these providers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
    /// Some other role, which is left alone.
    Other,
}

/// Neighbours that go out as one message.
struct Run<'a> {
    speaker: Speaker,
    elements: Vec<Element<'a>>,
}

impl<'a> Run<'a> {
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

/// The list with its seams made fit.
pub(super) fn fit(protocol: Protocol, all: Vec<Element<'_>>) -> Vec<Element<'_>> {
    let mut out: Vec<Run<'_>> = Vec::with_capacity(all.len());
    for element in all {
        let next = speaker(&element);
        let Some(run) = out.last_mut() else {
            if next == Speaker::Model && element.told != Some(0) {
                out.push(Run::of(Speaker::User, left_out(protocol)));
            }
            out.push(Run::of(next, element));
            continue;
        };
        let follows = run.elements.last().is_some_and(|last| element.follows(last));
        if follows || run.speaker != next || next == Speaker::Other {
            out.push(Run::of(next, element));
        } else if next == Speaker::Model && (thinks(&element) || run.elements.iter().any(thinks)) {
            // Reasoning is signed for the place where it stands in its answer.
            out.push(Run::of(Speaker::User, left_out(protocol)));
            out.push(Run::of(next, element));
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

fn left_out(protocol: Protocol) -> Element<'static> {
    let text = match protocol {
        Protocol::Gemini => Fresh::new().text("text", LEFT_OUT),
        _ => Fresh::new().text("type", "text").text("text", LEFT_OUT),
    };
    Element::written(message(protocol, Speaker::User, &[text.end()]))
}

fn message(protocol: Protocol, speaker: Speaker, blocks: &[String]) -> String {
    let (model, key) = match protocol {
        Protocol::Gemini => ("model", "parts"),
        _ => ("assistant", "content"),
    };
    let role = if speaker == Speaker::Model { model } else { "user" };
    Fresh::new().text("role", role).raw(key, array(blocks)).end()
}

/// Several messages as one; of the user's, what answers a call comes first.
fn joined<'a, 'b>(
    protocol: Protocol,
    speaker: Speaker,
    elements: impl Iterator<Item = Element<'b>>,
) -> Element<'a> {
    let blocks = elements.flat_map(|element| blocks(protocol, &element));
    let is_answer = |block: &String| speaker == Speaker::User && is_result(block);
    let (mut all, rest): (Vec<_>, Vec<_>) = blocks.partition(is_answer);
    all.extend(rest);
    Element { json: Cow::Owned(message(protocol, speaker, &all)), told: None }
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
            || block.has("functionResponse")
            || block.has("function_response")
    })
}

fn thinks(element: &Element<'_>) -> bool {
    let text = &element.json;
    text.contains("\"thinking\"") || text.contains("\"redacted_thinking\"")
}
