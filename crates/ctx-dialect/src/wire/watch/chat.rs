//! OpenAI Chat Completions.

use ctx_core::Usage;

use super::{AnswerFindings, says};
use crate::json::{Object, elements, string};
use crate::openai_chat::REASONING;

/// Reads an answer that was not streamed, or an object of Ollama's stream.
pub(super) fn whole(found: &mut AnswerFindings, answer: &Object<'_>) {
    choices(found, answer, "message");
    found.finished = found.finished || answer.has("choices") || answer.is_true("done");
    // Ollama's own API.
    if let Some(message) = answer.object("message") {
        found.content_if(is_filled(&message) || says(&message, "thinking"));
        found.finish(answer.owned("done_reason"));
        let count = |key| answer.count(key);
        if let Some(input) = count("prompt_eval_count") {
            let output = count("eval_count").unwrap_or_default();
            found.usage = Some(Usage { input, output, ..Usage::default() });
        }
    }
}

/// Reads a chunk of a stream.
pub(super) fn chunk(found: &mut AnswerFindings, chunk: &Object<'_>) {
    choices(found, chunk, "delta");
}

fn choices(found: &mut AnswerFindings, answer: &Object<'_>, part: &str) {
    for choice in answer.array("choices").unwrap_or_default() {
        let Some(choice) = Object::of(choice) else { continue };
        if let Some(message) = choice.object(part) {
            found.content_if(is_filled(&message));
        }
        found.content_if(says(&choice, "text"));
        found.finish(choice.owned("finish_reason"));
    }
    found.report(answer);
}

fn is_filled(message: &Object<'_>) -> bool {
    let content = message.get("content").is_some_and(|raw| match string(raw) {
        Some(text) => !text.is_empty(),
        None => elements(raw).is_some_and(|parts| !parts.is_empty()),
    });
    let calls = message.array("tool_calls").is_some_and(|calls| !calls.is_empty());
    content
        || calls
        || message.has("function_call") && message.get("function_call").is_some()
        || says(message, "refusal")
        || REASONING.iter().any(|key| says(message, key))
        || message.array("reasoning_details").is_some_and(|all| !all.is_empty())
        || message.object("audio").is_some()
}
