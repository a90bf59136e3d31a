//! Anthropic Messages.

use ctx_core::ToolCall;

use super::super::context_compaction as compaction;
use super::super::rewrite::patched;
use super::{Answer, OpenPart, call_of};
use crate::json::{Object, ObjectWriter, array, quote, value};

/// Reads an event of a stream.
pub(super) fn event(answer: &mut Answer, event: &Object<'_>, name: &str, data: &str) {
    let index = event.count("index").unwrap_or_default();
    match event.text("type").as_deref() {
        Some("message_start") if answer.round > 0 => {}
        Some("message_start") => {
            let usage = event.object("message").and_then(|message| message.object("usage"));
            answer.input_tokens =
                usage.and_then(|usage| usage.count("input_tokens")).unwrap_or_default();
            answer.emit(name, data);
            emit_summary(answer);
        }
        Some("message_delta") => answer.hold(name, &with_edits(answer, event, data)),
        Some("message_stop") => answer.hold(name, data),
        Some("content_block_start") => {
            let block = event.object("content_block").unwrap_or_default();
            let is_own = block.text("name").is_some_and(|name| answer.is_own(&name));
            let place = (!is_own).then_some(answer.count);
            answer.count += usize::from(!is_own);
            let begin = event.get("content_block").map(|raw| raw.get().to_owned());
            let begin = begin.unwrap_or_default();
            answer.open.push(OpenPart { index, place, begin, ..OpenPart::default() });
            emit(answer, event, place, name, data);
        }
        Some("content_block_delta") => {
            let delta = event.object("delta").unwrap_or_default();
            let Some(part) = answer.open_part(index) else { return answer.emit(name, data) };
            let said = delta.text("text").or_else(|| delta.text("thinking"));
            let said = said.or_else(|| delta.text("content"));
            part.text.push_str(&said.unwrap_or_default());
            part.json.push_str(&delta.text("partial_json").unwrap_or_default());
            part.signature.push_str(&delta.text("signature").unwrap_or_default());
            let place = part.place;
            emit(answer, event, place, name, data);
        }
        Some("content_block_stop") => {
            let Some(at) = answer.open.iter().position(|part| part.index == index) else {
                return answer.emit(name, data);
            };
            let part = answer.open.remove(at);
            let block = block(&part);
            if let Some(call) = Object::parse(&block).ok().and_then(|block| call(&block)) {
                answer.take(call);
            }
            answer.parts.push(block);
            emit(answer, event, part.place, name, data);
        }
        _ => answer.emit(name, data),
    }
}

/// Reads an answer that is not a stream.
pub(super) fn whole(answer: &mut Answer, object: &Object<'_>) -> String {
    let summary = answer.summary.take();
    answer.passed.extend(summary.map(|summary| compaction::block(Some(&summary))));
    let changed = answer.list(object, "content", call);
    match Object::parse(&changed) {
        Ok(object) => with_edits(answer, &object, &changed),
        Err(_) => changed,
    }
}

/// Emits the summary of a compaction as the first block.
fn emit_summary(answer: &mut Answer) {
    let Some(summary) = answer.summary.take() else { return };
    let event = |kind: &str| ObjectWriter::new().text("type", kind).plain("index", answer.count);
    let events = [
        ("content_block_start", "content_block", Some(compaction::block(None))),
        ("content_block_delta", "delta", Some(compaction::delta(&summary))),
        ("content_block_stop", "", None),
    ];
    let events = events.map(|(kind, key, value)| (kind, event(kind).raw_if(key, value).end()));
    for (kind, data) in events {
        answer.emit(kind, &data);
    }
    answer.count += 1;
}

/// Returns the end of an answer with the edits made in its request.
fn with_edits(answer: &Answer, end: &Object<'_>, data: &str) -> String {
    let usage = answer.iteration.as_deref().map(|made| {
        let usage = end.object("usage").unwrap_or_default();
        let input = usage.count("input_tokens").unwrap_or(answer.input_tokens);
        let output = usage.count("output_tokens").unwrap_or_default();
        let message = compaction::iteration("message", input, output);
        patched(&usage, &[("iterations", Some(array([made, &message])))])
    });
    let mut edits = vec![("usage", usage), ("context_management", answer.edits.clone())];
    edits.retain(|(_, value)| value.is_some());
    if edits.is_empty() { data.to_owned() } else { patched(end, &edits) }
}

/// Emits an event of a block under its index for the client.
fn emit(answer: &mut Answer, event: &Object<'_>, place: Option<usize>, name: &str, data: &str) {
    let Some(place) = place else { return };
    match event.count("index") == Some(place as u64) {
        true => answer.emit(name, data),
        false => answer.emit(name, &patched(event, &[("index", Some(place.to_string()))])),
    }
}

/// Returns a block with everything that followed its beginning.
fn block(part: &OpenPart) -> String {
    let Ok(begin) = Object::parse(&part.begin) else { return part.begin.clone() };
    let text = (!part.text.is_empty()).then(|| quote(&part.text));
    let signature = (!part.signature.is_empty()).then(|| quote(&part.signature));
    let key = match begin.text("type").as_deref() {
        Some("thinking") => "thinking",
        Some("compaction") => "content",
        _ => "text",
    };
    let values = [(key, text), ("signature", signature)];
    let mut edits: Vec<_> = values.into_iter().filter(|(_, value)| value.is_some()).collect();
    // A torn call of ctx's tools is answered too.
    if value(&part.json).is_ok() {
        edits.push(("input", Some(part.json.clone())));
    }
    patched(&begin, &edits)
}

/// Returns the call in a block.
pub(super) fn call(block: &Object<'_>) -> Option<ToolCall> {
    block.text("type").filter(|kind| kind == "tool_use")?;
    let input = block.get("input").map_or("{}", |input| input.get());
    Some(call_of(&block.text("id")?, &block.text("name")?, input))
}

/// Returns the answer of this round.
pub(super) fn message(answer: &Answer) -> String {
    ObjectWriter::new().text("role", "assistant").raw("content", array(&answer.parts)).end()
}
