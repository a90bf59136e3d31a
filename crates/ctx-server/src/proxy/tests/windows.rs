//! Models with unknown windows.

use ctx_testkit::provider::{FakeProvider, Reply, Step};
use ctx_trace::SummaryOutcome;

use super::*;

const UNKNOWN: Set = Set {
    window: None,
    engine: None,
    config: "{ server: { summaries: 'extractive' } }",
    base: "/v1",
    upstream: None,
    replicas: None,
};

/// Returns the warnings, except those about a small window.
fn warnings(rig: &Rig) -> Vec<String> {
    let warnings = rig.warnings.lock().unwrap().clone();
    warnings.into_iter().filter(|text| !text.contains("low context window")).collect()
}

/// Returns a conversation of that many rounds with a model that is not in the catalogue.
fn local(rounds: usize) -> Value {
    json!({ "model": "my-local-model", "messages": session(rounds, 1_000) })
}

#[tokio::test]
async fn a_server_that_reports_its_window_never_refuses() {
    for (server, window) in [
        ("vllm", 24_000),
        ("openrouter", 24_000),
        ("ollama", 24_000),
        ("lmstudio", 24_000),
        // Below the engine's minimum: the window reported by the server still applies.
        ("llamacpp", 12_000),
    ] {
        let provider = FakeProvider::builder()
            .server(server)
            .models(["my-local-model"])
            .window(Tokens(window))
            .respond(|_| Step::text("done"));
        let rig = Rig::new(provider.start().unwrap(), UNKNOWN).await;
        for rounds in [10, 40] {
            let got = rig.post("/v1/chat/completions", &local(rounds)).await;
            assert!(got.body.contains("done"), "{server} {got:?}");
        }
        let asked = rig.provider.requests();
        let refused: Vec<_> = asked.iter().filter_map(|asked| asked.refusal.clone()).collect();
        assert_eq!((refused, warnings(&rig)), (vec![], vec![]), "{server}");
        let records = rig.records().await;
        assert_eq!(records[1].window, Tokens(window), "{server}");
        assert!(asked.iter().filter(|asked| asked.method == "GET").count() <= 4, "{server}");
    }
}

#[tokio::test]
async fn an_unknown_window_is_reported_with_the_model() {
    let provider = FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap();
    let rig = Rig::new(provider, UNKNOWN).await;
    for rounds in 1..6 {
        assert_eq!(rig.post("/v1/chat/completions", &local(rounds)).await.status, 200);
    }
    let warnings = warnings(&rig);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("\"my-local-model\"") && warnings[0].contains("--window"),
        "{warnings:?}"
    );
    // The first request may load the model, so the server may report the window later. The number
    // of queries is limited.
    let asked = rig.provider.requests();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/api/ps").count(), 3);
}

#[tokio::test]
async fn known_models_are_not_queried() {
    let provider = FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap();
    let rig = Rig::new(provider, UNKNOWN).await;
    let body = json!({ "model": "gpt-4o", "messages": [user("hi")] });
    assert_eq!(rig.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!((rig.provider.count(), warnings(&rig)), (1, vec![]));
}

#[tokio::test]
async fn a_deployment_name_is_also_used_for_summaries() {
    let provider =
        FakeProvider::builder().respond(|request| match request.json["tools"].is_array() {
            true => Step::text("done"),
            false => Step::new(Reply::Summary),
        });
    let config = "{ server: { summaries: 'upstream', backgroundRatio: 1 }, agents: { defaults: { contextTokens: 16000 } } }";
    let set = Set { config, base: "", ..UNKNOWN };
    let rig = Rig::new(provider.start().unwrap(), set).await;
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    let body = json!({ "messages": talk(40, 600), "tools": tools });
    let path = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21";
    let got = rig.send(Method::POST, path, &[("api-key", "k")], body.to_string()).await;
    assert!(got.body.contains("done"), "{got:?}");
    for asked in rig.provider.requests() {
        assert_eq!((&*asked.path, asked.header("api-key")), (path, Some("k")));
    }
    let records = rig.records().await;
    let made = records[0].compaction.as_ref().and_then(|made| made.summarised.clone());
    assert_eq!(made.unwrap().outcome, SummaryOutcome::Written, "{:?}", warnings(&rig));
    assert_eq!(records[0].model.as_deref(), Some("gpt-4o"));
}

/// Returns a conversation in the form of Ollama's own API: calls have no ids, and their arguments
/// are objects.
fn native(rounds: usize) -> Vec<Value> {
    let mut all = vec![user("Read the files. Never delete one.")];
    for n in 0..rounds {
        let function =
            json!({ "name": "read", "arguments": { "path": format!("src/file{n}.rs") } });
        all.push(
            json!({ "role": "assistant", "content": "", "tool_calls": [{ "function": function }] }),
        );
        let text = format!("line of file {n}\n").repeat(500);
        all.push(json!({ "role": "tool", "tool_name": "read", "content": text }));
    }
    all
}

#[tokio::test]
async fn ollamas_own_chat_is_fitted_to_the_window_that_the_request_sets() {
    let provider = FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap();
    let rig = Rig::new(provider, Set { window: None, ..Set::default() }).await;
    for rounds in 1..24 {
        let body = json!({ "model": "local", "messages": native(rounds),
            "options": { "num_ctx": 20_000 }, "tools": [{ "type": "function",
                "function": { "name": "read", "parameters": { "type": "object" } } }] });
        let got = rig.post("/api/chat", &body).await;
        assert!(got.status == 200 && got.body.contains("done_reason"), "{got:?}");
        let sent = rig.last();
        assert_eq!(sent.path, "/api/chat");
        assert!(sent.prompt.tokens() < 15_000, "{rounds}: {}", sent.prompt.tokens());
        assert!(sent.json.to_string().contains("Never delete one."));
        assert_eq!(
            (&sent.json["tools"], &sent.json["options"]),
            (&body["tools"], &body["options"])
        );
        let messages = sent.json["messages"].as_array().unwrap();
        let calls = messages.iter().flat_map(|message| message["tool_calls"].as_array()).flatten();
        assert!(calls.into_iter().all(|call| call["function"]["arguments"].is_object()));
    }
    let records = rig.records().await;
    let last = records.last().unwrap();
    assert_eq!((last.window, last.prompt_tokens.is_some()), (Tokens(20_000), true));
    assert!(last.raw_tokens > last.sent_tokens);
}
