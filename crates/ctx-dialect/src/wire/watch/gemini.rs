//! Gemini `generateContent`: each chunk of a stream has the shape of an answer.

use ctx_core::Usage;

use super::{AnswerFindings, says};
use crate::json::Object;

/// Reads an answer, or a chunk of one.
pub(super) fn chunk(found: &mut AnswerFindings, chunk: &Object<'_>) {
    for candidate in chunk.array("candidates").unwrap_or_default() {
        let Some(candidate) = Object::of(candidate) else { continue };
        let parts = candidate.object("content").and_then(|content| content.array("parts"));
        for part in parts.unwrap_or_default() {
            found.content_if(Object::of(part).is_some_and(|part| is_filled(&part)));
        }
        if let Some(reason) = candidate.owned("finishReason") {
            found.finish(Some(reason));
            found.finished = true;
        }
    }
    if let Some(reason) =
        chunk.object("promptFeedback").and_then(|feedback| feedback.owned("blockReason"))
    {
        found.finish(Some(reason));
        found.finished = true;
    }
    if let Some(usage) = chunk.object("usageMetadata") {
        let count = |key: &str| usage.count(key).unwrap_or_default();
        let cached = count("cachedContentTokenCount");
        found.usage = Some(Usage {
            input: count("promptTokenCount").saturating_sub(cached),
            output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
            cache_read: cached,
            total_tokens: usage.count("totalTokenCount"),
            ..Usage::default()
        });
    }
}

fn is_filled(part: &Object<'_>) -> bool {
    match part.has("text") {
        true => says(part, "text"),
        false => part.iter().any(|(key, _)| key != "thoughtSignature" && key != "thought"),
    }
}
