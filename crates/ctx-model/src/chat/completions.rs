//! OpenAI chat completions.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::reading::{Reading, is_error};
use super::{Asking, Quirks, Stop};
use crate::overflow::as_number;

pub(super) fn body(asking: &Asking<'_>) -> Value {
    let mut messages = Vec::with_capacity(2);
    if !asking.system.is_empty() {
        messages.push(json!({ "role": "system", "content": asking.system }));
    }
    messages.push(json!({ "role": "user", "content": asking.prompt }));
    let mut body = json!({ "model": asking.model, "messages": messages, "stream": true });
    // OpenAI's newer models refuse `max_tokens`; most others know nothing else.
    let new = asking.is_openai != asking.quirks.has(Quirks::OTHER_LIMIT_FIELD);
    body[if new { "max_completion_tokens" } else { "max_tokens" }] = asking.max_tokens.into();
    if !asking.quirks.has(Quirks::NO_STREAM_OPTIONS) {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if asking.think_little && !asking.quirks.has(Quirks::NO_EFFORT) {
        body["reasoning_effort"] = "low".into();
    }
    body
}

/// One chunk of a stream.
pub(super) fn event(reading: &mut Reading, chunk: &Value) {
    if is_error(chunk) {
        reading.failed = Some(chunk.clone());
        return;
    }
    choice(reading, &chunk["choices"][0], "delta");
    reading.take_usage(&chunk["usage"], usage);
}

/// An answer that was not streamed.
pub(super) fn whole(reading: &mut Reading, answer: &Value) {
    if !answer["choices"][0].is_object() {
        return;
    }
    choice(reading, &answer["choices"][0], "message");
    reading.take_usage(&answer["usage"], usage);
    reading.done = true;
}

fn choice(reading: &mut Reading, choice: &Value, part: &str) {
    let said = &choice[part];
    match &said["content"] {
        // Mistral's thinking models answer in parts; of these only the text counts.
        Value::Array(parts) => parts.iter().for_each(|part| reading.push(&part["text"])),
        text => reading.push(text),
    }
    reading.push(&said["refusal"]);
    if let Some(reason) = choice["finish_reason"].as_str() {
        reading.stop = Some(match reason {
            "length" | "max_tokens" => Stop::Length,
            "model_context_window_exceeded" => Stop::Window,
            "content_filter" | "sensitive" => Stop::Filtered,
            "error" | "network_error" => {
                // The answer failed on the provider's side, which some say by the reason alone.
                reading.failed = Some(json!({ "error": { "message": reason, "code": 502 } }));
                return;
            }
            _ => Stop::End,
        });
    }
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| as_number(value).unwrap_or_default();
    let details = &usage["prompt_tokens_details"];
    let cached = count(&details["cached_tokens"]).max(count(&usage["prompt_cache_hit_tokens"]));
    let written = count(&details["cache_write_tokens"]);
    Usage {
        input: count(&usage["prompt_tokens"]).saturating_sub(cached).saturating_sub(written),
        output: count(&usage["completion_tokens"]),
        cache_read: cached,
        cache_write: written,
        total_tokens: as_number(&usage["total_tokens"]),
    }
}
