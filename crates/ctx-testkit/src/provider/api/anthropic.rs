//! Anthropic messages.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::super::script::Finish;
use super::super::speech::{Event, Speech, arguments, object_arguments};

fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => "refusal",
        Finish::WindowFull => "model_context_window_exceeded",
    }
}

/// Tokens read from the cache are not included in the input tokens.
fn usage(usage: &Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": output,
    })
}

fn signature(speech: &Speech) -> &str {
    speech.signature.as_deref().unwrap_or("fake")
}

fn blocks(speech: &Speech) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !speech.thinking.is_empty() {
        let thinking = &speech.thinking;
        blocks.push(
            json!({ "type": "thinking", "thinking": thinking, "signature": signature(speech) }),
        );
    }
    if !speech.text.is_empty() {
        blocks.push(json!({ "type": "text", "text": speech.text }));
    }
    for (n, call) in speech.calls.iter().enumerate() {
        let id = format!("toolu_{}_{n}", speech.number);
        let block = json!({ "type": "tool_use", "id": id, "name": call.name, "input": object_arguments(call) });
        blocks.push(block);
    }
    blocks
}

/// Returns the answer as one object. An empty answer has no blocks.
pub(in super::super) fn whole(speech: &Speech) -> Value {
    let mut whole = json!({
        "id": format!("msg_fake_{}", speech.number),
        "type": "message",
        "role": "assistant",
        "model": speech.model,
        "content": blocks(speech),
        "stop_reason": stop_reason(speech.finish),
        "stop_sequence": null,
    });
    if let Some(reported) = &speech.usage {
        whole["usage"] = usage(reported, reported.output);
    }
    whole
}

/// Returns the answer as a stream.
pub(in super::super) fn events(speech: &Speech) -> Vec<Event> {
    let mut start = whole(speech);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    if let Some(reported) = &speech.usage {
        start["usage"] = usage(reported, 1);
    }
    let mut events = vec![
        Event::named("message_start", &json!({ "type": "message_start", "message": start })),
        Event::named("ping", &json!({ "type": "ping" })),
    ];
    let mut calls = speech.calls.iter();
    for (index, mut block) in blocks(speech).into_iter().enumerate() {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let (key, delta, text) = match kind.as_str() {
            "text" => ("text", "text_delta", speech.text.clone()),
            "thinking" => ("thinking", "thinking_delta", speech.thinking.clone()),
            _ => (
                "partial_json",
                "input_json_delta",
                calls.next().map(arguments).unwrap_or_default(),
            ),
        };
        match kind.as_str() {
            "tool_use" => block["input"] = json!({}),
            _ => block[key] = json!(""),
        }
        if kind == "thinking" {
            block["signature"] = json!("");
        }
        let start =
            json!({ "type": "content_block_start", "index": index, "content_block": block });
        events.push(Event::named("content_block_start", &start));
        let on = |delta: Value| {
            let data = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            Event::named("content_block_delta", &data)
        };
        for piece in Speech::deltas(&text) {
            let event = on(json!({ "type": delta, key: piece }));
            events.push(if kind == "text" { event.text() } else { event });
        }
        if kind == "thinking" {
            events.push(on(json!({ "type": "signature_delta", "signature": signature(speech) })));
        }
        let stop = json!({ "type": "content_block_stop", "index": index });
        events.push(Event::named("content_block_stop", &stop));
    }
    let stop = json!({ "stop_reason": stop_reason(speech.finish), "stop_sequence": null });
    let mut end = json!({ "type": "message_delta", "delta": stop });
    if let Some(reported) = &speech.usage {
        end["usage"] = usage(reported, reported.output);
    }
    events.push(Event::named("message_delta", &end));
    events.push(Event::named("message_stop", &json!({ "type": "message_stop" })));
    events
}
