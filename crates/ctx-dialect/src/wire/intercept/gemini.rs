//! Gemini `generateContent`: each chunk of a stream has the shape of an answer.

use ctx_core::ToolCall;
use serde_json::value::RawValue;

use super::super::rewrite::patched;
use super::{Answer, call_of};
use crate::json::{Object, ObjectWriter, array};

/// Signs the first call of an answer, and must stay with it.
const SIGNATURE: &str = "thoughtSignature";

/// Reads a chunk of a stream.
pub(super) fn chunk(answer: &mut Answer, chunk: &Object<'_>, data: &str) {
    let Some((candidate, kept, is_changed)) = parts(answer, chunk) else {
        return answer.emit("", data);
    };
    let is_end = candidate.text("finishReason").is_some();
    if is_changed && kept.is_empty() && !is_end {
        return;
    }
    let data = if is_changed { with_parts(chunk, &candidate, &kept) } else { data.to_owned() };
    if is_end { answer.hold("", &data) } else { answer.emit("", &data) }
}

/// Reads an answer that was not streamed, and returns it for the client.
pub(super) fn whole(answer: &mut Answer, object: &Object<'_>) -> String {
    let read = parts(answer, object);
    let (candidate, kept, _) = read.unwrap_or_default();
    answer.passed.extend(kept);
    with_parts(object, &candidate, &answer.passed)
}

/// Reads the chunks of a list, and returns those of all rounds for the client.
pub(super) fn list(answer: &mut Answer, chunks: &[&RawValue]) -> String {
    for chunk in chunks {
        let Some(object) = Object::of(chunk) else { continue };
        let changed = match parts(answer, &object) {
            Some((candidate, kept, true)) => with_parts(&object, &candidate, &kept),
            _ => chunk.get().to_owned(),
        };
        answer.passed.push(changed);
    }
    array(&answer.passed)
}

/// Reads the parts of the first candidate. Returns it, the parts for the client, and whether a call
/// was removed.
fn parts<'a>(answer: &mut Answer, chunk: &Object<'a>) -> Option<(Object<'a>, Vec<String>, bool)> {
    let candidate = Object::of(chunk.array("candidates")?.first()?)?;
    let (mut kept, mut is_changed, mut signature) = (Vec::new(), false, None);
    let content = candidate.object("content").unwrap_or_default();
    for raw in content.array("parts").unwrap_or_default() {
        answer.parts.push(raw.get().to_owned());
        let Some(part) = Object::of(raw) else { continue };
        let call = call(&part);
        let is_call = call.is_some();
        if call.is_some_and(|call| answer.take(call)) {
            is_changed = true;
            signature = signature.or_else(|| part.get(SIGNATURE).map(|raw| raw.get().to_owned()));
            continue;
        }
        kept.push(match signature.take_if(|_| is_call && !part.has(SIGNATURE)) {
            Some(signature) => patched(&part, &[(SIGNATURE, Some(signature))]),
            None => raw.get().to_owned(),
        });
    }
    Some((candidate, kept, is_changed))
}

fn with_parts(chunk: &Object<'_>, candidate: &Object<'_>, parts: &[String]) -> String {
    let content = candidate.object("content").unwrap_or_default();
    let content = patched(&content, &[("parts", Some(array(parts)))]);
    let candidate = patched(candidate, &[("content", Some(content))]);
    patched(chunk, &[("candidates", Some(array([candidate])))])
}

fn call(part: &Object<'_>) -> Option<ToolCall> {
    let call = part.object("functionCall")?;
    let args = call.get("args").map_or("{}", |args| args.get());
    Some(call_of(&call.text("id").unwrap_or_default(), &call.text("name")?, args))
}

/// Returns the answer of this round.
pub(super) fn message(answer: &Answer) -> String {
    ObjectWriter::new().text("role", "model").raw("parts", array(&answer.parts)).end()
}
