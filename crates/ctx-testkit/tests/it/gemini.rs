//! Gemini's API.

use ctx_core::Tokens;
use ctx_testkit::provider::{Answer, Api, Call, FailureKind, FakeProvider, Step, When, Words};
use serde_json::{Value, json};

use crate::client::{get, post};

const WHOLE: &str = "/v1beta/models/gemini-2.5-pro:generateContent?key=k";
const EVENTS: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=k";
const LIST: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?key=k";

fn body() -> Value {
    json!({
        "systemInstruction": { "parts": [{ "text": "be brief" }] },
        "tools": [{ "functionDeclarations": [{ "name": "read" }] }],
        "generationConfig": { "maxOutputTokens": 9 },
        "contents": [
            { "role": "user", "parts": [{ "text": "read it" }] },
            { "role": "model", "parts": [{ "functionCall": { "name": "read", "args": { "path": "a" } } }] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "read", "response": { "output": "it says a" } } }] },
        ],
    })
}

fn said() -> Step {
    let calls = vec![Call { name: "read".into(), arguments: json!({ "path": "b" }) }];
    Step::answer(Answer { thinking: "hm".into(), text: "so".into(), calls, ..Answer::default() })
}

#[test]
fn an_answer_can_be_whole_events_or_a_list() {
    let provider = FakeProvider::builder().script([said().times(3)]).start().unwrap();
    let whole = post(&provider, WHOLE, &body()).json();
    let candidate = &whole["candidates"][0];
    assert_eq!(candidate["finishReason"], "STOP");
    let parts = &candidate["content"]["parts"];
    assert_eq!(parts[0], json!({ "text": "hm", "thought": true }));
    assert_eq!(parts[1]["text"], "so");
    assert_eq!(parts[2]["functionCall"]["args"]["path"], "b");
    assert!(whole["usageMetadata"]["promptTokenCount"].as_u64().unwrap() > 0);

    let events = post(&provider, EVENTS, &body());
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    let list = post(&provider, LIST, &body());
    assert_eq!(list.header("content-type"), Some("application/json"));
    for chunks in [events.values(), list.json().as_array().unwrap().clone()] {
        let parts: Vec<_> = chunks
            .iter()
            .flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().unwrap())
            .collect();
        assert_eq!((parts.len(), &parts[1]["text"]), (3, &json!("so")));
        // The same prompt as before is in the cache.
        let usage = &chunks.last().unwrap()["usageMetadata"];
        assert_eq!(usage["cachedContentTokenCount"], usage["promptTokenCount"]);
    }

    let asked = &provider.requests()[0];
    assert_eq!(
        (asked.api, asked.model(), asked.key()),
        (Some(Api::Gemini), "gemini-2.5-pro", Some("k"))
    );
    assert_eq!(asked.max_tokens(), Some(9));
    assert_eq!(asked.prompt.tools, ["read"]);
    let roles: Vec<_> = asked.prompt.said.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(asked.prompt.newest().len(), 1);
    assert!(asked.prompt.is_after_tool());
    assert_eq!(asked.prompt.newest()[0].1, "read\nit says a");
}

#[test]
fn errors_have_the_wording_and_format_of_google() {
    let provider = FakeProvider::builder()
        .script([Step::error(FailureKind::Overloaded), Step::error(FailureKind::RateLimited)])
        .window(Tokens(30))
        .start()
        .unwrap();
    let small = json!({ "contents": [{ "parts": [{ "text": "hi" }] }] });
    let overloaded = post(&provider, WHOLE, &small);
    assert_eq!(
        (overloaded.status, &overloaded.json()["error"]["status"]),
        (503, &json!("UNAVAILABLE"))
    );
    let limited = post(&provider, LIST, &small);
    assert_eq!(limited.json()[0]["error"]["status"], "RESOURCE_EXHAUSTED");

    let long = json!({ "contents": [{ "parts": [{ "text": "x".repeat(400) }] }] });
    let full = post(&provider, EVENTS, &long);
    assert_eq!((full.status, full.text()), Words::Gemini.overflow(100, 0, 30));
    let refused = provider.requests().pop().unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.refusal.unwrap().contains("too long"));
}

#[test]
fn tokens_are_counted_and_models_listed() {
    let provider = FakeProvider::builder().models(["gemini-2.5-pro"]).start().unwrap();
    let path = "/v1beta/models/gemini-2.5-pro:countTokens";
    let plain =
        post(&provider, path, &json!({ "contents": [{ "parts": [{ "text": "12345678" }] }] }));
    assert_eq!(plain.json()["totalTokens"], 2);
    let inner =
        json!({ "generateContentRequest": { "contents": [{ "parts": [{ "text": "1234" }] }] } });
    assert_eq!(post(&provider, path, &inner).json()["totalTokens"], 1);
    assert_eq!(
        get(&provider, "/v1beta/models").json()["models"][0]["name"],
        "models/gemini-2.5-pro"
    );
}

#[test]
fn a_step_can_match_only_the_newest_messages() {
    let when = |newest: Option<&str>, after_tool, tool: Option<&str>| When {
        newest: newest.map(str::to_owned),
        after_tool,
        tool: tool.map(str::to_owned),
        ..When::default()
    };
    let step = |text: &str, when| Step::text(text).when(when).always();
    let provider = FakeProvider::builder()
        .script([
            step("no such tool", when(None, None, Some("write"))),
            step("after", when(None, Some(true), Some("read"))),
            step("asked", when(Some("read it"), Some(false), None)),
        ])
        .start()
        .unwrap();
    let text = |body: &Value| {
        let answer = post(&provider, WHOLE, body).json();
        answer.pointer("/candidates/0/content/parts/0/text").unwrap().clone()
    };
    let mut body = body();
    assert_eq!(text(&body), "after");
    body["contents"].as_array_mut().unwrap().truncate(1);
    assert_eq!(text(&body), "asked");
}

#[test]
fn prompts_over_the_character_limit_are_refused() {
    let provider = FakeProvider::builder().limit_chars(10).start().unwrap();
    let ask = |text: &str| {
        let body = json!({ "messages": [{ "role": "user", "content": text }] });
        post(&provider, "/v1/chat/completions", &body).status
    };
    assert_eq!((ask("1234567890"), ask("12345678901")), (200, 400));
}
