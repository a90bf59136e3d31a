//! Real error bodies of providers.

use std::sync::Arc;

use ctx_core::{ErrorKind, Usage};
use ctx_model::{Api, Endpoint, HttpModel, overflow, silent_overflow};
use serde::Deserialize;

use crate::server::{Server, facts, json, model, request, response, stream};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    status: u16,
    body: String,
    pattern: Option<String>,
    #[serde(default)]
    used: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    source: String,
}

fn bodies() -> Vec<Body> {
    serde_json::from_str(include_str!("data/error_bodies.json")).unwrap()
}

#[test]
fn overflows_are_recognised_with_their_numbers_and_similar_errors_are_not() {
    for row in bodies() {
        let found = overflow(row.status, &row.body);
        let said = format!("{} {}\n{}", row.status, row.body, row.source);
        assert_eq!(found.map(|f| f.pattern.to_owned()), row.pattern, "{said}");
        if let Some(found) = found {
            assert_eq!((found.used, found.limit), (row.used, row.limit), "{said}");
        }
    }
}

#[test]
fn hostile_bodies_are_read_without_harm() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let nested = (0..12).fold("x".to_owned(), |inner, _| {
        serde_json::json!({ "error": { "message": inner } }).to_string()
    });
    let long = format!("maximum context length is {} tokens", "9".repeat(1_000));
    let repeated = "input (1 tokens) exceeds the maximum context length is ".repeat(2_000);
    for body in [deep, nested, repeated, "\u{0}".to_owned(), "{\"error\":[[[[[]]]]]}".to_owned()] {
        for status in [0, 200, 404, 500] {
            let _ = overflow(status, &body);
        }
    }
    // A number that does not count tokens is ignored.
    assert_eq!(overflow(400, &long).map(|f| f.limit), Some(None));
}

#[test]
fn a_prompt_that_did_not_fit_shows_in_the_usage() {
    let usage = |input, cache_read| Usage { input, cache_read, ..Usage::default() };
    let silent = |usage: Usage, empty| silent_overflow(&usage, 1_000, empty).map(|f| f.used);
    assert_eq!(silent(usage(1_001, 0), false), Some(Some(1_001)));
    assert_eq!(silent(usage(500, 501), false), Some(Some(1_001)));
    assert_eq!(silent(usage(1_000, 0), false), None);
    assert_eq!(silent(usage(990, 0), true), Some(Some(990)));
    assert_eq!(silent(usage(989, 0), true), None);
    assert_eq!(silent_overflow(&usage(5, 0), 0, true), None);
}

/// Status, headers and body of a refusal; the expected kind, whether and when to retry (in
/// milliseconds), and words of the error or its hint.
type Refusal = (u16, &'static str, &'static str, ErrorKind, Option<Option<u64>>, &'static str);

#[tokio::test]
async fn refusals_say_what_to_do_next() {
    use ErrorKind::{Capability, Overflow, Upstream};
    const DATE: &str = "date: Fri, 20 Nov 2026 10:00:00 GMT\r\n";
    let dated = format!("{DATE}retry-after: Fri, 20 Nov 2026 10:00:30 GMT\r\n");
    let past = format!("{DATE}retry-after: Fri, 20 Nov 2026 09:00:00 GMT\r\n");
    let dated: &'static str = dated.leak();
    let past: &'static str = past.leak();
    let cases: &[Refusal] = &[
        (401, "", r#"{"error":{"message":"bad key"}}"#, Capability, None, "apiKey"),
        (403, "", r#"{"error":{"message":"no"}}"#, Capability, None, "key"),
        (
            404,
            "",
            r#"{"error":{"message":"The model `x` does not exist"}}"#,
            Capability,
            None,
            "model",
        ),
        (402, "", r#"{"error":{"message":"Insufficient Balance"}}"#, Capability, None, "credit"),
        (429, "", r#"{"error":{"message":"slow down"}}"#, Upstream, Some(None), "rate limit"),
        (429, "retry-after: 7\r\n", "", Upstream, Some(Some(7_000)), "later"),
        (429, "retry-after: 1.5\r\n", "", Upstream, Some(Some(1_500)), "later"),
        (429, "retry-after-ms: 250\r\nretry-after: 7\r\n", "", Upstream, Some(Some(250)), ""),
        (429, dated, "", Upstream, Some(Some(30_000)), ""),
        (429, past, "", Upstream, Some(Some(0)), ""),
        (429, "retry-after: never\r\n", "", Upstream, Some(None), ""),
        (429, "retry-after: -5\r\n", "", Upstream, Some(None), ""),
        (429, "retry-after: 1e300\r\n", "", Upstream, Some(None), ""),
        (429, "retry-after: 1e9\r\n", "", Upstream, Some(Some(86_400_000)), ""),
        (
            429,
            "retry-after: 5\r\n",
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
            Capability,
            None,
            "credit",
        ),
        (
            413,
            "",
            r#"{"error":{"message":"Request too large on tokens per minute (TPM): Limit 6000, Requested 14368","code":"rate_limit_exceeded"}}"#,
            Overflow,
            None,
            "tokens: 14368, limit: 6000",
        ),
        (
            429,
            "",
            r#"{"error":{"message":"Rate limit on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443"}}"#,
            Upstream,
            Some(None),
            "rate limit",
        ),
        (500, "", "oops", Upstream, Some(None), "oops"),
        (502, "", "<html>bad gateway</html>", Upstream, Some(None), "later"),
        (503, "retry-after: 2\r\n", "", Upstream, Some(Some(2_000)), ""),
        (
            529,
            "",
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Upstream,
            Some(None),
            "Overloaded",
        ),
        (408, "", "", Upstream, Some(None), ""),
        (501, "", "", Capability, None, "api"),
        (400, "", r#"{"error":{"message":"Invalid model name"}}"#, Capability, None, "model"),
        (
            400,
            "",
            r#"{"error":{"message":"temperature out of range"}}"#,
            Upstream,
            None,
            "temperature",
        ),
        (418, "", "", Upstream, None, ""),
        (
            400,
            "",
            r#"{"error":{"message":"prompt is too long: 40000 tokens > 32000 maximum"}}"#,
            Overflow,
            None,
            "limit: 32000",
        ),
        (413, "", "", Overflow, None, "too long"),
    ];
    for (status, headers, body, kind, again, words) in cases {
        let server = Server::with(response(*status, headers, body));
        let model = model(&server, Api::OpenAiCompletions);
        let error = model.ask(&request()).await.unwrap_err();
        let all = format!("{status} {headers} {body}: {error} {:?}", error.hint_text());
        assert_eq!(error.kind(), *kind, "{all}");
        assert_eq!(error.is_retryable(), again.is_some(), "{all}");
        let wait = error.wait().map(|wait| wait.as_millis() as u64);
        assert_eq!(wait, again.flatten(), "{all}");
        assert!(all.contains(words) && error.hint_text().is_some(), "{all}");
        assert!(error.context().contains(&("model", "test/model-1".to_owned())), "{all}");
    }
}

#[tokio::test]
async fn refused_calls_are_not_billed_and_interrupted_ones_are() {
    let begun = r#"data: {"choices":[{"delta":{"content":"half of it"}}]}"#;
    let failed = |code| format!(r#"data: {{"error":{{"message":"no","code":{code}}}}}"#);
    let long = r#"{"error":{"message":"prompt is too long: 40000 tokens > 32000 maximum"}}"#;
    let filtered = r#"data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    let cases = [
        (json(401, ""), false),
        (json(429, ""), false),
        (json(400, long), false),
        (json(418, ""), false),
        (json(500, ""), true),
        (response(307, "location: http://example.org/\r\n", ""), false),
        // Streams: empty; an error instead of the answer; an error after the beginning.
        (stream(""), true),
        (stream(&format!("{begun}\n\n")), true),
        (stream(&format!("{}\n\n", failed(400))), false),
        (stream(&format!("{}\n\n", failed(500))), true),
        (stream(&format!("{begun}\n\n{}\n\n", failed(400))), true),
        // The model answered, but a filter withheld the answer.
        (stream(&format!("{filtered}\n\ndata: [DONE]\n\n")), true),
    ];
    for (reply, billed) in cases {
        let server = Server::with(reply.clone());
        let error = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
        assert_eq!(error.may_be_billed(), billed, "{error}: {reply}");
    }
    // The listener is closed, so the port refuses connections.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere =
        Endpoint::new(&format!("http://127.0.0.1:{port}"), Api::OpenAiCompletions).unwrap();
    let model = HttpModel::new(facts(), nowhere, Arc::default());
    assert!(!model.ask(&request()).await.unwrap_err().may_be_billed());
}

#[tokio::test]
async fn a_refusal_is_read_up_to_a_limit() {
    let body = "x".repeat(3_000_000);
    let server = Server::with(json(500, &body));
    let error = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
    assert!(error.is_retryable());
}
