//! Anthropic messages.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{Fresh, array};
use ctx_dialect::{anthropic, tools};
use serde_json::Value;

use super::Stop;
use super::asking::Asking;
use super::quirks::Quirks;
use super::reading::{Reading, is_error};
use crate::overflow::as_number;

pub(super) fn body(asking: &Asking<'_>) -> String {
    // What stands before a mark is kept, so that the next request finds it: the system prompt, the
    // tools, and all up to the newest message of the user.
    let marked = asking.is_conversation && !asking.quirks.has(Quirks::NO_CACHE_MARKS);
    let messages = asking.with_system();
    let written = match marked {
        true => anthropic::write_marked(asking.clean(&messages).iter().map(AsRef::as_ref)),
        false => anthropic::write(asking.clean(&messages).iter().map(AsRef::as_ref)),
    };
    let fresh = Fresh::new()
        .text("model", asking.model)
        .plain("max_tokens", asking.max_tokens_or_usual())
        .plain("stream", true);
    let fresh = match written.system {
        Some(system) => fresh.raw("system", array([anthropic::system(&system, marked)])),
        None => fresh,
    };
    let fresh = match asking.tools {
        [] => fresh,
        specs => fresh.raw("tools", tools::for_anthropic(specs, marked)),
    };
    fresh.raw("messages", array(written.messages.iter().map(RawJson::as_str))).end()
}

/// One event of a stream.
pub(super) fn event(reading: &mut Reading<'_>, event: &Value) {
    let key = event["index"].as_u64().unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => {
            reading.take_id(&event["message"]["id"]);
            add_usage(reading, &event["message"]["usage"]);
        }
        "content_block_start" => block(reading, key, &event["content_block"]),
        "content_block_delta" => {
            let delta = &event["delta"];
            reading.push_text(key, &delta["text"]);
            reading.push_thinking(key, &delta["thinking"]);
            reading.parts.push_signature(key, delta["signature"].as_str().unwrap_or_default());
            reading.parts.push_arguments(key, delta["partial_json"].as_str().unwrap_or_default());
        }
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
pub(super) fn whole(reading: &mut Reading<'_>, answer: &Value) {
    let Some(blocks) = answer["content"].as_array() else { return };
    reading.take_id(&answer["id"]);
    for (key, value) in (0..).zip(blocks) {
        block(reading, key, value);
    }
    stop(reading, &answer["stop_reason"]);
    add_usage(reading, &answer["usage"]);
    reading.done = true;
}

/// The beginning of a block, or all of it.
fn block(reading: &mut Reading<'_>, key: u64, block: &Value) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match text("type") {
        "tool_use" => {
            reading.parts.begin_call(key, text("id"), text("name"));
            // A stream begins with `{}`, and what follows comes as text.
            if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                reading.parts.push_arguments(key, &block["input"].to_string());
            }
        }
        "thinking" => {
            reading.push_thinking(key, &block["thinking"]);
            reading.parts.push_signature(key, text("signature"));
        }
        "redacted_thinking" => reading.parts.push_opaque(key, block.to_string()),
        _ => reading.push_text(key, &block["text"]),
    }
}

fn stop(reading: &mut Reading<'_>, reason: &Value) {
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
fn add_usage(reading: &mut Reading<'_>, usage: &Value) {
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
