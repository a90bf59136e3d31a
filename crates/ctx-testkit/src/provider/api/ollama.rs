//! Ollama's own chat API: a stream is one JSON object per line.

use serde_json::{Value, json};

use super::super::script::{Call, Finish};
use super::super::speech::{Event, Speech, object_arguments};

const CREATED_AT: &str = "2026-01-05T08:00:00Z";

fn object(speech: &Speech, message: &Value) -> Value {
    json!({ "model": speech.model, "created_at": CREATED_AT, "message": message, "done": false })
}

fn call(call: &Call) -> Value {
    json!({ "function": { "name": call.name, "arguments": object_arguments(call) } })
}

fn message(speech: &Speech, text: &str) -> Value {
    let mut message = json!({ "role": "assistant", "content": text });
    if !speech.calls.is_empty() {
        message["tool_calls"] = speech.calls.iter().map(call).collect();
    }
    message
}

fn done(speech: &Speech, message: &Value) -> Value {
    let mut last = object(speech, message);
    let reason = if speech.finish == Finish::Length { "length" } else { "stop" };
    last["done"] = json!(true);
    last["done_reason"] = json!(reason);
    last["total_duration"] = json!(1_000_000);
    if let Some(usage) = &speech.usage {
        last["prompt_eval_count"] = json!(usage.prompt());
        last["eval_count"] = json!(usage.output);
    }
    last
}

/// Returns the answer as one object.
pub(in super::super) fn whole(speech: &Speech) -> Value {
    let mut whole = message(speech, &speech.text);
    if !speech.thinking.is_empty() {
        whole["thinking"] = json!(speech.thinking);
    }
    done(speech, &whole)
}

/// Returns the answer as a stream.
pub(in super::super) fn events(speech: &Speech) -> Vec<Event> {
    let mut events = Vec::new();
    for piece in Speech::deltas(&speech.thinking) {
        let message = json!({ "role": "assistant", "content": "", "thinking": piece });
        events.push(Event::data(&object(speech, &message)));
    }
    for piece in Speech::deltas(&speech.text) {
        let message = json!({ "role": "assistant", "content": piece });
        events.push(Event::data(&object(speech, &message)).text());
    }
    if !speech.calls.is_empty() {
        events.push(Event::data(&object(speech, &message(speech, ""))));
    }
    let nothing = json!({ "role": "assistant", "content": "" });
    events.push(Event::data(&done(speech, &nothing)));
    events
}
