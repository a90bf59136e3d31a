//! Providers that have chat completions, but no Responses API.

use ctx_dialect::wire::{Protocol, answer_text};
use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

const PATH: &str = "/v1/responses";

fn provider(limit: u64) -> FakeProvider {
    let step = |request: &ctx_testkit::provider::Request| match &*request.path {
        PATH => Step::raw(404, "application/json", r#"{"detail":"Not Found"}"#),
        _ => Step::text("done"),
    };
    FakeProvider::builder().limit_chars(limit).strict(true).respond(step).start().unwrap()
}

fn body(turns: usize, stream: bool) -> Value {
    let input: Vec<Value> = talk(turns, 300).split_off(1);
    json!({ "model": "m", "instructions": "Be brief.", "input": input, "stream": stream, "store": false })
}

#[tokio::test]
async fn requests_of_the_responses_api_are_sent_as_chat() {
    let rig = Rig::new(provider(1_000_000), Set::default()).await;
    for (turns, stream) in [(1, true), (2, false), (60, true)] {
        let got = rig.post(PATH, &body(turns, stream)).await;
        assert_eq!(got.status, 200, "{got:?}");
        assert_eq!(answer_text(Protocol::Responses, got.body.as_bytes()), "done", "{got:?}");
        let last = rig.last();
        assert_eq!(last.path, "/v1/chat/completions");
        assert_eq!(last.json["messages"][0], json!({ "role": "system", "content": "Be brief." }));
    }
    assert!(rig.last().prompt.tokens() < 12_500, "the last one is cut");
    assert_eq!(rig.provider.count(), 4, "the path is tried once");
    let records = rig.proxy.trace().sessions().pop().unwrap().requests;
    assert!(
        records.iter().all(|record| record.prompt_tokens.is_some() && record.status == Some(200))
    );
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.iter().any(|text| text.contains("no Responses API")), "{warnings:?}");
}

#[tokio::test]
async fn a_refusal_of_chat_is_recovered() {
    let set = Set { window: Some(200_000), ..Set::default() };
    let rig = Rig::new(provider(60_000), set).await;
    let got = rig.post(PATH, &body(60, true)).await;
    assert_eq!(answer_text(Protocol::Responses, got.body.as_bytes()), "done", "{got:?}");
}

#[tokio::test]
async fn other_refusals_pass() {
    for (status, error) in [
        (404, r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#),
        (401, r#"{"error":{"message":"no key"}}"#),
    ] {
        let builder = FakeProvider::builder();
        let provider = builder.respond(move |_| Step::raw(status, "application/json", error));
        let rig = Rig::new(provider.start().unwrap(), Set::default()).await;
        let got = rig.post(PATH, &body(1, true)).await;
        assert_eq!((got.status.as_u16(), &*got.body), (status, error));
        assert_eq!(rig.provider.count(), 1);
    }
    // A server with neither API.
    let builder = FakeProvider::builder();
    let provider = builder.respond(|_| Step::raw(404, "text/plain", "nothing here"));
    let rig = Rig::new(provider.start().unwrap(), Set::default()).await;
    for _ in 0..2 {
        let got = rig.post(PATH, &body(1, true)).await;
        assert_eq!((got.status.as_u16(), &*got.body), (404, "nothing here"));
    }
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(!warnings.iter().any(|text| text.contains("Responses API")), "{warnings:?}");
}
