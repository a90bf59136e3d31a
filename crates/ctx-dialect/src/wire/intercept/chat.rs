//! OpenAI Chat Completions.

use ctx_core::ToolCall;

use super::super::rewrite::patched;
use super::{Answer, OpenPart, call_of};
use crate::json::{Object, ObjectWriter, array, quote};

/// Reads a chunk of a stream.
pub(super) fn chunk(answer: &mut Answer, chunk: &Object<'_>, data: &str) {
    let choice = chunk.array("choices").and_then(|choices| Object::of(choices.first()?));
    let Some(choice) = choice else { return answer.hold("", data) };
    let delta = choice.object("delta").unwrap_or_default();
    answer.text.push_str(&delta.text("content").unwrap_or_default());
    answer.reasoning.push_str(&delta.text("reasoning_content").unwrap_or_default());
    let calls = delta.array("tool_calls").unwrap_or_default();
    let is_end = choice.text("finish_reason").is_some();
    let mut kept = Vec::new();
    for raw in &calls {
        let Some(call) = Object::of(raw) else { continue };
        if let Some(place) = part_of_call(answer, &call) {
            kept.push(match call.count("index") == Some(place as u64) {
                true => raw.get().to_owned(),
                false => patched(&call, &[("index", Some(place.to_string()))]),
            });
        }
    }
    if is_end {
        end_calls(answer);
    }
    let is_said =
        ["content", "reasoning_content", "role"].iter().any(|key| delta.text(key).is_some());
    if !calls.is_empty() && kept.is_empty() && !is_end && !is_said {
        return;
    }
    let mut edits = Vec::new();
    if !calls.is_empty() {
        let kept = (!kept.is_empty()).then(|| array(&kept));
        let delta = patched(&delta, &[("tool_calls", kept)]);
        let choice = patched(&choice, &[("delta", Some(delta))]);
        edits.push(("choices", Some(array([choice]))));
    }
    match &answer.id {
        None => answer.id = chunk.owned("id"),
        Some(id) if answer.round > 0 => edits.push(("id", Some(quote(id)))),
        Some(_) => {}
    }
    let is_same = calls.iter().len() == kept.len() && answer.round == 0 && !answer.is_changed;
    let data = if is_same { data.to_owned() } else { patched(chunk, &edits) };
    if is_end { answer.hold("", &data) } else { answer.emit("", &data) }
}

/// Adds a delta of a call. Returns the index for the client; `None` for a call of ctx's tools.
fn part_of_call(answer: &mut Answer, delta: &Object<'_>) -> Option<usize> {
    let index = delta.count("index").unwrap_or_default();
    let function = delta.object("function").unwrap_or_default();
    if answer.open_part(index).is_none() {
        let name = function.owned("name").unwrap_or_default();
        let is_own = answer.is_own(&name);
        let place = (!is_own).then_some(answer.count);
        answer.count += usize::from(!is_own);
        answer.is_changed |= is_own;
        let id = delta.owned("id").unwrap_or_default();
        answer.open.push(OpenPart { index, place, id, name, ..OpenPart::default() });
    }
    let part = answer.open_part(index)?;
    part.json.push_str(&function.text("arguments").unwrap_or_default());
    part.place
}

fn end_calls(answer: &mut Answer) {
    for part in std::mem::take(&mut answer.open) {
        answer.take(call_of(&part.id, &part.name, &part.json));
    }
}

/// Reads an answer that was not streamed, and returns it for the client.
pub(super) fn whole(answer: &mut Answer, object: &Object<'_>) -> String {
    let choice = object.array("choices").and_then(|choices| Object::of(choices.first()?));
    let choice = choice.unwrap_or_default();
    let message = choice.object("message").unwrap_or_default();
    answer.text.push_str(&message.text("content").unwrap_or_default());
    answer.reasoning.push_str(&message.text("reasoning_content").unwrap_or_default());
    let mut kept = Vec::new();
    for raw in message.array("tool_calls").unwrap_or_default() {
        let call = Object::of(raw).and_then(|call| self::call(&call));
        if !call.is_some_and(|call| answer.take(call)) {
            kept.push(raw.get());
        }
    }
    // Earlier rounds have only text for the client.
    answer.passed.extend(message.owned("content").filter(|text| !text.is_empty()));
    let content = (!answer.passed.is_empty()).then(|| quote(&answer.passed.join("\n\n")));
    let calls = (!kept.is_empty()).then(|| array(kept));
    let edits = [("content", content.or(Some("null".to_owned()))), ("tool_calls", calls)];
    let choice = patched(&choice, &[("message", Some(patched(&message, &edits)))]);
    patched(object, &[("choices", Some(array([choice])))])
}

fn call(call: &Object<'_>) -> Option<ToolCall> {
    let function = call.object("function").or_else(|| call.object("custom"))?;
    let arguments = function.text("arguments").unwrap_or_default();
    Some(call_of(&call.text("id")?, &function.text("name")?, &arguments))
}

/// Returns the answer of this round.
pub(super) fn message(answer: &Answer, calls: &[ToolCall]) -> String {
    let calls = calls.iter().map(|call| {
        let function = ObjectWriter::new()
            .text("name", &call.name)
            .text("arguments", call.arguments.as_str())
            .end();
        ObjectWriter::new()
            .text("id", &call.id)
            .text("type", "function")
            .raw("function", function)
            .end()
    });
    let some = |text: &str| (!text.is_empty()).then(|| quote(text));
    ObjectWriter::new()
        .text("role", "assistant")
        .raw("content", some(&answer.text).unwrap_or_else(|| "null".to_owned()))
        .raw_if("reasoning_content", some(&answer.reasoning))
        .raw("tool_calls", array(calls))
        .end()
}
