//! Scripts in files.

use ctx_core::Tokens;
use ctx_testkit::provider::{
    Builder, Cut, Failure, FailureKind, FakeProvider, RetryAfter, Scenario, Step, Wait,
};
use serde_json::json;

use crate::client::post;

const FILE: &str = r#"{
    "window": 8000,
    "models": ["small"],
    "script": [
        { "reply": { "error": { "kind": "rateLimited", "retryAfter": { "seconds": 2 } } } },
        { "reply": { "text": "hello" }, "wait": { "millis": 1 }, "cut": { "inEvent": 2 } },
        { "reply": { "answer": { "text": "x", "finish": "length" } } },
        { "reply": "garbage", "when": { "contains": "boom", "api": "chat" } },
        { "reply": "summary", "times": null }
    ]
}"#;

#[test]
fn a_scenario_from_a_file_equals_one_built_in_code() {
    let scenario = Scenario::from_json(FILE).unwrap();
    assert_eq!(scenario.window, Some(Tokens(8_000)));
    assert_eq!(scenario.models, ["small"]);
    let limited = Failure::new(FailureKind::RateLimited).retry_after(RetryAfter::Seconds(2));
    let cut = Step { wait: Wait::Millis(1), ..Step::text("hello") };
    assert_eq!(scenario.script[0], Step::error(limited));
    assert_eq!(scenario.script[1].wait, cut.wait);
    assert_eq!(scenario.script[1].cut, Some(Cut::InEvent(2)));
    assert_eq!(scenario.script[2], Step::cut_off("x"));
    assert_eq!(scenario.script[4], Step::default().always());

    let written = serde_json::to_string(&scenario).unwrap();
    assert_eq!(Scenario::from_json(&written).unwrap(), scenario);
}

#[test]
fn a_provider_starts_from_a_scenario() {
    let provider: FakeProvider = Builder::from(Scenario::from_json(FILE).unwrap()).start().unwrap();
    let body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let limited = post(&provider, "/v1/chat/completions", &body);
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("2")));
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let first = FakeProvider::builder().start().unwrap();
    let port = first.address().port();
    let error = FakeProvider::builder().port(port).start().unwrap_err();
    assert_eq!(error.kind(), ctx_core::ErrorKind::Io);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}
