//! Gemini: `generateContent`, streamed as events or as a list.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::super::script::{Call, Finish};
use super::super::speech::{Event, Speech, object_arguments};

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "STOP",
        Finish::Length | Finish::WindowFull => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
    }
}

fn usage(usage: &Usage) -> Value {
    let mut counts = json!({
        "promptTokenCount": usage.prompt(),
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.total(),
    });
    // Fields that are zero are omitted.
    if usage.cache_read > 0 {
        counts["cachedContentTokenCount"] = json!(usage.cache_read);
    }
    counts
}

fn call(speech: &Speech, n: usize, call: &Call) -> Value {
    let function = json!({ "name": call.name, "args": object_arguments(call) });
    let mut part = json!({ "functionCall": function });
    // The first call of an answer carries the signature of the thinking before it.
    if n == 0
        && let Some(signature) = &speech.signature
    {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn calls(speech: &Speech) -> Vec<Value> {
    speech.calls.iter().enumerate().map(|(n, one)| call(speech, n, one)).collect()
}

fn answer(speech: &Speech, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if is_last {
        candidate["finishReason"] = json!(finish_reason(speech.finish));
    }
    let mut answer = json!({
        "candidates": [candidate],
        "modelVersion": speech.model,
        "responseId": format!("fake_{}", speech.number),
    });
    if let Some(reported) = &speech.usage {
        answer["usageMetadata"] = usage(reported);
    }
    answer
}

/// Returns the answer as one object.
pub(in super::super) fn whole(speech: &Speech) -> Value {
    let mut parts = Vec::new();
    if !speech.thinking.is_empty() {
        parts.push(json!({ "text": speech.thinking, "thought": true }));
    }
    if !speech.text.is_empty() || speech.calls.is_empty() {
        parts.push(json!({ "text": speech.text }));
    }
    parts.extend(calls(speech));
    answer(speech, &parts, true)
}

/// Returns the answer as a stream.
pub(in super::super) fn events(speech: &Speech) -> Vec<Event> {
    let chunk = |part: Value| Event::data(&answer(speech, &[part], false));
    let mut events = Vec::new();
    for piece in Speech::deltas(&speech.thinking) {
        events.push(chunk(json!({ "text": piece, "thought": true })));
    }
    for piece in Speech::deltas(&speech.text) {
        events.push(chunk(json!({ "text": piece })).text());
    }
    let calls = calls(speech);
    let last = if calls.is_empty() { vec![json!({ "text": "" })] } else { calls };
    events.push(Event::data(&answer(speech, &last, true)));
    events
}
