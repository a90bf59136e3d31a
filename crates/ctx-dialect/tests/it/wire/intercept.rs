//! Calls of ctx's tools taken out of answers.

use ctx_dialect::wire::{
    Intercept, Protocol, Round, results, takes_tools, with_elements, with_tools,
};
use serde_json::{Value, json};

use super::{FAKED, parse};

const NAMES: &[&str] = &["lookup"];

/// Returns a stream of events with names where the API has them.
fn stream(protocol: Protocol, events: &[Value]) -> String {
    let is_named = matches!(protocol, Protocol::Messages | Protocol::Responses);
    let event = |event: &Value| match is_named {
        true => format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type")),
        false => format!("data: {event}\n\n"),
    };
    let end = if protocol == Protocol::Chat { "data: [DONE]\n\n" } else { "" };
    events.iter().map(event).collect::<String>() + end
}

/// Returns an answer with a text and, if there is a name, a call of that tool.
fn answer(protocol: Protocol, text: &str, call: Option<&str>) -> String {
    let mut events = Vec::new();
    match protocol {
        Protocol::Chat => {
            let delta = |delta: Value, end: Value| {
                json!({ "id": "c", "choices": [
                    { "index": 0, "delta": delta, "finish_reason": end }] })
            };
            events.push(delta(json!({ "role": "assistant", "content": text }), Value::Null));
            for arguments in call.iter().flat_map(|_| ["", "{\"id\":", "\"2a\"}"]) {
                let function = json!({ "name": call, "arguments": arguments });
                let part = json!({ "index": 0, "id": "call_1", "function": function });
                events.push(delta(json!({ "tool_calls": [part] }), Value::Null));
            }
            let end = if call.is_some() { "tool_calls" } else { "stop" };
            events.push(delta(json!({}), end.into()));
        }
        Protocol::Messages => {
            events.push(json!({ "type": "message_start", "message": { "id": "m" } }));
            let mut blocks = vec![(
                json!({ "type": "text", "text": "" }),
                json!({ "type": "text_delta", "text": text }),
            )];
            blocks.extend(call.map(|name| {
                (
                    json!({ "type": "tool_use", "id": "call_1", "name": name, "input": {} }),
                    json!({ "type": "input_json_delta", "partial_json": "{\"id\":\"2a\"}" }),
                )
            }));
            for (index, (block, delta)) in blocks.into_iter().enumerate() {
                let start = "content_block_start";
                events.push(json!({ "type": start, "index": index, "content_block": block }));
                let kind = "content_block_delta";
                events.push(json!({ "type": kind, "index": index, "delta": delta }));
                events.push(json!({ "type": "content_block_stop", "index": index }));
            }
            let end = if call.is_some() { "tool_use" } else { "end_turn" };
            events.push(json!({ "type": "message_delta", "delta": { "stop_reason": end } }));
            events.push(json!({ "type": "message_stop" }));
        }
        Protocol::Responses => {
            let mut items = vec![json!({ "type": "message", "id": "i", "role": "assistant",
                "content": [{ "type": "output_text", "text": text }] })];
            items.extend(call.map(|name| {
                json!({ "type": "function_call", "call_id": "call_1", "name": name,
                    "arguments": "{\"id\":\"2a\"}" })
            }));
            let response = |output: &[Value]| json!({ "id": "r", "output": output });
            events.push(json!({ "type": "response.created", "response": response(&[]) }));
            for (index, item) in items.iter().enumerate() {
                for kind in ["response.output_item.added", "response.output_item.done"] {
                    events.push(json!({ "type": kind, "output_index": index, "item": item }));
                }
            }
            events.push(json!({ "type": "response.completed", "response": response(&items) }));
            for (n, event) in events.iter_mut().enumerate() {
                event["sequence_number"] = n.into();
            }
        }
        Protocol::Converse => {}
        Protocol::Gemini => {
            let chunk = |parts: Value| json!({ "candidates": [{ "content": { "parts": parts } }] });
            events.push(chunk(json!([{ "text": text }])));
            if let Some(name) = call {
                let call = json!({ "id": "call_1", "name": name, "args": { "id": "2a" } });
                events.push(chunk(json!([{ "functionCall": call, "thoughtSignature": "s" }])));
            }
            let mut end = chunk(json!([]));
            end["candidates"][0]["finishReason"] = "STOP".into();
            events.push(end);
        }
    }
    stream(protocol, &events)
}

/// Reads an answer in pieces of `size` bytes.
fn read(intercept: &mut Intercept, answer: &str, size: usize) -> (String, Round) {
    let mut out = Vec::new();
    for piece in answer.as_bytes().chunks(size) {
        out.extend(intercept.push(piece));
    }
    let round = intercept.end_round();
    out.extend(&round.out);
    (String::from_utf8(out).expect("UTF-8"), round)
}

#[test]
fn an_answer_without_such_calls_passes_unchanged() {
    for protocol in FAKED {
        for call in [None, Some("read")] {
            let sent = answer(protocol, "caf\u{e9} \"a\"\n", call);
            for size in (1..64).chain([sent.len()]) {
                let (out, round) = read(&mut Intercept::new(protocol, NAMES), &sent, size);
                assert_eq!(out, sent, "{protocol} {size}");
                assert!(round.calls.is_empty() && round.postponed.is_none());
            }
        }
    }
}

#[test]
fn a_call_is_taken_out_and_the_next_answer_continues() {
    for protocol in FAKED {
        let mut expected = None;
        for size in [1, 7, 50, 100_000] {
            let mut intercept = Intercept::new(protocol, NAMES);
            let first = answer(protocol, "Wait.", Some("lookup"));
            let (begin, round) = read(&mut intercept, &first, size);
            assert_eq!(round.calls.len(), 1, "{protocol} {size}");
            assert_eq!(round.calls[0].arguments.as_str(), r#"{"id":"2a"}"#);
            for kept in ["call_1", "lookup", "2a", "Wait."] {
                assert!(round.answer.contains(kept), "{protocol}: {}", round.answer);
            }
            let (end, last) = read(&mut intercept, &answer(protocol, "Done.", None), size);
            assert!(last.calls.is_empty());
            let all = begin + &end;
            assert!(!all.contains("lookup") && all.contains("Wait.") && all.contains("Done."));
            assert_eq!(&all, expected.get_or_insert(all.clone()), "{protocol} {size}");
        }
    }
}

#[test]
fn a_call_beside_one_of_the_client_is_postponed() {
    // Only one of two parallel calls of Gemini is signed.
    let call = |name: &str| json!({ "functionCall": { "id": name, "name": name, "args": {} } });
    let mut own = call("lookup");
    own["thoughtSignature"] = "s".into();
    let chunk = |parts: &[Value]| json!({ "candidates": [{ "content": { "parts": parts } }] });
    let mut signed = call("read");
    // The signature is valid only at the call of ctx.
    signed["thoughtSignature"] = "skip_thought_signature_validator".into();

    let mut intercept = Intercept::new(Protocol::Gemini, NAMES);
    intercept.push(chunk(&[own.clone(), call("read")]).to_string().as_bytes());
    let round = intercept.end_round();
    assert_eq!(round.postponed.as_ref().map(|(id, calls)| (&**id, calls.len())), Some(("read", 1)));
    let out: Value = serde_json::from_slice(&round.out).unwrap();
    assert_eq!(out, chunk(&[signed.clone()]));

    // In a stream, each call is a chunk.
    let mut intercept = Intercept::new(Protocol::Gemini, NAMES);
    let chunks = [chunk(&[own]), chunk(&[call("read")]), chunk(&[call("write")])];
    let events = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    let out = [intercept.push(events.as_bytes()), intercept.end_round().out].concat();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(&chunk(&[signed]).to_string()), "{out}");
    assert!(out.contains(&chunk(&[call("write")]).to_string()), "{out}");
}

#[test]
fn damaged_answers_lose_nothing() {
    for protocol in FAKED {
        let sent = answer(protocol, "text", Some("lookup"));
        for end in 0..sent.len() {
            let Some(cut) = sent.get(..end) else { continue };
            let (out, _) = read(&mut Intercept::new(protocol, NAMES), cut, 9);
            assert!(out.contains("text") || !cut.contains("text\""), "{protocol} {end}: {out}");
        }
        for garbage in ["", "{", "[1,2]", "data: \n\n", "data: {\"type\":5}\n\n", "oops"] {
            let (out, round) = read(&mut Intercept::new(protocol, NAMES), garbage, 3);
            assert!(round.calls.is_empty() && out.len() <= garbage.len() + 8, "{out}");
        }
    }
}

#[test]
fn a_body_gets_tools_and_results_and_keeps_the_rest() {
    let specs = [ctx_core::ToolSpec {
        name: "lookup".into(),
        description: "Looks up.".into(),
        parameters: ctx_core::RawJson::from_text(r#"{"type":"object"}"#),
    }];
    for protocol in FAKED {
        let (history, tools) = match protocol {
            Protocol::Chat | Protocol::Messages | Protocol::Converse => {
                ("messages", r#"[{"name":"read"}]"#)
            }
            Protocol::Responses => ("input", r#"[{"name":"read"}]"#),
            Protocol::Gemini => ("contents", r#"[{"functionDeclarations":[{"name":"read"}]}]"#),
        };
        let body = format!(r#"{{"x": 1.50, "{history}": [ 7 ], "tools": {tools} }}"#);
        let takes = |tools: &str, names| {
            let body = format!(r#"{{"{history}": [], "tools": {tools} }}"#);
            takes_tools(&parse(protocol.name(), &body), names)
        };
        assert!(takes(tools, NAMES) && !takes(tools, &["read"]));
        let with = with_tools(protocol, &body, &specs).unwrap();
        assert!(with.contains("lookup") && with.starts_with(r#"{"x": 1.50, "#), "{with}");
        let call = ctx_core::ToolCall::new("c", "lookup", ctx_core::RawJson::from_text("{}"));
        let more = results(protocol, &[(call, "it says \"x\"".to_owned())]);
        let with: Value =
            serde_json::from_str(&with_elements(protocol, &with, &more).unwrap()).unwrap();
        let list = with[history].as_array().unwrap();
        assert!(list.len() == 2 && list[1].to_string().contains(r#"it says \"x\""#), "{with}");
        for none in ["[]", "5", "null"] {
            assert!(!takes(none, NAMES));
        }
        for none in ["{}", r#"{"tools":[]}"#, r#"{"tools":5}"#] {
            assert!(with_tools(protocol, none, &specs).is_none());
            assert!(with_elements(protocol, none, &more).is_none());
        }
    }
}

fn joined(protocol: Protocol, events: &[Value]) -> (String, Round) {
    read(&mut Intercept::new(protocol, NAMES), &stream(protocol, events), 100_000)
}

#[test]
fn text_beside_the_end_is_kept_when_the_answer_continues() {
    let chat = json!({ "id": "c", "choices": [{ "index": 0, "finish_reason": "tool_calls",
        "delta": { "role": "assistant", "content": "WAIT", "tool_calls": [
            { "index": 0, "id": "x", "function": { "name": "lookup", "arguments": "{}" } }] } }] });
    let call = json!({ "functionCall": { "name": "lookup", "args": {} } });
    let gemini = json!({ "candidates": [{ "finishReason": "STOP",
        "content": { "parts": [{ "text": "WAIT" }, call] } }] });
    for (protocol, event, end) in
        [(Protocol::Chat, chat, "tool_calls"), (Protocol::Gemini, gemini, "STOP")]
    {
        let mut intercept = Intercept::new(protocol, NAMES);
        let (first, round) = read(&mut intercept, &stream(protocol, &[event]), 50);
        assert_eq!(round.calls.len(), 1);
        assert!(first.contains("WAIT") && !first.contains(end), "{first}");
        let given_up = String::from_utf8(intercept.give_up()).unwrap();
        assert!(!given_up.contains("WAIT") && !given_up.contains("lookup"), "{given_up}");
    }
}

#[test]
fn calls_with_one_index_are_told_apart() {
    let delta = |id: &str, name: &str| {
        let call = json!({ "index": 0, "id": id, "extra": id,
            "function": { "name": name, "arguments": "{\"path\":1}" } });
        json!({ "choices": [{ "delta": { "tool_calls": [call] }, "finish_reason": null }] })
    };
    let end = json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] });
    for calls in [[("x1", "lookup"), ("x2", "read")], [("x2", "read"), ("x1", "lookup")]] {
        let events = [delta(calls[0].0, calls[0].1), delta(calls[1].0, calls[1].1), end.clone()];
        let (out, round) = joined(Protocol::Chat, &events);
        assert!(out.contains("read") && !out.contains("lookup"), "{out}");
        let (beside, own) = round.postponed.unwrap();
        assert_eq!((&*beside, own[0].arguments.as_str()), ("x2", "{\"path\":1}"));
    }
    // Unknown fields of a call, such as signatures, go back.
    let (_, round) = joined(Protocol::Chat, &[delta("x1", "lookup"), end]);
    assert!(round.answer.contains(r#""extra":"x1""#), "{}", round.answer);
}

#[test]
fn a_compaction_in_a_streamed_answer_goes_back_with_its_text() {
    let block = |index: usize, block: Value, delta: Value| {
        [
            json!({ "type": "content_block_start", "index": index, "content_block": block }),
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            json!({ "type": "content_block_stop", "index": index }),
        ]
    };
    let summary = json!({ "type": "compaction_delta", "content": "SUMMARY" });
    let torn = json!({ "type": "input_json_delta", "partial_json": "{\"id\":" });
    let call = json!({ "type": "tool_use", "id": "t", "name": "lookup", "input": {} });
    let mut events = vec![json!({ "type": "message_start", "message": {} })];
    events.extend(block(0, json!({ "type": "compaction", "content": null }), summary));
    events.extend(block(1, call, torn));
    let (_, round) = joined(Protocol::Messages, &events);
    assert_eq!(round.calls[0].arguments.as_str(), "{}");
    assert!(round.answer.contains(r#"{"type":"compaction","content":"SUMMARY"}"#), "{round:?}");
}

#[test]
fn the_end_is_not_held_if_there_is_no_such_call() {
    for protocol in FAKED {
        let sent = answer(protocol, "text", Some("read"));
        let mut intercept = Intercept::new(protocol, NAMES);
        assert_eq!(intercept.push(sent.as_bytes()), sent.as_bytes(), "{protocol}");
        assert!(intercept.end_round().out.is_empty(), "{protocol}");
    }
}
