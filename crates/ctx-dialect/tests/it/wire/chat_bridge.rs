//! The Responses API over chat completions.

use ctx_dialect::wire::{AnswerState, ChatRequest, Protocol, Watch, answer_text};
use serde_json::{Value, json};

fn chat_of(body: &Value) -> ChatRequest {
    ChatRequest::of(&body.to_string(), "a", 9).expect("a request for chat")
}

fn sent(body: &Value) -> Value {
    serde_json::from_str(&chat_of(body).body).expect("valid")
}

fn codex(more: &[Value]) -> Value {
    let mut input = vec![
        json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "Be brief." }] }),
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Go." }] }),
    ];
    input.extend_from_slice(more);
    json!({ "model": "m", "instructions": "You are Codex.", "stream": true, "store": false,
        "max_output_tokens": 50, "parallel_tool_calls": true, "tool_choice": "auto",
        "reasoning": { "effort": "low", "summary": "auto" }, "include": ["reasoning.encrypted_content"],
        "tools": [
            { "type": "function", "name": "exec", "description": "Runs.", "strict": false,
              "parameters": { "type": "object", "properties": { "cmd": { "type": "string" } } } },
            { "type": "custom", "name": "apply_patch", "description": "Patches.",
              "format": { "type": "grammar", "syntax": "lark", "definition": "start: x" } },
            { "type": "namespace", "name": "mcp__tiny", "tools": [
                { "type": "function", "name": "recall", "parameters": { "type": "object" } }] },
            { "type": "web_search" }],
        "input": input })
}

#[test]
fn a_request_of_codex_becomes_one_for_chat() {
    let reasoning = json!({ "type": "reasoning", "summary": [], "encrypted_content": "zz" });
    let call = |id: &str, more: Value| {
        let mut call = json!({ "type": "function_call", "call_id": id, "name": "exec", "arguments": "{\"cmd\":\"ls\"}" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    let output = |kind: &str, id: &str| json!({ "type": kind, "call_id": id, "output": "ok" });
    let out = sent(&codex(&[
        reasoning,
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Now." }] }),
        call("c1", json!({})),
        call("c2", json!({ "namespace": "mcp__tiny", "name": "recall" })),
        json!({ "type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": "*** Begin" }),
        output("function_call_output", "c1"),
        output("function_call_output", "c2"),
        output("custom_tool_call_output", "c3"),
    ]));
    let messages = out["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "tool"]);
    let system = messages[0]["content"].as_str().unwrap();
    assert!(system.contains("You are Codex.") && system.contains("Be brief."), "{system}");
    let calls = messages[2]["tool_calls"].as_array().unwrap();
    let names: Vec<_> = calls.iter().map(|call| &call["function"]["name"]).collect();
    assert_eq!(names, ["exec", "mcp__tiny__recall", "apply_patch"]);
    assert_eq!(calls[2]["function"]["arguments"], "{\"input\":\"*** Begin\"}");
    assert_eq!(
        (&messages[2]["content"], &messages[5]["tool_call_id"]),
        (&json!("Now."), &json!("c3"))
    );

    let tools = out["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["exec", "apply_patch", "mcp__tiny__recall"]);
    assert!(tools[1]["function"]["description"].as_str().unwrap().contains("start: x"));
    assert_eq!(tools[1]["function"]["parameters"]["required"], json!(["input"]));
    for (key, value) in [
        ("model", json!("m")),
        ("max_tokens", json!(50)),
        ("reasoning_effort", json!("low")),
        ("stream", json!(true)),
        ("stream_options", json!({ "include_usage": true })),
        ("store", json!(null)),
        ("include", json!(null)),
    ] {
        assert_eq!(out[key], value, "{key}");
    }
}

#[test]
fn a_text_input_a_format_and_a_forced_tool_have_equivalents() {
    let schema = json!({ "type": "object" });
    let out = sent(&json!({ "model": "m", "input": "Hi.",
        "text": { "format": { "type": "json_schema", "name": "x", "schema": schema, "strict": true } },
        "tools": [{ "type": "function", "name": "f", "parameters": schema }],
        "tool_choice": { "type": "function", "name": "f" } }));
    assert_eq!(out["messages"], json!([{ "role": "user", "content": "Hi." }]));
    assert_eq!(out["response_format"]["json_schema"]["schema"], schema);
    assert_eq!(out["tool_choice"]["function"]["name"], "f");
    for stored in [json!({ "previous_response_id": "r" }), json!({ "conversation": "c" })] {
        let mut body = json!({ "model": "m", "input": "Hi." });
        body.as_object_mut().unwrap().extend(stored.as_object().unwrap().clone());
        assert!(ChatRequest::of(&body.to_string(), "a", 9).is_none());
    }
    assert!(ChatRequest::of("{", "a", 9).is_none());
}

/// Returns the events of a converted stream that arrives in pieces of `size` bytes.
fn converted(chat: &mut ChatRequest, stream: &str, size: usize) -> String {
    let mut out = Vec::new();
    for piece in stream.as_bytes().chunks(size) {
        out.extend(chat.answer.push(piece));
    }
    out.extend(chat.answer.end());
    String::from_utf8(out).expect("valid")
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!(
        "data: {}\n\n",
        json!({ "id": "a", "object": "chat.completion.chunk", "choices": [choice] })
    )
}

fn whole_stream() -> String {
    let call = |index: usize, id: Option<&str>, name: &str, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] })
    };
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3,
        "prompt_tokens_details": { "cached_tokens": 2 } });
    [
        chunk(&json!({ "role": "assistant", "content": "" }), None),
        chunk(&json!({ "content": "One é" }), None),
        chunk(&json!({ "content": " two" }), None),
        chunk(&call(0, Some("c1"), "mcp__tiny__recall", "{\"q\""), None),
        chunk(&call(0, None, "", ":1}"), None),
        chunk(&call(1, Some("c2"), "apply_patch", "{\"input\":\"*** End\"}"), None),
        chunk(&json!({}), Some("tool_calls")),
        format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({ "id": "a", "choices": [], "usage": usage })
        ),
    ]
    .concat()
}

#[test]
fn a_stream_becomes_events_of_the_responses_api() {
    for size in [1, 7, 100_000] {
        let out = converted(&mut chat_of(&codex(&[])), &whole_stream(), size);
        let events: Vec<Value> = out
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let numbers: Vec<_> =
            events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let response = &events.last().unwrap()["response"];
        assert_eq!((&response["status"], &response["id"]), (&json!("completed"), &json!("resp_a")));
        let items = response["output"].as_array().unwrap();
        assert_eq!(items[0]["content"][0]["text"], "One é two");
        assert_eq!(items[1]["type"], "function_call");
        assert_eq!(
            (&items[1]["namespace"], &items[1]["name"]),
            (&json!("mcp__tiny"), &json!("recall"))
        );
        assert_eq!(
            (&items[1]["arguments"], &items[1]["call_id"]),
            (&json!("{\"q\":1}"), &json!("c1"))
        );
        assert_eq!(
            (&items[2]["type"], &items[2]["input"]),
            (&json!("custom_tool_call"), &json!("*** End"))
        );
        let done: Vec<_> =
            events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
        assert_eq!(
            done.iter().map(|event| &event["item"]).collect::<Vec<_>>(),
            items.iter().collect::<Vec<_>>()
        );
        assert_eq!(
            answer_text(Protocol::Responses, out.as_bytes()).matches("One é two").count(),
            1
        );
        let mut watch = Watch::new(Protocol::Responses);
        assert_eq!(watch.push(out.as_bytes()), AnswerState::Content);
        let usage = watch.usage().unwrap();
        assert!(
            watch.is_finished() && (usage.prompt(), usage.cache_read, usage.output) == (7, 2, 3)
        );
    }
}

#[test]
fn an_answer_that_is_not_streamed_becomes_one_object() {
    let mut body = codex(&[]);
    body["stream"] = json!(false);
    let message = json!({ "role": "assistant", "content": "Done." });
    let answer = json!({ "id": "a", "choices": [{ "message": message, "finish_reason": "length" }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3 } });
    let out = converted(&mut chat_of(&body), &answer.to_string(), 5);
    let response: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(response["output"][0]["content"][0]["text"], "Done.");
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(response["usage"]["total_tokens"], 10);
    let chunks =
        [chunk(&json!({ "content": "One" }), None), chunk(&json!({}), Some("content_filter"))];
    let out = converted(&mut chat_of(&codex(&[])), &chunks.concat(), 9);
    assert!(
        out.contains("response.incomplete") && out.contains(r#"{"reason":"content_filter"}"#),
        "{out}"
    );
}

#[test]
fn errors_and_broken_streams_do_not_become_complete_answers() {
    let error = json!({ "error": { "message": "too long", "code": "context_length_exceeded" } });
    for stream in
        [format!("data: {error}\n\n"), format!("event: error\ndata: {}\n\n", error["error"])]
    {
        let out = converted(&mut chat_of(&codex(&[])), &stream, 9);
        let created = out.find("response.created").expect("the first event");
        let failed = out.find("response.failed").expect("the last event");
        assert!(created < failed && out.contains("context_length_exceeded"), "{out}");
    }
    for broken in
        ["", "data: {", &whole_stream()[..400], "<html>", "data: [DONE]\n\n", "{\"detail\":1}"]
    {
        for streams in [true, false] {
            let mut body = codex(&[]);
            body["stream"] = json!(streams);
            let out = converted(&mut chat_of(&body), broken, 9);
            let says = if streams { "response.failed" } else { "{\"error\":" };
            assert!(out.contains(says) && !out.contains("completed"), "{broken} {out}");
        }
    }
}

#[test]
fn answers_of_careless_servers_are_read() {
    let call = |index: Value, id: Value, arguments: Value| {
        json!({ "tool_calls": [{ "index": index, "id": id,
            "function": { "name": "exec", "arguments": arguments } }] })
    };
    let calls = |deltas: &[Value]| {
        let end = "data: [DONE]\n\n".to_owned();
        let chunks = deltas.iter().map(|delta| chunk(delta, None)).chain([end]);
        let out = converted(&mut chat_of(&codex(&[])), &chunks.collect::<String>(), 64);
        let last = out.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["type"], "response.completed", "{out}");
        let items = last["response"]["output"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["arguments"].as_str().unwrap_or("-").to_owned())
            .collect::<Vec<_>>()
    };
    let (a, b) = (json!("{\"p\":1}"), json!("{\"p\":2}"));
    for index in [json!(0), json!(null)] {
        let both = [call(index.clone(), json!("a"), a.clone()), call(index, json!("b"), b.clone())];
        assert_eq!(calls(&both), ["{\"p\":1}", "{\"p\":2}"]);
    }
    let late = [call(json!(1), json!("a"), a), call(json!(4_000_000_000_u64), json!("b"), b)];
    assert_eq!(calls(&late), ["{\"p\":1}", "{\"p\":2}"]);
    assert_eq!(calls(&[call(json!(0), json!("a"), json!({ "p": 3 }))]), ["{\"p\":3}"]);
    assert_eq!(calls(&[json!({ "content": [{ "type": "text", "text": "Hi." }] })]), ["-"]);
    // Reasoning is left out, but the client sees that the server works.
    let mut chat = chat_of(&codex(&[]));
    chat.answer.push(chunk(&json!({ "role": "assistant", "content": "" }), None).as_bytes());
    let quiet = chat.answer.push(chunk(&json!({ "reasoning_content": "Hm." }), None).as_bytes());
    assert_eq!(quiet, b": keep-alive\n\n");
}
