//! Requests that continue a conversation stored at the provider.

use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

const MESSAGES: &str = "/v1/messages?beta=true";

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

fn result(id: &str) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "it rains" });
    json!({ "role": "user", "content": [result] })
}

fn threaded(thread: &Value, message: &Value) -> Value {
    json!({ "model": "m", "max_tokens": 64, "messages": [message], "thread": thread })
}

fn threads() -> [Value; 2] {
    let create = threaded(&json!({ "type": "create" }), &user("hi"));
    let continued = json!({ "type": "continue", "previous_message_id": "msg_1" });
    [create, threaded(&continued, &result("toolu_1"))]
}

#[tokio::test]
async fn a_tool_runner_is_asked_for_its_history() {
    let rig = Rig::new(provider(), Set::default()).await;
    let headers = [
        ("x-api-key", "k"),
        ("anthropic-beta", "message-threads-2026-08-12"),
        ("x-stainless-helper", "BetaToolRunner, message-thread"),
    ];
    for body in threads() {
        let got = rig.send(Method::POST, MESSAGES, &headers, body.to_string()).await;
        assert_eq!(got.status, 400, "{got:?}");
        let error = &got.json()["error"];
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["details"]["error_code"], "thread_unsupported_request", "{error}");
        assert_eq!(rig.provider.count(), 0);
    }
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "weather", "input": {} });
    let answer = json!({ "role": "assistant", "content": [call] });
    let body = json!({ "model": "m", "max_tokens": 64,
        "messages": [user("hi"), answer, result("toolu_1")] });
    let got = rig.send(Method::POST, MESSAGES, &headers, body.to_string()).await;
    assert_eq!((got.status, &*rig.last().body), (StatusCode::OK, body.to_string().as_bytes()));
}

#[tokio::test]
async fn a_thread_requested_by_a_program_passes_unchanged() {
    let rig = Rig::new(provider(), Set::default()).await;
    let headers = [("x-api-key", "k"), ("x-stainless-helper", "message-thread")];
    for body in threads() {
        let got = rig.send(Method::POST, MESSAGES, &headers, body.to_string()).await;
        assert_eq!((got.status, &*rig.last().body), (StatusCode::OK, body.to_string().as_bytes()));
    }
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.len() == 1 && warnings[0].contains("thread"), "{warnings:?}");
}

#[tokio::test]
async fn results_of_calls_missing_from_the_request_pass_unchanged() {
    let response = json!({ "name": "f", "response": { "output": "it rains" } });
    for (path, history) in [
        (MESSAGES, json!({ "messages": [result("a")] })),
        (
            "/v1/chat/completions",
            json!({ "messages": [user("hi"),
            json!({ "role": "tool", "tool_call_id": "a", "content": "it rains" })] }),
        ),
        (
            "/v1/responses",
            json!({ "input": [
            json!({ "type": "function_call_output", "call_id": "a", "output": "it rains" })] }),
        ),
        (
            "/v1beta/models/m:generateContent",
            json!({ "contents": [
            json!({ "role": "user", "parts": [{ "functionResponse": response }] })] }),
        ),
    ] {
        let rig = Rig::new(provider(), Set::default()).await;
        let body = Bytes::from(history.to_string());
        let got = rig.send(Method::POST, path, &[("x-api-key", "k")], body.clone()).await;
        assert_eq!((got.status, rig.last().body), (StatusCode::OK, body), "{path}");
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(
            warnings.len() == 1 && warnings[0].contains("passes unchanged"),
            "{path} {warnings:?}"
        );
    }
}

#[tokio::test]
async fn a_dropped_result_is_counted_and_reported() {
    let rig = Rig::new(provider(), Set::default()).await;
    let orphan = json!({ "role": "tool", "tool_call_id": "gone", "content": "x" });
    let answer = json!({ "role": "assistant", "content": "well" });
    assert_eq!(rig.chat(&[user("hi"), orphan, answer, user("and?")]).await.status, 200);
    assert_eq!(rig.last().json["messages"].as_array().unwrap().len(), 3);
    let warnings = rig.warnings.lock().unwrap().clone();
    let orphaned = warnings.iter().filter(|text| text.contains("orphaned_results"));
    assert_eq!(orphaned.count(), 1, "{warnings:?}");
    let metrics = rig.send(Method::GET, "/metrics", &[], "").await.body;
    assert!(metrics.contains("ctx_orphaned_results_total 1"), "{metrics}");
}

pub(super) const RESPONSES: &str = "/v1/responses";

/// Returns the body of a turn that continues a response, and its text.
pub(super) fn turn(n: usize, previous: Option<&Value>) -> Value {
    let text = format!("Rule {n}: never delete file{n}.txt. ") + &"Read on. ".repeat(700);
    let mut body = json!({ "model": "m", "input": [user(text)] });
    if let Some(id) = previous {
        body["previous_response_id"] = id.clone();
    }
    body
}

#[tokio::test]
async fn a_history_stored_at_the_provider_is_sent_cut_when_it_does_not_fit() {
    for streams in [false, true] {
        let rig = Rig::new(provider(), Set::default()).await;
        let mut previous: Option<Value> = None;
        let mut cut = 0;
        for n in 0..12 {
            let mut body = turn(n, previous.as_ref());
            body["stream"] = streams.into();
            let got = rig.post(RESPONSES, &body).await;
            assert_eq!(got.status, 200);
            let sent = rig.last().json;
            if sent != body {
                cut += 1;
                assert!(sent["previous_response_id"].is_null(), "{sent}");
                let text = sent["input"].to_string();
                assert!(text.contains("never delete file0.txt") && text.len() < 60_000, "{text}");
                assert_eq!(sent["input"].as_array().unwrap().last(), Some(&body["input"][0]));
            }
            previous = Some(match streams {
                false => got.json()["id"].clone(),
                true => {
                    let event = got.body.lines().find_map(|line| line.strip_prefix("data: "));
                    serde_json::from_str::<Value>(event.unwrap()).unwrap()["response"]["id"].take()
                }
            });
        }
        assert!((1..12).contains(&cut), "{cut} of 12 were cut");
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(!warnings.iter().any(|text| text.contains("unchanged")), "{warnings:?}");
        rig.end().await;
    }
}

#[tokio::test]
async fn a_refused_reference_is_replaced_by_the_history() {
    let respond = |request: &ctx_testkit::provider::Request| {
        let refers = request.json.to_string().contains("item_reference")
            || !request.json["previous_response_id"].is_null();
        if refers && request.number > 2 { Step::overflow() } else { Step::text("done") }
    };
    for (by_item, restarts) in [(false, false), (true, false), (false, true), (true, true)] {
        let provider = FakeProvider::builder().respond(respond).start().unwrap();
        let mut rig = Rig::new(provider, Set::default()).await;
        let first = rig.post(RESPONSES, &turn(0, None)).await.json();
        if restarts {
            let (home, provider) = rig.end().await;
            rig = Rig::at(home, provider, Set::default()).await;
        }
        let mut body = turn(1, None);
        if by_item {
            let item = json!({ "type": "item_reference", "id": first["output"][0]["id"] });
            body["input"] = json!([turn(0, None)["input"][0], item, body["input"][0]]);
        } else {
            body["previous_response_id"] = first["id"].clone();
        }
        for _ in 0..2 {
            assert_eq!(rig.post(RESPONSES, &body).await.status, 200);
        }
        assert_eq!(rig.provider.count(), 4, "{by_item}");
        let sent = rig.last().json["input"].to_string();
        assert!(sent.contains("file0.txt") && sent.contains("Rule 1"), "{sent}");
        rig.end().await;
    }
}

#[tokio::test]
async fn an_input_that_is_one_text_follows_the_history() {
    let respond = |request: &ctx_testkit::provider::Request| match request.number {
        2 => Step::overflow(),
        _ => Step::text("done"),
    };
    let provider = FakeProvider::builder().respond(respond).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    let first = rig.post(RESPONSES, &turn(0, None)).await.json();
    let body = json!({ "model": "m", "instructions": "Go on.", "input": "Go on.",
        "previous_response_id": first["id"] });
    assert_eq!(rig.post(RESPONSES, &body).await.status, 200);
    let sent = rig.last().json;
    assert_eq!(sent["instructions"], "Go on.");
    assert!(sent["previous_response_id"].is_null(), "{sent}");
    assert_eq!(sent["input"].as_array().unwrap().last(), Some(&user("Go on.")), "{sent}");
}

#[tokio::test]
async fn a_response_of_another_key_is_unknown() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = rig.post(RESPONSES, &turn(0, None)).await.json();
    let mut body = turn(1, Some(&first["id"]));
    body["input"][0]["content"] = "word ".repeat(20_000).into();
    let other = [("authorization", "Bearer other")];
    let got = rig.send(Method::POST, RESPONSES, &other, body.to_string()).await;
    assert_eq!((got.status.as_u16(), rig.last().json), (200, body));
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.iter().any(|text| text.contains("passes unchanged")), "{warnings:?}");
}

#[tokio::test]
async fn a_response_that_is_its_own_parent_is_unknown() {
    let whole = |n: usize| {
        let item = json!({ "type": "message", "id": format!("m{n}"), "role": "assistant",
            "content": [{ "type": "output_text", "text": "x" }] });
        json!({ "id": "loop", "object": "response", "status": "completed", "output": [item] })
    };
    let steps = (0..3).map(|n| Step::raw(200, "application/json", whole(n).to_string()));
    let provider = FakeProvider::builder().script(steps).start().unwrap();
    let rig = Rig::new(provider, Set::default()).await;
    for previous in [None, Some(&json!("loop")), Some(&json!("loop"))] {
        let body = turn(1, previous);
        assert_eq!(rig.post(RESPONSES, &body).await.status, 200);
        assert_eq!(rig.last().json, body);
    }
}
