//! Cut histories, checked by a provider that is as strict as the real ones.

use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

/// Starts a provider that refuses what real ones refuse.
fn strict() -> FakeProvider {
    FakeProvider::builder().strict(true).respond(|_| Step::text("done")).start().unwrap()
}

/// A conversation in one API: its path, and its body after a number of rounds.
struct Dialect {
    path: &'static str,
    body: fn(usize) -> Value,
}

const TOKENS: usize = 900;

fn text(n: usize) -> String {
    let line = format!("line {n}: the quick brown fox jumps over the lazy dog\n");
    line.repeat(TOKENS * 4 / line.len())
}

fn chat(rounds: usize) -> Value {
    let mut all = session(rounds, TOKENS);
    all.push(json!({ "role": "assistant", "content": "All read." }));
    all.push(user("And now?"));
    json!({ "model": "m", "messages": all, "stream": true })
}

fn responses(rounds: usize) -> Value {
    let mut input =
        vec![json!({ "type": "message", "role": "user", "content": "Read the files." })];
    for n in 0..rounds {
        let id = format!("call_{n}");
        input.push(json!({ "type": "function_call", "call_id": id, "name": "read",
            "arguments": format!("{{\"path\":\"/src/file{n}.rs\"}}") }));
        input.push(json!({ "type": "function_call_output", "call_id": id, "output": text(n) }));
    }
    input.push(json!({ "type": "message", "role": "user", "content": "And now?" }));
    json!({ "model": "m", "input": input, "stream": true, "instructions": "Be brief." })
}

fn messages(rounds: usize) -> Value {
    let mut all = vec![user("Read the files.")];
    for n in 0..rounds {
        let id = format!("toolu_{n}");
        all.push(json!({ "role": "assistant", "content": [
            { "type": "text", "text": format!("I read file {n}.") },
            { "type": "tool_use", "id": id, "name": "read",
              "input": { "path": format!("/src/file{n}.rs") } } ] }));
        all.push(json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": text(n) } ] }));
    }
    let last = json!([{ "type": "text", "text": "And now?",
        "cache_control": { "type": "ephemeral" } }]);
    all.push(json!({ "role": "assistant", "content": "All read." }));
    all.push(json!({ "role": "user", "content": last }));
    let tools = json!([{ "name": "read", "input_schema": { "type": "object" } }]);
    json!({ "model": "m", "messages": all, "stream": true, "max_tokens": 500, "system": "Be brief.",
        "tools": tools })
}

fn gemini(rounds: usize) -> Value {
    let of = |role: &str, part: Value| json!({ "role": role, "parts": [part] });
    let mut all = vec![of("user", json!({ "text": "Read the files." }))];
    for n in 0..rounds {
        let args = json!({ "path": format!("/src/file{n}.rs") });
        all.push(of("model", json!({ "functionCall": { "name": "read", "args": args } })));
        let response = json!({ "output": text(n) });
        let part = json!({ "functionResponse": { "name": "read", "response": response } });
        all.push(of("user", part));
    }
    all.push(of("model", json!({ "text": "All read." })));
    all.push(of("user", json!({ "text": "And now?" })));
    json!({ "contents": all, "systemInstruction": { "parts": [{ "text": "Be brief." }] } })
}

const ALL: [Dialect; 4] = [
    Dialect { path: "/v1/chat/completions", body: chat },
    Dialect { path: "/v1/responses", body: responses },
    Dialect { path: "/v1/messages", body: messages },
    Dialect { path: "/v1beta/models/m:streamGenerateContent?alt=sse", body: gemini },
];

#[tokio::test]
async fn every_api_accepts_cut_histories_as_they_grow() {
    for dialect in ALL {
        let rig = Rig::new(strict(), Set::default()).await;
        for rounds in [2, 8, 20, 21, 30, 31, 40] {
            let got = rig.post(dialect.path, &(dialect.body)(rounds)).await;
            let asked = rig.last();
            let path = dialect.path;
            assert_eq!(got.status, 200, "{path} {rounds}: {got:?} {:?}", asked.refusal);
            assert!(asked.prompt.tokens() <= 13_000, "{path}: {}", asked.prompt.tokens());
            assert!(got.body.contains("done"), "{path} {got:?}");
        }
        let last = rig.proxy.trace().sessions().remove(0);
        assert!(last.requests.last().unwrap().raw_tokens > Tokens(30_000), "{:?}", last.info);
    }
}

#[tokio::test]
async fn an_overflow_is_recovered_in_every_api() {
    for dialect in ALL {
        let provider = FakeProvider::builder()
            .strict(true)
            .window(Tokens(9_000))
            .respond(|_| Step::text("done"))
            .start()
            .unwrap();
        let rig = Rig::new(provider, Set { window: Some(64_000), ..Set::default() }).await;
        let mut body = (dialect.body)(20);
        if body.get("max_tokens").is_none() && body.get("contents").is_none() {
            body["max_output_tokens"] = 500.into();
            body["max_tokens"] = 500.into();
        }
        let got = rig.post(dialect.path, &body).await;
        let refusals: Vec<_> =
            rig.provider.requests().into_iter().map(|asked| asked.refusal).collect();
        assert_eq!(got.status, 200, "{}: {got:?} {refusals:?}", dialect.path);
        assert!(got.body.contains("done"), "{got:?}");
        assert!(rig.provider.count() > 1);
    }
}
