//! Reads and extends a separate system prompt.

use ctx_core::{Message, Role};
use serde_json::value::RawValue;

use super::Protocol;
use super::rewrite::patched;
use crate::block;
use crate::json::{Object, ObjectWriter, array, elements, quote, string, text_block};

/// Returns the field names of the separate system prompt, the API's own first.
pub(super) fn keys(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Chat => &[],
        Protocol::Responses => &["instructions"],
        Protocol::Messages | Protocol::Converse => &["system"],
        Protocol::Gemini => &["systemInstruction", "system_instruction"],
    }
}

/// Returns the text of a system prompt; `None` if it is empty.
pub(super) fn text(protocol: Protocol, raw: &RawValue) -> Option<String> {
    let inner = match protocol {
        // A content, whose parts contain the text.
        Protocol::Gemini => match Object::of(raw) {
            Some(content) => content.get("parts")?,
            None => raw,
        },
        _ => raw,
    };
    let text = Message::new(Role::System, block::content(Some(inner))).plain_text();
    (!text.is_empty()).then_some(text)
}

/// Returns a system prompt with `addition` appended.
pub(super) fn with(protocol: Protocol, raw: Option<&RawValue>, addition: &str) -> String {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return fresh(protocol, addition) };
    if let Some(text) = string(raw) {
        return quote(&joined(&text, addition));
    }
    if let Some(blocks) = elements(raw) {
        let more = part(protocol, addition);
        return array(blocks.iter().map(|raw| raw.get()).chain([more.as_str()]));
    }
    match Object::of(raw) {
        Some(content) if protocol == Protocol::Gemini => {
            let parts = content.array("parts").unwrap_or_default();
            let more = part(protocol, addition);
            let parts = array(parts.iter().map(|raw| raw.get()).chain([more.as_str()]));
            patched(&content, &[("parts", Some(parts))])
        }
        // Invalid: the provider reports the error.
        _ => raw.get().to_owned(),
    }
}

/// Joins two texts with an empty line.
pub(super) fn joined(text: &str, addition: &str) -> String {
    if text.is_empty() { addition.to_owned() } else { format!("{text}\n\n{addition}") }
}

fn fresh(protocol: Protocol, text: &str) -> String {
    match protocol {
        Protocol::Gemini => ObjectWriter::new().raw("parts", array([part(protocol, text)])).end(),
        Protocol::Converse => array([part(protocol, text)]),
        _ => quote(text),
    }
}

/// Returns a text as a block of the API.
pub(super) fn part(protocol: Protocol, text: &str) -> String {
    match protocol {
        Protocol::Gemini | Protocol::Converse => ObjectWriter::new().text("text", text).end(),
        _ => text_block(text),
    }
}
