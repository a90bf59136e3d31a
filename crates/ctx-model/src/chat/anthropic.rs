//! Anthropic messages.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::reading::{Reading, is_error};
use super::{Asking, Stop};
use crate::overflow::as_number;

pub(super) fn body(asking: &Asking<'_>) -> Value {
    let mut body = json!({
        "model": asking.model,
        "max_tokens": asking.max_tokens,
        "messages": [{ "role": "user", "content": asking.prompt }],
        "stream": true,
    });
    if !asking.system.is_empty() {
        body["system"] = asking.system.into();
    }
    body
}

/// One event of a stream.
pub(super) fn event(reading: &mut Reading, event: &Value) {
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => add_usage(reading, &event["message"]["usage"]),
        "content_block_start" => reading.push(&event["content_block"]["text"]),
        "content_block_delta" => reading.push(&event["delta"]["text"]),
        "message_delta" => {
            stop(reading, &event["delta"]["stop_reason"]);
            add_usage(reading, &event["usage"]);
        }
        "message_stop" => reading.done = true,
        _ if is_error(event) => reading.failed = Some(event.clone()),
        _ => {}
    }
}

/// An answer that was not streamed.
pub(super) fn whole(reading: &mut Reading, answer: &Value) {
    let Some(blocks) = answer["content"].as_array() else { return };
    for block in blocks {
        reading.push(&block["text"]);
    }
    stop(reading, &answer["stop_reason"]);
    add_usage(reading, &answer["usage"]);
    reading.done = true;
}

fn stop(reading: &mut Reading, reason: &Value) {
    if let Some(reason) = reason.as_str() {
        reading.stop = Some(match reason {
            "max_tokens" => Stop::Length,
            "model_context_window_exceeded" => Stop::Window,
            "refusal" => Stop::Filtered,
            _ => Stop::End,
        });
    }
}

/// Counts come twice, first those of the prompt, then those of the answer; the later ones are
/// whole, not added. What the second does not name stays as it was.
fn add_usage(reading: &mut Reading, usage: &Value) {
    if !usage.is_object() {
        return;
    }
    let known = reading.usage.get_or_insert_with(Usage::default);
    let parts = [
        (&mut known.input, "input_tokens"),
        (&mut known.output, "output_tokens"),
        (&mut known.cache_read, "cache_read_input_tokens"),
        (&mut known.cache_write, "cache_creation_input_tokens"),
    ];
    for (count, key) in parts {
        if let Some(number) = as_number(&usage[key]) {
            *count = number;
        }
    }
}
