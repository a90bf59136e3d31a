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
