//! Anthropic Messages.

use ctx_core::{RawJson, Usage};
use ctx_dialect::json::{ObjectWriter, array};
use ctx_dialect::{anthropic, tools};
use serde_json::Value;

use super::Stop;
use super::answer_reader::{AnswerReader, is_error};
use super::quirks::Quirks;
use super::request::ModelRequest;
use crate::overflow::as_number;

pub(super) fn body(request: &ModelRequest<'_>) -> String {
    // The content before a cache mark is cached for the next request: the system prompt, the tools,
    // and everything up to the newest user message.
    let marked = request.is_conversation && !request.quirks.has(Quirks::NO_CACHE_MARKS);
    let messages = request.with_system();
    let written = match marked {
        true => anthropic::write_cached(request.clean(&messages).iter().map(AsRef::as_ref)),
        false => anthropic::write(request.clean(&messages).iter().map(AsRef::as_ref)),
    };
    let fresh = ObjectWriter::new()
        .text("model", request.model)
        .plain("max_tokens", request.max_tokens_or_usual())
        .plain("stream", true);
    let system = written.system.map(|system| array([anthropic::system(&system, marked)]));
    fresh
        .raw_if("system", system)
        .raw_if("tools", request.tools(|specs| tools::for_anthropic(specs, marked)))
        .raw("messages", array(written.messages.iter().map(RawJson::as_str)))
        .end()
}

/// Reads one event of a stream.
pub(super) fn event(reader: &mut AnswerReader<'_>, event: &Value) {
    let key = event["index"].as_u64().unwrap_or_default();
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => {
            reader.take_id(&event["message"]["id"]);
            add_usage(reader, &event["message"]["usage"]);
        }
        "content_block_start" => block(reader, key, &event["content_block"]),
        "content_block_delta" => {
            let delta = &event["delta"];
            reader.push_text(key, &delta["text"]);
            reader.push_thinking(key, &delta["thinking"]);
            reader.parts.push_signature(key, delta["signature"].as_str().unwrap_or_default());
            reader.parts.push_arguments(key, delta["partial_json"].as_str().unwrap_or_default());
        }
        "message_delta" => {
            stop(reader, &event["delta"]["stop_reason"]);
            add_usage(reader, &event["usage"]);
        }
        "message_stop" => reader.done = true,
        _ if is_error(event) => reader.failed = Some(event.clone()),
        _ => {}
    }
}

/// Reads an answer that was not streamed.
pub(super) fn whole(reader: &mut AnswerReader<'_>, answer: &Value) {
    let Some(blocks) = answer["content"].as_array() else { return };
    reader.take_id(&answer["id"]);
    for (key, value) in (0..).zip(blocks) {
        block(reader, key, value);
    }
    stop(reader, &answer["stop_reason"]);
    add_usage(reader, &answer["usage"]);
    reader.done = true;
}

/// Reads the beginning of a block, or a whole block.
fn block(reader: &mut AnswerReader<'_>, key: u64, block: &Value) {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match text("type") {
        "tool_use" => {
            reader.parts.begin_call(key, text("id"), text("name"));
            // A stream starts with `{}`; the arguments follow as text.
            if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                reader.parts.push_arguments(key, &block["input"].to_string());
            }
        }
        "thinking" => {
            reader.push_thinking(key, &block["thinking"]);
            reader.parts.push_signature(key, text("signature"));
        }
        "redacted_thinking" => reader.parts.push_opaque(key, block.to_string()),
        _ => reader.push_text(key, &block["text"]),
    }
}

fn stop(reader: &mut AnswerReader<'_>, reason: &Value) {
    if let Some(reason) = reason.as_str() {
        reader.stop = Some(match reason {
            "max_tokens" => Stop::Length,
            "model_context_window_exceeded" => Stop::Window,
            "refusal" => Stop::Filtered,
            _ => Stop::End,
        });
    }
}

/// Adds a report of usage. There are two: the first for the prompt, the second for the answer.
/// Later counts replace earlier ones; fields that the second report omits keep their values.
fn add_usage(reader: &mut AnswerReader<'_>, usage: &Value) {
    if !usage.is_object() {
        return;
    }
    let known = reader.usage.get_or_insert_with(Usage::default);
    let hour = &usage["cache_creation"]["ephemeral_1h_input_tokens"];
    let parts = [
        (&mut known.input, &usage["input_tokens"]),
        (&mut known.output, &usage["output_tokens"]),
        (&mut known.cache_read, &usage["cache_read_input_tokens"]),
        (&mut known.cache_write, &usage["cache_creation_input_tokens"]),
        (&mut known.cache_write_hour, hour),
    ];
    for (count, value) in parts {
        if let Some(number) = as_number(value) {
            *count = number;
        }
    }
}
