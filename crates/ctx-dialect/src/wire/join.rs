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

/// The list with its seams made fit.
pub(super) fn fit(protocol: Protocol, all: Vec<Element<'_>>) -> Vec<Element<'_>> {
    let mut out: Vec<(Speaker, Element<'_>)> = Vec::with_capacity(all.len());
    for element in all {
        let next = speaker(&element);
        let Some((last, before)) = out.last_mut() else {
            if next == Speaker::Model && element.told != Some(0) {
                out.push((Speaker::User, left_out(protocol)));
            }
            out.push((next, element));
            continue;
        };
        if element.follows(before) || *last != next || next == Speaker::Other {
            out.push((next, element));
        } else if next == Speaker::Model && (thinks(before) || thinks(&element)) {
            // Reasoning is signed for the place where it stands in its answer.
            out.push((Speaker::User, left_out(protocol)));
            out.push((next, element));
        } else {
            let told = element.told;
            *before = joined(protocol, next, before, &element);
            // What came after the second of them still follows.
            before.told = told;
        }
    }
    out.into_iter().map(|(_, element)| element).collect()
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

/// Two messages as one, what answers a call first.
fn joined<'a>(
    protocol: Protocol,
    speaker: Speaker,
    first: &Element<'_>,
    second: &Element<'_>,
) -> Element<'a> {
    let blocks = blocks(protocol, first).into_iter().chain(blocks(protocol, second));
    let (mut results, rest): (Vec<_>, Vec<_>) = blocks.partition(|block| is_result(block));
    results.extend(rest);
    Element { json: Cow::Owned(message(protocol, speaker, &results)), told: None }
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
        block.text("type").is_some_and(|kind| kind.ends_with("tool_result"))
            || block.has("functionResponse")
    })
}

fn thinks(element: &Element<'_>) -> bool {
    let text = &element.json;
    text.contains("\"thinking\"") || text.contains("\"redacted_thinking\"")
}
