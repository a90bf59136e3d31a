//! `context_management` for providers that do not know it.

use ctx_dialect::anthropic;
use ctx_dialect::wire::Protocol;
use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

#[tokio::test]
async fn a_refused_context_management_is_carried_out_by_ctx() {
    let refusal = r#"{"type":"error","error":{"type":"invalid_request_error","message":"context_management: Extra inputs are not permitted"}}"#;
    let provider = FakeProvider::builder().respond(move |request| {
        match request.json["context_management"].is_null() {
            true => Step::text("done"),
            false => Step::raw(400, "application/json", refusal),
        }
    });
    let rig = Rig::new(provider.start().unwrap(), Set::default()).await;
    let edit = json!({ "type": "clear_tool_uses_20250919", "keep": { "type": "tool_uses", "value": 0 },
        "trigger": { "type": "tool_uses", "value": 1 } });
    let mut messages = vec![user("Read.")];
    for n in 0..3 {
        let id = format!("t{n}");
        let call = json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "the text" });
        messages.push(json!({ "role": "assistant", "content": [call] }));
        messages.push(json!({ "role": "user", "content": [result] }));
        let body = json!({ "model": "m", "max_tokens": 9, "messages": messages,
            "context_management": { "edits": [edit] } });
        let got = rig.post("/v1/messages", &body).await;
        assert!(got.body.contains("done"), "{got:?}");
        let sent = rig.last().json;
        assert!(sent["context_management"].is_null(), "{sent}");
        let cleared = sent.to_string().matches("Old tool result content cleared").count();
        assert_eq!(cleared, if n == 0 { 0 } else { n + 1 });
    }
    assert_eq!(rig.provider.count(), 4, "it is refused once");
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.iter().any(|text| text.contains("context_management")), "{warnings:?}");
    assert_eq!(rig.records().await.len(), 3, "one conversation");
}

#[tokio::test]
async fn a_provider_that_knows_context_management_gets_it() {
    let provider = FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let body = json!({ "model": "m", "max_tokens": 9, "messages": [user("Hi.")],
        "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] } });
    rig.post("/v1/messages", &body).await;
    assert_eq!(rig.last().json, body);
}

/// A provider that refuses `context_management` and compactions, and answers with two blocks.
fn old_provider() -> FakeProvider {
    let refusal = r#"{"type":"error","error":{"type":"invalid_request_error","message":"context_management: Extra inputs are not permitted"}}"#;
    let provider = FakeProvider::builder().strict(true).respond(move |request| {
        match request.json["context_management"].is_null() {
            true => Step::text("done"),
            false => Step::raw(400, "application/json", refusal),
        }
    });
    provider.start().unwrap()
}

fn compacting(messages: &[Value], streams: bool, pauses: bool) -> Value {
    let trigger = json!({ "type": "input_tokens", "value": 3_000 });
    let edit = json!({ "type": "compact_20260112", "trigger": trigger,
        "pause_after_compaction": pauses });
    json!({ "model": "m", "max_tokens": 9, "messages": messages, "stream": streams,
        "context_management": { "edits": [edit] } })
}

/// Returns the content, the stop reason and `context_management` of an answer.
fn answer(got: &Got, streams: bool) -> (Vec<Value>, Value, Value) {
    if !streams {
        let body = got.json();
        let content = body["content"].as_array().unwrap().clone();
        return (content, body["stop_reason"].clone(), body["context_management"].clone());
    }
    let (mut content, mut stop, mut edits) = (Vec::new(), Value::Null, Value::Null);
    for data in got.body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], content.len(), "{}", got.body);
                content.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                assert_eq!(event["index"], content.len() - 1, "{}", got.body);
                let (last, delta) = (content.last_mut().unwrap(), &event["delta"]);
                for key in ["text", "content"].into_iter().filter(|key| !delta[key].is_null()) {
                    let before = last[key].as_str().unwrap_or_default();
                    last[key] = json!(format!("{before}{}", delta[key].as_str().unwrap()));
                }
            }
            "message_delta" => {
                stop = event["delta"]["stop_reason"].clone();
                edits = event["context_management"].clone();
            }
            _ => {}
        }
    }
    (content, stop, edits)
}

/// Returns `usage.iterations` at the end of an answer: their types, and whether all have input.
fn iterations(got: &Got) -> (Vec<String>, bool) {
    let last = got.body.rsplit("\"iterations\":").next().unwrap();
    let list = serde_json::Deserializer::from_str(last).into_iter::<Vec<Value>>().next();
    let list = list.unwrap().unwrap_or_else(|error| panic!("{error}: {}", got.body));
    let kinds = list.iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect();
    (kinds, list.iter().all(|one| one["input_tokens"].as_u64().is_some_and(|n| n > 0)))
}

#[tokio::test]
async fn a_refused_compaction_is_made_by_ctx_and_comes_back_as_a_block() {
    for streams in [false, true] {
        let rig = Rig::new(old_provider(), Set::default()).await;
        let mut messages = vec![user("Always answer in French. Rename /src/river.rs.")];
        for n in 0..3 {
            let text = format!("River {n} has many houses. ").repeat(200);
            messages.push(json!({ "role": "assistant", "content": text }));
            messages.push(user(format!("Now step {n}.")));
        }
        let got = rig.post("/v1/messages", &compacting(&messages, streams, false)).await;
        let (content, stop, edits) = answer(&got, streams);
        assert_eq!(content[0]["type"], "compaction", "{}", got.body);
        assert!(content[0]["content"].as_str().unwrap().contains("/src/river.rs"), "{}", got.body);
        assert_eq!((&content[1]["text"], content.len()), (&json!("done"), 2), "{}", got.body);
        assert_eq!((stop, edits), (json!("end_turn"), json!({ "applied_edits": [] })));
        let used = (vec!["compaction".to_owned(), "message".to_owned()], true);
        assert_eq!(iterations(&got), used, "{}", got.body);
        let sent = rig.last().json;
        assert_eq!(sent["messages"].as_array().unwrap().len(), 1, "{sent}");
        assert!(sent.to_string().contains("Always answer in French"), "{sent}");

        // The client sends the block with the history, or without what stands before it.
        let asked = rig.provider.count();
        let block = json!({ "role": "assistant", "content": content });
        let next = [user("And step 3?")];
        for history in [[messages.clone(), vec![block.clone()]].concat(), vec![block]] {
            let body = compacting(&[&history[..], &next].concat(), streams, false);
            let got = rig.post("/v1/messages", &body).await;
            assert_eq!(answer(&got, streams).0.len(), 1, "it is small now: {}", got.body);
            let sent = rig.last().json;
            assert_eq!(sent["messages"].as_array().unwrap().len(), 3, "{sent}");
            assert!(sent.to_string().contains("Always answer in French"), "{sent}");
            assert!(!sent.to_string().contains("\"compaction\""), "{sent}");
        }
        assert_eq!(rig.provider.count(), asked + 2);
    }
}

#[tokio::test]
async fn a_client_that_pauses_gets_the_summary_alone() {
    for streams in [false, true] {
        let rig = Rig::new(old_provider(), Set::default()).await;
        let text = "River has many houses in /src/river.rs. ".repeat(500);
        let messages =
            [user("Rename it."), json!({ "role": "assistant", "content": text }), user("Now.")];
        let got = rig.post("/v1/messages", &compacting(&messages, streams, true)).await;
        let (content, stop, _) = answer(&got, streams);
        assert_eq!((content.len(), stop), (1, json!("compaction")), "{}", got.body);
        assert_eq!(iterations(&got), (vec!["compaction".to_owned()], true), "{}", got.body);
        assert!(content[0]["content"].as_str().unwrap().contains("/src/river.rs"), "{}", got.body);
        assert_eq!(rig.provider.count(), 1, "only the refused request");

        // What it replaced is saved, and the model can read it.
        let saved = SavedCompactions::of(&Home::at(rig.home.path()));
        let ids = saved.ids();
        let [id] = &ids[..] else { panic!("{ids:?}") };
        assert_eq!(saved.get(id).unwrap().protocol, Some(Protocol::Messages));
        let parse = |message: &Value| anthropic::parse(&message.to_string()).unwrap();
        let entries = saved.restore(id).unwrap().entries();
        let read: Vec<_> =
            entries.iter().map(|entry| (*entry.message().unwrap()).clone()).collect();
        assert_eq!(read, messages.iter().map(parse).collect::<Vec<_>>());
        let next = [json!({ "role": "assistant", "content": content }), user("Go on.")];
        let mut body = compacting(&next, streams, true);
        body["tools"] = json!([{ "name": "read", "input_schema": { "type": "object" } }]);
        rig.post("/v1/messages", &body).await;
        let sent = rig.last().json.to_string();
        assert!(sent.contains("ctx_recall") && sent.contains("were compacted"), "{sent}");
    }
}
