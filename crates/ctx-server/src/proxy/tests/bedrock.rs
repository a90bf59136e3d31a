//! Amazon Bedrock, with a small server in its place.

use std::collections::HashSet;

use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctx_testkit::provider::FakeProvider;

use super::*;

const MODEL: &str = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0";
const BEARER: [(&str, &str); 1] = [("authorization", "Bearer k")];
const OPERATIONS: [&str; 4] =
    ["invoke", "invoke-with-response-stream", "converse", "converse-stream"];

/// The paths and bodies that arrived.
#[derive(Clone, Default)]
struct Arrived(Arc<Mutex<Vec<(String, Bytes)>>>);

/// Starts a server that refuses bodies over `most` bytes.
async fn bedrock(most: usize) -> (String, Arrived) {
    let arrived = Arrived::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(move |state, uri, body| respond(state, uri, body, most));
    let routes = routes.with_state(arrived.clone());
    tokio::spawn(async { axum::serve(listener, routes).await });
    (url, arrived)
}

async fn respond(
    State(arrived): State<Arrived>,
    uri: Uri,
    body: Bytes,
    most: usize,
) -> axum::response::Response {
    let is_long = body.len() > most;
    arrived.0.lock().unwrap().push((uri.path().to_owned(), body));
    if is_long {
        let error = r#"{"message":"Input is too long for requested model."}"#;
        return (StatusCode::BAD_REQUEST, [("x-amzn-errortype", "ValidationException")], error)
            .into_response();
    }
    let usage = json!({ "inputTokens": 4_000, "outputTokens": 2, "totalTokens": 4_002 });
    let counts = json!({ "input_tokens": 4_000, "output_tokens": 2 });
    let text = json!({ "type": "text", "text": "done" });
    let event = match uri.path().rsplit('/').next() {
        Some("invoke") => {
            let answer = json!({ "type": "message", "content": [text], "usage": counts });
            return ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response();
        }
        Some("converse") => {
            let message = json!({ "role": "assistant", "content": [{ "text": "done" }] });
            let answer = json!({ "output": { "message": message }, "usage": usage });
            return ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response();
        }
        Some("converse-stream") => json!({ "delta": { "text": "done" }, "usage": usage }),
        _ => {
            let event = json!({ "type": "message_start", "message": { "usage": counts } });
            let stop = json!({ "bytes": STANDARD.encode(r#"{"type":"message_stop"}"#) });
            let event = json!({ "bytes": STANDARD.encode(event.to_string()) });
            let frames = [frame(&event), frame(&stop)].concat();
            return ([(CONTENT_TYPE, "application/vnd.amazon.eventstream")], frames)
                .into_response();
        }
    };
    ([(CONTENT_TYPE, "application/vnd.amazon.eventstream")], frame(&event)).into_response()
}

fn frame(payload: &Value) -> Vec<u8> {
    let payload = payload.to_string();
    let length = u32::try_from(16 + payload.len()).unwrap().to_be_bytes();
    [&length, &[0; 8][..], payload.as_bytes(), &[0; 4]].concat()
}

/// Returns a body with `rounds` calls and results.
fn body(operation: &str, rounds: usize) -> Value {
    let is_invoke = operation.starts_with("invoke");
    let text = |text: &str| match is_invoke {
        true => json!({ "type": "text", "text": text }),
        false => json!({ "text": text }),
    };
    let mut all = vec![json!({ "role": "user", "content": [text("Read the files.")] })];
    for n in 0..rounds {
        let (id, input) = (format!("id_{n}"), json!({ "path": format!("/src/file{n}.rs") }));
        let content = text(&"the quick brown fox jumps over the lazy dog\n".repeat(80));
        let (call, result) = match is_invoke {
            true => (
                json!({ "type": "tool_use", "id": id, "name": "read", "input": input }),
                json!({ "type": "tool_result", "tool_use_id": id, "content": [content] }),
            ),
            false => (
                json!({ "toolUse": { "toolUseId": id, "name": "read", "input": input } }),
                json!({ "toolResult": { "toolUseId": id, "content": [content] } }),
            ),
        };
        all.push(json!({ "role": "assistant", "content": [call] }));
        all.push(json!({ "role": "user", "content": [result] }));
    }
    all.push(json!({ "role": "assistant", "content": [text("All read.")] }));
    all.push(json!({ "role": "user", "content": [text("And now?")] }));
    match is_invoke {
        true => json!({ "anthropic_version": "bedrock-2023-05-31", "max_tokens": 64,
            "messages": all }),
        false => json!({ "inferenceConfig": { "maxTokens": 64 }, "messages": all,
            "system": [{ "text": "Be brief." }],
            "toolConfig": { "tools": [{ "toolSpec": { "name": "read", "inputSchema": {} } }] } }),
    }
}

/// Asserts that calls and results of a history match, and that roles alternate.
fn check_pairs(body: &Value) -> usize {
    let all = body["messages"].as_array().unwrap();
    let mut open = HashSet::new();
    for (n, message) in all.iter().enumerate() {
        assert_eq!(message["role"], ["user", "assistant"][n % 2], "{body}");
        for block in message["content"].as_array().unwrap() {
            let id = |of: &Value, key: &str| of[key].as_str().map(str::to_owned);
            let call = id(&block["toolUse"], "toolUseId").or_else(|| id(block, "id"));
            assert!(call.is_none_or(|id| open.insert(id)), "{body}");
            let answers = id(&block["toolResult"], "toolUseId");
            let answers = answers.or_else(|| id(block, "tool_use_id"));
            assert!(answers.is_none_or(|id| open.remove(&id)), "{body}");
        }
    }
    assert!(open.is_empty(), "{body}");
    all.len()
}

async fn rig(url: String, window: Option<u32>) -> Rig {
    let set = Set { window, upstream: Some(url), ..Set::default() };
    Rig::new(FakeProvider::builder().start().unwrap(), set).await
}

#[tokio::test]
async fn each_operation_of_bedrock_is_fitted() {
    for operation in OPERATIONS {
        let (url, arrived) = bedrock(usize::MAX).await;
        let rig = rig(url, Some(16_000)).await;
        let path = format!("{MODEL}/{operation}");
        for (rounds, is_cut) in [(4, false), (40, true)] {
            let body = body(operation, rounds);
            let got = rig.send(Method::POST, &path, &BEARER, body.to_string()).await;
            assert_eq!(got.status, 200, "{operation} {got:?}");
            let (arrived_at, sent) = arrived.0.lock().unwrap().pop().unwrap();
            assert_eq!((arrived_at, sent == body.to_string()), (path.clone(), !is_cut));
            let sent: Value = serde_json::from_slice(&sent).unwrap();
            let count = check_pairs(&sent);
            assert_eq!(count < body["messages"].as_array().unwrap().len(), is_cut, "{operation}");
            assert!(!sent.to_string().contains("ctx_expand"), "{sent}");
        }
        let records = rig.records().await;
        let model = records[0].model.clone();
        assert_eq!(model.as_deref(), Some("us.anthropic.claude-sonnet-4-5-20250929-v1:0"));
        assert_eq!(records[0].prompt_tokens, Some(4_000), "{operation}");
        rig.end().await;
    }
}

#[tokio::test]
async fn the_window_of_bedrocks_models_is_known_and_a_refusal_is_recovered() {
    for operation in OPERATIONS {
        let (url, arrived) = bedrock(100_000).await;
        let rig = rig(url, None).await;
        let body = body(operation, 40);
        let path = format!("{MODEL}/{operation}");
        let got = rig.send(Method::POST, &path, &BEARER, body.to_string()).await;
        assert_eq!(got.status, 200, "{operation} {got:?}");
        let sent: Vec<usize> =
            arrived.0.lock().unwrap().iter().map(|(_, sent)| sent.len()).collect();
        assert!(sent.len() > 1 && sent[0] == body.to_string().len(), "{sent:?}");
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(!warnings.iter().any(|text| text.contains("is unknown")), "{warnings:?}");
        rig.end().await;
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_changed_passes_with_one_warning() {
    let signed = [("authorization", "AWS4-HMAC-SHA256 Credential=x, Signature=y")];
    let mut other = body("invoke", 40);
    other.as_object_mut().unwrap().remove("anthropic_version");
    for (body, headers, words) in [
        (body("converse", 40), signed, "Bedrock API key"),
        (body("invoke", 40), signed, "Bedrock API key"),
        (other, BEARER, "let the client use `converse`"),
    ] {
        let (url, arrived) = bedrock(usize::MAX).await;
        let rig = rig(url, Some(16_000)).await;
        let is_invoke = words.contains("converse") || body["anthropic_version"].is_string();
        let path = format!("{MODEL}/{}", if is_invoke { "invoke" } else { "converse" });
        for _ in 0..2 {
            let got = rig.send(Method::POST, &path, &headers, body.to_string()).await;
            assert_eq!(got.status, 200);
            assert_eq!(arrived.0.lock().unwrap().pop().unwrap().1, body.to_string());
        }
        let warnings = rig.warnings.lock().unwrap().clone();
        assert!(warnings.len() == 1 && warnings[0].contains(words), "{warnings:?}");
        rig.end().await;
    }
}

#[tokio::test]
async fn an_error_of_ctx_has_the_form_of_bedrock() {
    let (url, _) = bedrock(usize::MAX).await;
    let rig = rig(url, Some(16_000)).await;
    for operation in OPERATIONS {
        let mut body = body(operation, 1);
        let long = "word ".repeat(40_000);
        body["system"] = match operation.starts_with("invoke") {
            true => long.into(),
            false => json!([{ "text": long }]),
        };
        let path = format!("{MODEL}/{operation}");
        let got = rig.send(Method::POST, &path, &BEARER, body.to_string()).await;
        assert_eq!(got.status, 400, "{operation}");
        let message = got.json()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("Input is too long for requested model"), "{message}");
    }
}
