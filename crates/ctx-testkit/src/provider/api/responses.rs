//! OpenAI responses.

use serde_json::{Value, json};

use super::super::CREATED;
use super::super::script::Finish;
use super::super::speech::{Event, Speech, arguments};

fn status(finish: Finish) -> (&'static str, Value) {
    match finish {
        Finish::Stop | Finish::ToolCalls => ("completed", Value::Null),
        Finish::Length | Finish::WindowFull => {
            ("incomplete", json!({ "reason": "max_output_tokens" }))
        }
        Finish::ContentFilter => ("incomplete", json!({ "reason": "content_filter" })),
    }
}

fn output(speech: &Speech) -> Vec<Value> {
    let number = speech.number;
    let mut items = Vec::new();
    if !speech.thinking.is_empty() {
        let summary = json!([{ "type": "summary_text", "text": speech.thinking }]);
        let id = format!("rs_{number}");
        let mut item = json!({ "type": "reasoning", "id": id, "summary": summary });
        if speech.sealed {
            let sealed = speech.signature.clone();
            item["encrypted_content"] =
                json!(sealed.unwrap_or_else(|| format!("gAAAAA_fake_{number}")));
        }
        items.push(item);
    }
    if !speech.text.is_empty() || speech.calls.is_empty() {
        let part = json!({ "type": "output_text", "text": speech.text, "annotations": [], "logprobs": [] });
        items.push(json!({
            "type": "message",
            "id": format!("msg_{number}"),
            "status": status(speech.finish).0,
            "role": "assistant",
            "content": [part],
        }));
    }
    for (n, call) in speech.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call",
            "id": format!("fc_{number}_{n}"),
            "call_id": format!("call_{number}_{n}"),
            "name": call.name,
            "arguments": arguments(call),
            "status": "completed",
        }));
    }
    items
}

fn response(speech: &Speech, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_fake_{}", speech.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "model": speech.model,
        "output": output,
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": null,
    })
}

/// Returns the answer as one object.
pub(in super::super) fn whole(speech: &Speech) -> Value {
    let (status, details) = status(speech.finish);
    let mut whole = response(speech, status, &output(speech));
    whole["incomplete_details"] = details;
    if let Some(usage) = &speech.usage {
        whole["usage"] = json!({
            "input_tokens": usage.prompt(),
            "input_tokens_details": { "cached_tokens": usage.cache_read },
            "output_tokens": usage.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": usage.total(),
        });
    }
    whole
}

const TEXT_DELTA: &str = "response.output_text.delta";

/// Events with their sequence numbers.
#[derive(Default)]
struct Sequence(Vec<Event>);

impl Sequence {
    fn push(&mut self, name: &'static str, fields: Value) {
        self.0.push(numbered(name, self.0.len(), fields));
    }
}

fn numbered(name: &'static str, number: usize, fields: Value) -> Event {
    let mut data = json!({ "type": name, "sequence_number": number });
    if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
        data.extend(fields);
    }
    Event { is_text: name == TEXT_DELTA, ..Event::named(name, &data) }
}

/// Returns the answer as a stream.
pub(in super::super) fn events(speech: &Speech) -> Vec<Event> {
    let mut sequence = Sequence::default();
    let started = response(speech, "in_progress", &[]);
    sequence.push("response.created", json!({ "response": started }));
    sequence.push("response.in_progress", json!({ "response": started }));
    for (index, item) in output(speech).into_iter().enumerate() {
        let id = item["id"].clone();
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        let kind = item["type"].as_str().unwrap_or_default();
        let (key, nothing) = match kind {
            "message" => ("content", json!([])),
            "function_call" => ("arguments", json!("")),
            _ => ("summary", json!([])),
        };
        empty[key] = nothing;
        let added = json!({ "output_index": index, "item": empty });
        sequence.push("response.output_item.added", added);
        match kind {
            "message" => text(speech, &mut sequence, index, &id),
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                for piece in Speech::deltas(arguments) {
                    let delta = json!({ "item_id": id, "output_index": index, "delta": piece });
                    sequence.push("response.function_call_arguments.delta", delta);
                }
                let done = json!({ "item_id": id, "output_index": index, "arguments": arguments });
                sequence.push("response.function_call_arguments.done", done);
            }
            _ => summary(speech, &mut sequence, index, &id),
        }
        let done = json!({ "output_index": index, "item": item });
        sequence.push("response.output_item.done", done);
    }
    let name = match status(speech.finish).0 {
        "completed" => "response.completed",
        _ => "response.incomplete",
    };
    sequence.push(name, json!({ "response": whole(speech) }));
    sequence.0
}

/// Adds the place of a part to the fields of its event; `list` names the index in its item.
fn placed(mut fields: Value, id: &Value, index: usize, list: &str) -> Value {
    fields["item_id"] = id.clone();
    fields["output_index"] = json!(index);
    fields[list] = json!(0);
    fields
}

fn summary(speech: &Speech, sequence: &mut Sequence, index: usize, id: &Value) {
    let place = |fields: Value| placed(fields, id, index, "summary_index");
    let part = |text: &str| json!({ "type": "summary_text", "text": text });
    let added = place(json!({ "part": part("") }));
    sequence.push("response.reasoning_summary_part.added", added);
    for piece in Speech::deltas(&speech.thinking) {
        let delta = place(json!({ "delta": piece }));
        sequence.push("response.reasoning_summary_text.delta", delta);
    }
    let done = place(json!({ "text": speech.thinking }));
    sequence.push("response.reasoning_summary_text.done", done);
    let done = place(json!({ "part": part(&speech.thinking) }));
    sequence.push("response.reasoning_summary_part.done", done);
}

fn text(speech: &Speech, sequence: &mut Sequence, index: usize, id: &Value) {
    let place = |fields: Value| placed(fields, id, index, "content_index");
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    sequence.push("response.content_part.added", place(json!({ "part": part("") })));
    for piece in Speech::deltas(&speech.text) {
        let delta = place(json!({ "delta": piece, "logprobs": [] }));
        sequence.push(TEXT_DELTA, delta);
    }
    let done = place(json!({ "text": speech.text, "logprobs": [] }));
    sequence.push("response.output_text.done", done);
    sequence.push("response.content_part.done", place(json!({ "part": part(&speech.text) })));
}

/// Returns the last event of a stream that fails.
pub(in super::super) fn failed(speech: &Speech, error: &Value, number: usize) -> Event {
    let mut failed = response(speech, "failed", &[]);
    let of = |key: &str| error.pointer("/error").unwrap_or(error).get(key).cloned();
    let code = of("code").filter(|code| !code.is_null()).or_else(|| of("type"));
    failed["error"] = json!({ "code": code, "message": of("message") });
    numbered("response.failed", number, json!({ "response": failed }))
}
