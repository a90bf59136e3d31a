//! `context_management` for providers that do not know it.

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
