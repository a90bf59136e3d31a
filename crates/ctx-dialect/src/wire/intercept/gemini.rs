//! Gemini `generateContent`: each chunk of a stream has the shape of an answer.

use ctx_core::ToolCall;
use serde_json::value::RawValue;

use super::super::rewrite::patched;
use super::{Answer, HeldEvent, call_of};
use crate::json::{Object, ObjectWriter, array};

/// Signs the first call of an answer. It is valid only at the part that it came with.
const SIGNATURE: &str = "thoughtSignature";
/// The API's signature for a call that has none.
const UNSIGNED: &str = "\"skip_thought_signature_validator\"";
/// The end of an answer.
const END: &str = "finishReason";

/// Reads a chunk of a stream.
pub(super) fn chunk(answer: &mut Answer, chunk: &Object<'_>, data: &str) {
    let Some((candidate, kept, is_changed)) = parts(answer, chunk) else {
        return answer.emit("", data);
    };
    let is_end = candidate.text(END).is_some();
    if is_changed && kept.is_empty() && !is_end {
        return;
    }
    let data = if is_changed { with_parts(chunk, &candidate, &kept) } else { data.to_owned() };
    if !is_end {
        return answer.emit("", &data);
    }
    let halves = without_end(&data).map(|content| (content, with_parts(chunk, &candidate, &[])));
    answer.tail.push(HeldEvent { name: String::new(), data, halves });
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
        match parts(answer, &object) {
            Some((candidate, kept, true)) if !kept.is_empty() || candidate.text(END).is_some() => {
                answer.passed.push(with_parts(&object, &candidate, &kept));
            }
            Some((.., true)) => {}
            _ => answer.passed.push(chunk.get().to_owned()),
        }
    }
    let all = array(&answer.passed);
    if !answer.calls.is_empty() && answer.other_call.is_none() {
        answer.passed.retain_mut(|chunk| {
            without_end(chunk).inspect(|rest| chunk.clone_from(rest)).is_some()
        });
    }
    all
}

/// Reads the parts of the first candidate. Returns it, the parts for the client, and whether they are
/// others.
fn parts<'a>(answer: &mut Answer, chunk: &Object<'a>) -> Option<(Object<'a>, Vec<String>, bool)> {
    let candidate = Object::of(chunk.array("candidates")?.first()?)?;
    let (mut kept, mut is_changed) = (Vec::new(), false);
    let content = candidate.object("content").unwrap_or_default();
    for raw in content.array("parts").unwrap_or_default() {
        answer.parts.push(raw.get().to_owned());
        let Some(part) = Object::of(raw) else { continue };
        let call = call(&part);
        // Without the calls of ctx, the first call of the client is the first of the answer.
        let is_first = call.is_some() && answer.other_call.is_none() && !answer.calls.is_empty();
        if call.is_some_and(|call| answer.take(call)) {
            is_changed = true;
            continue;
        }
        let is_signed = |raw: &String| Object::parse(raw).is_ok_and(|part| part.has(SIGNATURE));
        let lacks = is_first && !part.has(SIGNATURE) && answer.parts.iter().any(is_signed);
        is_changed |= lacks;
        kept.push(match lacks {
            true => patched(&part, &[(SIGNATURE, Some(UNSIGNED.to_owned()))]),
            false => raw.get().to_owned(),
        });
    }
    Some((candidate, kept, is_changed))
}

/// Returns a chunk without the end of the answer; `None` if nothing is left of it.
fn without_end(chunk: &str) -> Option<String> {
    let object = Object::parse(chunk).ok()?;
    let candidate = Object::of(object.array("candidates")?.first()?)?;
    candidate.object("content")?.array("parts").filter(|parts| !parts.is_empty())?;
    let candidate = patched(&candidate, &[(END, None)]);
    Some(patched(&object, &[("candidates", Some(array([candidate])))]))
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
