//! OpenAI responses.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::reading::{Reading, is_error};
use super::{Asking, Quirks, Stop};
use crate::overflow::as_number;

pub(super) fn body(asking: &Asking<'_>) -> Value {
    let content = json!([{ "type": "input_text", "text": asking.prompt }]);
    let mut body = json!({
        "model": asking.model,
        "input": [{ "type": "message", "role": "user", "content": content }],
        "max_output_tokens": asking.max_tokens,
        "stream": true,
        // A summary is nothing the provider has to keep.
        "store": false,
    });
    if !asking.system.is_empty() {
        body["instructions"] = asking.system.into();
    }
    if asking.think_little && !asking.quirks.has(Quirks::NO_EFFORT) {
        body["reasoning"] = json!({ "effort": "low" });
    }
    body
}

/// One event of a stream.
pub(super) fn event(reading: &mut Reading, event: &Value) {
    match event["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" => reading.push(&event["delta"]),
        "response.completed" | "response.incomplete" | "response.done" => {
            end(reading, &event["response"]);
        }
        "response.failed" => reading.failed = Some(event["response"].clone()),
        _ if is_error(event) => reading.failed = Some(event.clone()),
        _ => {}
    }
}

/// An answer that was not streamed.
pub(super) fn whole(reading: &mut Reading, answer: &Value) {
    if answer["status"] == "failed" {
        reading.failed = Some(answer.clone());
    } else if answer["output"].is_array() {
        end(reading, answer);
    }
}

fn end(reading: &mut Reading, response: &Value) {
    if reading.text.is_empty() {
        let items = response["output"].as_array().into_iter().flatten();
        for part in items.filter_map(|item| item["content"].as_array()).flatten() {
            if part["type"] == "output_text" {
                reading.push(&part["text"]);
            }
            reading.push(&part["refusal"]);
        }
    }
    reading.take_usage(&response["usage"], usage);
    let reason = response["incomplete_details"]["reason"].as_str();
    reading.stop = Some(match reason {
        Some("max_output_tokens" | "max_tokens") => Stop::Length,
        Some("content_filter") => Stop::Filtered,
        Some(_) => Stop::Length,
        None if response["status"] == "incomplete" => Stop::Length,
        None => Stop::End,
    });
    reading.done = true;
}

fn usage(usage: &Value) -> Usage {
    let count = |value: &Value| as_number(value).unwrap_or_default();
    let cached = count(&usage["input_tokens_details"]["cached_tokens"]);
    Usage {
        input: count(&usage["input_tokens"]).saturating_sub(cached),
        output: count(&usage["output_tokens"]),
        cache_read: cached,
        cache_write: 0,
        total_tokens: as_number(&usage["total_tokens"]),
    }
}
