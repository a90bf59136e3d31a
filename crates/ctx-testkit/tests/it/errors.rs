//! Failures, with the wording of providers.

use ctx_core::Tokens;
use ctx_testkit::provider::{
    Failure, FailureKind, FakeProvider, RetryAfter, Scenario, Step, When, Words,
};
use serde_json::{Value, json};

use crate::client::{self, exchange, post, request};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

fn body(stream: bool) -> Value {
    let messages = json!([{ "role": "user", "content": "a question about src/lib.rs" }]);
    json!({ "model": "m", "stream": stream, "messages": messages, "input": "a question" })
}

fn failing(path: &str, stream: bool, failure: impl Into<Failure>) -> client::Answer {
    post(&scripted([Step::error(failure)]), path, &body(stream))
}

/// Checks the failure in an API: its status, and a part of the body.
fn check_failure(kind: FailureKind, path: &str, status: u16, says: &str) {
    for stream in [false, true] {
        let answer = failing(path, stream, kind);
        assert_eq!((answer.status, answer.whole), (status, true), "{kind:?}");
        let text = answer.text();
        assert!(text.to_lowercase().contains(&says.to_lowercase()), "{kind:?}: {text}");
        if kind == FailureKind::BadGateway {
            assert_eq!(answer.header("content-type"), Some("text/html"));
        } else {
            let is_anthropic = answer.json()["type"] == "error";
            assert_eq!(is_anthropic, path == MESSAGES, "{text}");
        }
    }
}

/// Starts a provider that answers from a script.
fn scripted(script: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(script).start().unwrap()
}

#[test]
fn each_failure_has_the_status_and_format_of_its_api() {
    use FailureKind as K;
    let rows = [
        (K::RateLimited, 429, 429, "Rate limit reached", "rate_limit_error"),
        (K::TokensPerMinute, 429, 429, "tokens per min (TPM)", "tokens per minute"),
        (K::QuotaExhausted, 429, 400, "insufficient_quota", "credit balance is too low"),
        (K::Unauthorized, 401, 401, "invalid_api_key", "authentication_error"),
        (K::Forbidden, 403, 403, "does not have access", "permission_error"),
        (K::NoSuchModel, 404, 404, "model_not_found", "not_found_error"),
        (K::UnsupportedParameter, 400, 400, "unsupported_parameter", "not permitted"),
        (K::Overflow, 400, 400, "context_length_exceeded", "prompt is too long: "),
        (K::TooLarge, 413, 413, "content size limit", "request_too_large"),
        (K::ServerError, 500, 500, "had an error", "api_error"),
        (K::BadGateway, 502, 502, "<title>502 Bad Gateway", "<title>502 Bad Gateway"),
        (K::Overloaded, 503, 529, "overloaded", "overloaded_error"),
        (K::GatewayTimeout, 504, 504, "timeout", "timeout_error"),
    ];
    assert_eq!(rows.map(|row| row.0), K::ALL);
    for (kind, openai, anthropic, openai_says, anthropic_says) in rows {
        check_failure(kind, CHAT, openai, openai_says);
        check_failure(kind, MESSAGES, anthropic, anthropic_says);
    }
    let ollama = failing("/api/chat", false, K::NoSuchModel).json();
    assert!(ollama["error"].as_str().unwrap().contains("does not exist"));
    assert_eq!(failing(CHAT, false, Failure::new(K::Overloaded).status(200)).status, 200);
}

#[test]
fn retry_after_is_sent_in_each_format() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    let rows = [
        (RetryAfter::Seconds(2), Some("2"), None),
        (RetryAfter::Millis(1_500), Some("2"), Some("1500")),
        (RetryAfter::Date(date.into()), Some(date), None),
    ];
    for (after, plain, millis) in rows {
        let answer =
            failing(CHAT, false, Failure::new(FailureKind::RateLimited).retry_after(after));
        let found = (answer.header("retry-after"), answer.header("retry-after-ms"));
        assert_eq!(found, (plain, millis));
    }
}

#[test]
fn an_error_can_follow_a_part_of_the_stream() {
    let rows = [
        (CHAT, "/error/code", "server_is_overloaded"),
        ("/v1/responses", "/response/error/code", "server_is_overloaded"),
        (MESSAGES, "/error/type", "overloaded_error"),
        ("/api/chat", "/error", "The server is currently overloaded. Please try again later."),
    ];
    for (path, place, word) in rows {
        let failure = Failure::new(FailureKind::Overloaded).in_stream(2);
        let answer = failing(path, true, failure.clone());
        assert_eq!((answer.status, answer.whole), (200, true), "{path}");
        let events = answer.values();
        assert_eq!(events.len(), 3, "{path}: {events:?}");
        assert_eq!(events[2].pointer(place), Some(&json!(word)), "{path}: {events:?}");
        assert!(failing(path, false, failure).status >= 500, "no stream is requested");
    }
}

#[test]
fn an_overflow_can_have_the_wording_of_every_provider() {
    for words in Words::all() {
        let failure = Failure::new(FailureKind::Overflow).words(words);
        let answer = failing(CHAT, false, failure);
        assert!([400, 422].contains(&answer.status), "{words:?}");
        let text = answer.json().to_string();
        assert!(!text.contains('$'), "{words:?} has an unfilled number: {text}");
        let (status, said) = words.overflow(9_876, 1_000, 8_765);
        assert_eq!(status, answer.status);
        let numbers = said.contains("9876") || said.contains("8765") || said.contains("2111");
        let silent =
            [Words::OpenaiResponses, Words::Groq, Words::Bedrock, Words::Minimax].contains(&words);
        assert_eq!(numbers, !silent, "{words:?}: {said}");
    }
}

#[test]
fn a_prompt_that_exceeds_the_window_is_refused_and_takes_no_step() {
    let builder = FakeProvider::builder().window(Tokens(100)).script([Step::text("fits")]);
    let provider = builder.start().unwrap();
    let ask = |chars: usize, answer: usize| {
        let messages = json!([{ "role": "user", "content": "x".repeat(chars) }]);
        post(&provider, CHAT, &json!({ "model": "m", "messages": messages, "max_tokens": answer }))
    };
    let refused = ask(404, 0).json().to_string();
    assert!(refused.contains("maximum context length is 100 tokens"), "{refused}");
    assert!(refused.contains("resulted in 101 tokens"), "{refused}");
    let refused = ask(200, 51).json().to_string();
    assert!(refused.contains("101 tokens (50 in the messages, 51 in the completion)"), "{refused}");
    assert_eq!(ask(400, 0).json()["choices"][0]["message"]["content"], "fits");

    let provider = FakeProvider::builder().window(Tokens(10)).words(Words::LlamaCpp);
    let provider = provider.start().unwrap();
    let long = json!({ "messages": [{ "role": "user", "content": "x".repeat(100) }] });
    let answer = post(&provider, CHAT, &long).json();
    assert_eq!(
        (&answer["error"]["n_prompt_tokens"], &answer["error"]["n_ctx"]),
        (&json!(25), &json!(10))
    );
}

#[test]
fn a_wrong_key_is_refused_in_every_position() {
    let provider = FakeProvider::builder().key("sk-right").start().unwrap();
    let rows = [
        ("", 401),
        ("authorization: Bearer sk-wrong\r\n", 401),
        ("authorization: Bearer sk-right\r\n", 200),
        ("x-api-key: sk-right\r\n", 200),
        ("api-key: sk-right\r\n", 200),
    ];
    for (header, status) in rows {
        let asked = request("POST", CHAT, header, &body(false).to_string());
        assert_eq!(exchange(&provider, &asked).status, status, "{header}");
    }
}

#[test]
fn invalid_requests_are_refused_and_recorded() {
    let provider = FakeProvider::builder().start().unwrap();
    assert_eq!(post(&provider, "/v1/hologram", &body(false)).status, 404);
    assert_eq!(client::get(&provider, CHAT).status, 404);
    for path in [CHAT, MESSAGES] {
        let answer = exchange(&provider, &request("POST", path, "", "{not json"));
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    assert_eq!(provider.count(), 4);
    assert_eq!(provider.requests()[3].body, "{not json");
}

#[test]
fn any_response_can_be_scripted_and_any_api_can_fail() {
    let script = [
        Step::raw(200, "text/plain", "{\"choices\":"),
        Step::redirect("http://127.0.0.1:9/v1/chat/completions"),
        Step::raw(99, "no header\nat all", "x"),
        Step::error(FailureKind::RateLimited)
            .when(When { api: Some(ctx_testkit::provider::Api::Embeddings), ..When::default() }),
    ];
    let provider = scripted(script);
    let answer = post(&provider, CHAT, &body(false));
    assert_eq!((answer.status, answer.text().as_str()), (200, "{\"choices\":"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    let redirect = post(&provider, CHAT, &body(false));
    assert_eq!((redirect.status, redirect.header("location").is_some()), (307, true));
    assert_eq!(post(&provider, CHAT, &body(false)).text(), "x");
    assert_eq!(post(&provider, "/v1/embeddings", &body(false)).status, 429);
    assert_eq!(post(&provider, "/v1/embeddings", &body(false)).status, 200);
}

#[test]
fn an_invalid_scenario_is_reported_with_place_and_expectation() {
    let error = Scenario::from_json("{\n \"script\": [{\"reply\": {\"txt\": 1}}]}").unwrap_err();
    assert_eq!(error.kind(), ctx_core::ErrorKind::InvalidInput);
    let said = error.to_string();
    assert!(said.contains("line: 2") && said.contains("txt") && said.contains("summary"), "{said}");
    assert!(error.hint_text().unwrap().contains("script"));
}
