//! The text of an answer.

use super::pieces::{Piece, Pieces};
use crate::json::Object;
use crate::wire::Protocol;

/// Returns the text of the first choice of an answer, without thinking and calls. It may be
/// incomplete.
#[must_use]
pub fn answer_text(protocol: Protocol, answer: &[u8]) -> String {
    let (mut pieces, mut text) = (Pieces::default(), String::new());
    let mut take = |piece: Piece<'_>| {
        let (Piece::Json(json) | Piece::Event { data: json, .. }) = piece else { return };
        if let Ok(object) = Object::parse(json) {
            match protocol {
                Protocol::Chat => chat(&object, &mut text),
                Protocol::Messages => messages(&object, &mut text),
                Protocol::Responses => responses(&object, &mut text),
                Protocol::Gemini => gemini(&object, &mut text),
                Protocol::Converse => converse(&object, &mut text),
            }
        }
    };
    pieces.push(answer, &mut take);
    pieces.end(&mut take);
    text
}

fn chat(answer: &Object<'_>, text: &mut String) {
    let choice = answer.array("choices").and_then(|choices| Object::of(choices.first()?));
    let parts = ["message", "delta"];
    let said = choice.and_then(|choice| parts.iter().find_map(|part| choice.object(part)));
    // Ollama's own API has no choices.
    let said = said.or_else(|| answer.object("message"));
    text.extend(said.and_then(|said| said.text("content")));
}

fn messages(answer: &Object<'_>, text: &mut String) {
    for block in answer.array("content").unwrap_or_default() {
        let block = Object::of(block).unwrap_or_default();
        text.extend(block.text("text").filter(|_| block.text("type").as_deref() == Some("text")));
    }
    text.extend(answer.object("delta").and_then(|delta| delta.text("text")));
}

fn responses(answer: &Object<'_>, text: &mut String) {
    if answer.text("type").as_deref() == Some("response.output_text.delta") {
        text.extend(answer.text("delta"));
    }
    for item in answer.array("output").unwrap_or_default() {
        let content = Object::of(item).and_then(|item| item.array("content"));
        let parts = content.unwrap_or_default().into_iter().filter_map(Object::of);
        text.extend(parts.filter_map(|part| part.text("text")));
    }
}

fn gemini(answer: &Object<'_>, text: &mut String) {
    let first = answer.array("candidates").and_then(|all| Object::of(all.first()?));
    let content = first.and_then(|first| first.object("content"));
    for part in content.and_then(|content| content.array("parts")).unwrap_or_default() {
        let part = Object::of(part).unwrap_or_default();
        text.extend(part.text("text").filter(|_| !part.is_true("thought")));
    }
}

fn converse(answer: &Object<'_>, text: &mut String) {
    let message = answer.object("output").and_then(|output| output.object("message"));
    for block in message.and_then(|message| message.array("content")).unwrap_or_default() {
        text.extend(Object::of(block).unwrap_or_default().text("text"));
    }
    text.extend(answer.object("delta").and_then(|delta| delta.text("text")));
}
