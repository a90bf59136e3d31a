//! OpenAI chat completions.

use ctx_core::Usage;
use serde_json::{Value, json};

use super::super::CREATED;
use super::super::script::Finish;
use super::super::speech::{Event, Speech, arguments};

pub(in super::super) fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cache_read },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::WindowFull => "model_context_window_exceeded",
    }
}

fn call_id(speech: &Speech, n: usize) -> String {
    format!("call_{}_{n}", speech.number)
}

/// Returns the answer as one object.
pub(in super::super) fn whole(speech: &Speech) -> Value {
    let content = Some(&speech.text).filter(|text| !text.is_empty() || speech.calls.is_empty());
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !speech.thinking.is_empty() {
        message["reasoning_content"] = json!(speech.thinking);
    }
    if !speech.calls.is_empty() {
        let calls = speech.calls.iter().enumerate().map(|(n, call)| {
            let function = json!({ "name": call.name, "arguments": arguments(call) });
            json!({ "id": call_id(speech, n), "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    let choice = json!({
        "index": 0,
        "message": message,
        "logprobs": null,
        "finish_reason": finish_reason(speech.finish),
    });
    let mut whole = json!({
        "id": format!("chatcmpl-fake-{}", speech.number),
        "object": "chat.completion",
        "created": CREATED,
        "model": speech.model,
        "choices": [choice],
    });
    if let Some(reported) = &speech.usage {
        whole["usage"] = usage(reported);
    }
    whole
}

/// Returns the answer as a stream.
pub(in super::super) fn events(speech: &Speech) -> Vec<Event> {
    let chunk = |choices: Value| {
        json!({
            "id": format!("chatcmpl-fake-{}", speech.number),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": speech.model,
            "choices": choices,
        })
    };
    let delta = |delta: Value, finish: Option<&str>| {
        let choice =
            json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        Event::data(&chunk(json!([choice])))
    };
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }), None)];
    for piece in Speech::deltas(&speech.thinking) {
        events.push(delta(json!({ "reasoning_content": piece }), None));
    }
    for piece in Speech::deltas(&speech.text) {
        events.push(delta(json!({ "content": piece }), None).text());
    }
    for (n, call) in speech.calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        let id = call_id(speech, n);
        let first = json!({ "index": n, "id": id, "type": "function", "function": function });
        events.push(delta(json!({ "tool_calls": [first] }), None));
        for piece in Speech::deltas(&arguments(call)) {
            let part = json!({ "index": n, "function": { "arguments": piece } });
            events.push(delta(json!({ "tool_calls": [part] }), None));
        }
    }
    events.push(delta(json!({}), Some(finish_reason(speech.finish))));
    if let Some(reported) = speech.usage.as_ref().filter(|_| speech.include_usage) {
        let mut last = chunk(json!([]));
        last["usage"] = usage(reported);
        events.push(Event::data(&last));
    }
    events.push(Event { name: None, data: "[DONE]".to_owned(), is_text: false });
    events
}
