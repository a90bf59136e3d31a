//! Input that must not reach a provider, and requests that no provider could answer.

use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

#[tokio::test]
async fn an_invalid_request_is_refused_in_the_protocol_of_the_client() {
    let rig = Rig::new(provider(), Set::default()).await;
    for (path, at) in [
        ("/v1/chat/completions", "/error/message"),
        ("/v1/responses", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/v1beta/models/m:generateContent", "/error/message"),
    ] {
        for body in [&b"{\"model\":\"m\",\"messages\":[{\"role\":\"us"[..], b"", b"\xff\xfe{}"] {
            let got = rig.send(Method::POST, path, &[], body.to_vec()).await;
            assert_eq!(got.status, 400, "{path} {got:?}");
            let json = got.json();
            assert!(json.pointer(at).and_then(Value::as_str).is_some_and(|t| !t.is_empty()));
        }
    }
    let got = rig.send(Method::POST, "/v1/messages", &[], "{").await;
    assert_eq!(got.json()["type"], "error");
    assert_eq!(rig.provider.count(), 0);
}

#[tokio::test]
async fn errors_that_the_provider_reports_itself_pass() {
    let rig = Rig::new(provider(), Set::default()).await;
    let bodies = ["{\"model\":\"m\"}", "{\"model\":\"m\",\"input\":5}", "[]"];
    for (n, body) in bodies.into_iter().enumerate() {
        rig.send(Method::POST, "/v1/responses", &[], body).await;
        assert_eq!((rig.provider.count(), &*rig.last().body), (n + 1, body.as_bytes()));
    }
    for method in [Method::CONNECT, Method::TRACE] {
        assert_eq!(rig.send(method, "/", &[], "").await.status, 405);
    }
    assert_eq!(rig.provider.count(), bodies.len());
}

#[tokio::test]
async fn a_client_that_asks_for_a_websocket_is_told_to_use_http() {
    let rig = Rig::new(provider(), Set::default()).await;
    // The handshake of Codex, and then its request over HTTP.
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("openai-beta", "responses_websockets=2026-02-06"),
    ];
    let got = rig.send(Method::GET, "/v1/responses", &upgrade, "").await;
    assert_eq!(got.status, 426, "{got:?}");
    assert_eq!(got.json()["error"]["type"], "invalid_request_error", "{got:?}");
    assert_eq!(rig.provider.count(), 0);
    let body = json!({ "model": "m", "input": "hi", "stream": true });
    assert_eq!(rig.post("/v1/responses", &body).await.status, 200);
}

#[tokio::test]
async fn refusals_of_ctx_have_the_form_of_each_api() {
    let config = "{ server: { summaries: 'extractive', maxBodyBytes: 10000 } }";
    let rig = Rig::new(provider(), Set { config, ..Set::default() }).await;
    type Headers = [(&'static str, &'static str)];
    let refusals: [(u16, &Headers, usize); 4] = [
        (401, &[("x-ctx-token", "wrong-token")], 2),
        (403, &[("origin", "http://elsewhere.example")], 2),
        (413, &[], 20_000),
        (426, &[("connection", "Upgrade"), ("upgrade", "websocket")], 2),
    ];
    for (path, message) in [
        ("/v1/chat/completions", "/error/message"),
        ("/v1/responses", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/v1beta/models/m:generateContent", "/error/message"),
        ("/api/chat", "/error"),
        ("/model/m/converse", "/message"),
        ("/model/m/invoke", "/message"),
    ] {
        for (status, headers, bytes) in refusals {
            let got = rig.send(Method::POST, path, headers, vec![b' '; bytes]).await;
            assert_eq!(got.status.as_u16(), status, "{path}");
            let json = got.json();
            assert!(json.pointer(message).is_some_and(Value::is_string), "{path} {json}");
            assert_eq!(json["type"] == "error", path == "/v1/messages", "{json}");
            let code = json.pointer("/error/code");
            assert_eq!(code == Some(&status.into()), path.starts_with("/v1beta"), "{json}");
        }
    }
    // Also of other requests.
    for (path, message) in [
        ("/v1/messages/count_tokens", "/error/message"),
        ("/v1beta/models/m:countTokens", "/error/message"),
        ("/api/generate", "/error"),
        ("/model/m/count-tokens", "/message"),
    ] {
        let got = rig.send(Method::POST, path, &[], vec![b' '; 20_000]).await;
        assert!(got.json().pointer(message).is_some_and(Value::is_string), "{path} {got:?}");
    }
    assert_eq!(rig.provider.count(), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_always_refused() {
    let config = "{ server: { summaries: 'extractive', maxBodyBytes: 10000 } }";
    let rig = Rig::new(provider(), Set { config, ..Set::default() }).await;
    let got = rig.chat(&[user("x".repeat(20_000))]).await;
    assert_eq!(got.status, 413, "{got:?}");
    assert!(got.json()["error"]["message"].as_str().unwrap().contains("--max-body"));
    let got = rig.send(Method::POST, "/v1/embeddings", &[], vec![b' '; 20_000]).await;
    assert_eq!(got.status, 413);
    // A smaller body is accepted.
    assert_eq!(rig.chat(&[user("x".repeat(5_000))]).await.status, 200);
    assert_eq!(rig.provider.count(), 1);
}

#[tokio::test]
async fn a_system_prompt_that_leaves_no_room_is_reported_with_sizes() {
    let rig = Rig::new(provider(), Set::default()).await;
    let body = json!({ "model": "m", "max_tokens": 100, "system": "very long ".repeat(20_000),
        "messages": [user("hi")] });
    let got = rig.post("/v1/messages", &body).await;
    assert_eq!(got.status, 400, "{got:?}");
    let text = got.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("window: 16000") && text.contains("--window 67008 "), "{text}");
    assert_eq!(rig.provider.count(), 0);
    assert!(!rig.warnings.lock().unwrap().iter().any(|text| text.contains("failed")));
    // The suggested window suffices.
    let rig = Rig::new(provider(), Set { window: Some(67_008), ..Set::default() }).await;
    let got = rig.post("/v1/messages", &body).await;
    assert_eq!(got.status, 200, "{got:?}");
}

#[tokio::test]
async fn the_answer_reserve_shrinks_for_tools() {
    let rig = Rig::new(provider(), Set::default()).await;
    let description = "what it does and how it is called ".repeat(1_140);
    let tools = json!([{ "type": "function",
        "function": { "name": "read", "description": description } }]);
    for rounds in [1, 20] {
        let body = json!({ "model": "m", "max_tokens": 8_000, "tools": tools,
            "messages": session(rounds, 600) });
        let got = rig.post("/v1/chat/completions", &body).await;
        assert_eq!(got.status, 200, "{got:?}");
        let asked = rig.last().prompt.tokens();
        assert!((9_500..=12_200).contains(&asked), "{asked} tokens, {rounds} rounds");
    }
    assert!(!rig.warnings.lock().unwrap().iter().any(|text| text.contains("failed")));
}

#[tokio::test]
async fn a_window_that_is_too_small_is_reported_with_sizes() {
    let rig = Rig::new(provider(), Set { window: Some(2_000), ..Set::default() }).await;
    let got = rig.chat(&[user("hi")]).await;
    assert_eq!(got.status, 400, "{got:?}");
    let text = got.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(text.contains("--window") && text.contains("2000"), "{text}");
    assert_eq!(rig.provider.count(), 0);
}

#[tokio::test]
async fn a_history_stored_at_the_provider_passes_with_one_warning() {
    let rig = Rig::new(provider(), Set::default()).await;
    let body = json!({ "model": "m", "input": "go on", "previous_response_id": "resp_1" });
    for _ in 0..3 {
        assert_eq!(rig.post("/v1/responses", &body).await.status, 200);
        assert_eq!(rig.last().body, body.to_string().as_bytes());
    }
    let warnings = rig.warnings.lock().unwrap().clone();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("previous_response_id"));
    assert!(rig.proxy.trace().sessions().is_empty());
}

#[tokio::test]
async fn the_number_of_open_requests_is_limited() {
    let held = FakeProvider::builder()
        .script([Step::text("one").held()])
        .respond(|_| Step::text("two"))
        .start()
        .unwrap();
    let config = "{ server: { summaries: 'extractive', maxRequests: 1 } }";
    let rig = Arc::new(Rig::new(held, Set { config, ..Set::default() }).await);
    let first = tokio::spawn({
        let rig = rig.clone();
        async move { rig.chat(&[user("hi")]).await }
    });
    rig.provider.arrived(1).await;
    let second = rig.chat(&[user("hi")]).await;
    assert_eq!(second.status, 503);
    assert_eq!(second.headers["retry-after"], "1");
    rig.provider.release();
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(rig.chat(&[user("hi")]).await.status, 200);
}

#[tokio::test]
async fn requests_of_one_conversation_do_not_wait_for_pending_answers() {
    let held = FakeProvider::builder()
        .script([Step::text("one").held()])
        .respond(|_| Step::text("two"))
        .start()
        .unwrap();
    let rig = Arc::new(Rig::new(held, Set::default()).await);
    let first = tokio::spawn({
        let rig = rig.clone();
        async move { rig.chat(&[user("hi")]).await }
    });
    rig.provider.arrived(1).await;
    assert!(rig.chat(&[user("hi")]).await.body.contains("two"));
    rig.provider.release();
    assert!(first.await.unwrap().body.contains("one"));
}

#[tokio::test]
async fn a_header_cannot_inject_another_header() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let rig = Rig::new(provider(), Set::default()).await;
    let address = rig.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-a: 1\rx-b: 2\r\n\
                content-length: 2\r\nconnection: close\r\n\r\n{}";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(rig.provider.count(), 0);
}

#[tokio::test]
async fn metrics_count_the_outcomes_of_requests() {
    let rig = Rig::new(provider(), Set::default()).await;
    rig.chat(&[user("hi")]).await;
    rig.send(Method::POST, "/v1/messages", &[], "{").await;
    rig.send(Method::GET, "/v1/models", &[], "").await;
    assert_eq!(rig.send(Method::GET, "/healthz", &[], "").await.body, "ok\n");
    let metrics = rig.send(Method::GET, "/metrics", &[], "").await.body;
    for line in [
        "ctx_requests_total{protocol=\"chat\",outcome=\"ok\"} 1",
        "ctx_requests_total{protocol=\"messages\",outcome=\"rejected\"} 1",
        "ctx_requests_total{protocol=\"other\",outcome=\"ok\"} 1",
        "ctx_conversations 1",
        "ctx_added_seconds_count 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

/// Returns a conversation with `count` calls in one message, without results.
fn many_calls(count: usize) -> Vec<Value> {
    let call = |n| {
        json!({ "id": format!("call_{n}"), "type": "function",
        "function": { "name": "read", "arguments": "{}" } })
    };
    let calls: Vec<Value> = (0..count).map(call).collect();
    let answer = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    vec![user("hi"), answer, user("go on")]
}

#[tokio::test]
async fn the_work_for_tool_calls_grows_linearly() {
    for count in [400, 800, 1_600] {
        let rig = Rig::new(provider(), Set::default()).await;
        assert_eq!(rig.chat(&many_calls(count)).await.status, 200);
        let record = rig.records().await.remove(0);
        let done: usize = record.actions.values().map(|n| *n as usize).sum();
        assert!(done + record.entries.len() <= 2 * count + 10, "{count}: {done}");
    }
}

#[tokio::test]
async fn a_history_larger_than_any_window_passes_unchanged() {
    let rig = Rig::new(provider(), Set::default()).await;
    let one = r#"{"role":"user","content":"x"}"#;
    let body = format!("{{\"model\":\"m\",\"messages\":[{}]}}", vec![one; 200_001].join(","));
    let path = "/v1/chat/completions";
    assert_eq!(rig.send(Method::POST, path, &[], body.clone()).await.status, 200);
    assert!(rig.last().body == body.as_bytes());
    assert!(rig.proxy.trace().sessions().is_empty(), "the request is not recorded");
    assert_eq!(rig.warnings.lock().unwrap().len(), 1);
}
