//! Amazon Bedrock: requests in its own form, and frames of its streams.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctx_core::{Block, Message, Role};
use ctx_dialect::wire::{AnswerState, OutgoingUnit, Protocol, Watch, answer_text};
use serde_json::{Value, json};

use super::{all_unchanged, parse};

fn body() -> Value {
    let thought =
        json!({ "reasoningContent": { "reasoningText": { "text": "t", "signature": "s" } } });
    let call = json!({ "toolUse": { "toolUseId": "a", "name": "read", "input": { "p": 1 } } });
    let image = json!({ "image": { "format": "png", "source": { "bytes": "aGk=" } } });
    let content = json!([{ "text": "long text" }, { "json": { "x": 1 } }, image]);
    let result = json!({ "toolResult": { "toolUseId": "a", "content": content } });
    json!({
        "system": [{ "text": "be kind" }, { "cachePoint": { "type": "default" } }],
        "inferenceConfig": { "maxTokens": 7 },
        "toolConfig": { "tools": [{ "toolSpec": { "name": "read" } }] },
        "additionalModelRequestFields": { "thinking": { "type": "enabled" } },
        "messages": [
            { "role": "user", "content": [{ "text": "go" }] },
            { "role": "assistant", "content": [thought, call] },
            { "role": "user", "content": [result, { "cachePoint": { "type": "default" } }] },
            { "role": "assistant", "content": [{ "text": "done" }] },
        ],
    })
}

#[test]
fn a_request_of_converse_is_read() {
    let body = body().to_string();
    let request = parse("converse", &body);
    assert_eq!(request.model.as_deref(), Some("anthropic.claude-v1:0"));
    assert!(request.system.as_deref().unwrap().starts_with("be kind"));
    assert_eq!((request.max_tokens, request.streams), (Some(7), false));
    assert!(request.tools.unwrap().get().contains("toolSpec"));
    let units: Vec<_> = request.units.iter().map(|unit| unit.read()).collect();
    let roles: Vec<_> = units.iter().map(|unit| unit.role.name().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let call = units[1].tool_calls().next().unwrap();
    assert_eq!((&*call.id, &*call.name, call.arguments.as_str()), ("a", "read", r#"{"p":1}"#));
    assert!(matches!(&units[1].blocks[0], Block::Thinking { thinking, .. } if thinking == "t"));
    let result = units[2].tool_results().next().unwrap();
    assert_eq!((&*result.call_id, result.content.len()), ("a", 3));
    assert!(matches!(&result.content[2], Block::Image(image) if &*image.data == "aGk="));
    assert_eq!(request.with_history(&all_unchanged(&request), None).unwrap(), body);
}

#[test]
fn a_cut_history_of_converse_has_its_form() {
    let body = body().to_string();
    let request = parse("converse", &body);
    let mut call = (*request.units[1].read()).clone();
    call.blocks.remove(0);
    let mut result = (*request.units[2].read()).clone();
    if let Block::ToolResult(result) = &mut result.blocks[0] {
        result.content[0] = Block::text("short");
        result.is_error = true;
    }
    let summary = Message::text(Role::CompactionSummary, "they spoke");
    let put = |message, of| OutgoingUnit::Message { message, of };
    let out = [put(&summary, None), put(&call, Some(1)), put(&result, Some(2))];
    let sent: Value =
        serde_json::from_str(&request.with_history(&out, Some("more")).unwrap()).unwrap();
    let before: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(sent["system"][2], json!({ "text": "more" }));
    let [first, second, third] = &sent["messages"].as_array().unwrap()[..] else {
        panic!("{sent}");
    };
    assert!(first["content"][0]["text"].as_str().unwrap().contains("they spoke"), "{sent}");
    // Thinking stays with its calls.
    assert_eq!(second, &before["messages"][1]);
    let mut expected = before["messages"][2].clone();
    expected["content"][0]["toolResult"]["content"][0]["text"] = "short".into();
    expected["content"][0]["toolResult"]["status"] = "error".into();
    assert_eq!(third, &expected);
}

/// Returns a frame of an event stream; its checksums are not read.
fn frame(headers: &str, payload: &str) -> Vec<u8> {
    let length = |n: usize| u32::try_from(n).expect("small").to_be_bytes();
    let (all, head) = (length(16 + headers.len() + payload.len()), length(headers.len()));
    [&all, &head, &[0; 4][..], headers.as_bytes(), payload.as_bytes(), &[0xFF; 4]].concat()
}

fn watched(protocol: Protocol, answer: &[u8], size: usize) -> Watch {
    let mut watch = Watch::new(protocol);
    for piece in answer.chunks(size) {
        watch.push(piece);
    }
    watch.end();
    watch
}

#[test]
fn the_frames_of_a_stream_are_read() {
    let delta = json!({ "contentBlockIndex": 0, "delta": { "text": "Hi" } });
    let usage = json!({ "inputTokens": 8, "outputTokens": 2, "cacheReadInputTokens": 3 });
    let events = [
        json!({ "role": "assistant" }),
        delta,
        json!({ "stopReason": "end_turn" }),
        json!({ "usage": usage, "metrics": { "latencyMs": 1 } }),
    ];
    let converse = events.map(|event| frame(":event-type", &event.to_string())).concat();
    let events = [
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 8,
            "cache_read_input_tokens": 3 } } }),
        json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "Hi" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
            "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ];
    let wrapped = events.map(|event| {
        let bytes = json!({ "bytes": STANDARD.encode(event.to_string()), "p": "abc" });
        frame(":event-type", &bytes.to_string())
    });
    for (protocol, answer) in
        [(Protocol::Converse, converse), (Protocol::Messages, wrapped.concat())]
    {
        for size in [1, 7, 10_000] {
            let watch = watched(protocol, &answer, size);
            let usage = watch.usage().unwrap();
            assert_eq!((usage.prompt(), usage.cache_read, usage.output), (11, 3, 2), "{protocol}");
            assert_eq!((watch.state(), watch.is_finished()), (AnswerState::Content, true));
            assert_eq!(watch.finish_reason(), Some("end_turn"));
        }
        assert_eq!(answer_text(protocol, &answer), "Hi");
        let error = frame(":exception-type", r#"{"message":"Input is too long"}"#);
        let watch = watched(protocol, &error, 5);
        assert_eq!(watch.failure().unwrap().message.as_deref(), Some("Input is too long"));
    }
}

#[test]
fn a_whole_answer_of_converse_is_read() {
    let message = json!({ "role": "assistant", "content": [{ "text": "Hi" }] });
    let answer = json!({ "output": { "message": message }, "stopReason": "end_turn",
        "usage": { "inputTokens": 8, "outputTokens": 2, "totalTokens": 10 } });
    let watch = watched(Protocol::Converse, answer.to_string().as_bytes(), 9);
    assert_eq!((watch.state(), watch.usage().unwrap().prompt()), (AnswerState::Content, 8));
    assert!(watch.is_finished() && watch.finish_reason() == Some("end_turn"));
    assert_eq!(answer_text(Protocol::Converse, answer.to_string().as_bytes()), "Hi");
}

#[test]
fn damaged_frames_cause_no_panic() {
    let good = frame("h", "{}");
    for (at, byte) in (0..8).flat_map(|at| [0, 1, 2, 15, 16, 255].map(|byte| (at, byte))) {
        let mut damaged = [good.clone(), good.clone()].concat();
        damaged[at] = byte;
        assert_eq!(watched(Protocol::Converse, &damaged, 3).usage(), None);
    }
}
