//! Answers that break off, fail midway, never end, or are invalid.

use std::time::Duration;

use ctx_core::ErrorKind;
use ctx_model::{Api, Stop, Timeouts};

use crate::server::{
    Server, Step, json as json_response, model, model_with, request, response, stream,
};
use crate::streams::{COMPLETIONS, TEXT, streamed};

#[tokio::test]
async fn a_stream_that_breaks_off_anywhere_is_a_retryable_error() {
    for api in Api::ALL {
        let body = streamed(api);
        // All events except those that end the answer.
        let ends = ["\"finish_reason\":\"stop\"", "response.completed", "message_delta"];
        let end = ends.iter().filter_map(|end| body.find(end)).min().unwrap();
        let cuts = body.char_indices().map(|(at, _)| at).filter(|at| *at <= end).step_by(29);
        for cut in cuts {
            let server = Server::with(stream(&body[..cut]));
            let error = model(&server, api).ask(&request()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Upstream, "{api} {cut}");
            assert!(error.is_retryable(), "{api} {cut} {error}");
        }
    }
}

#[tokio::test]
async fn a_chunked_answer_that_breaks_off_after_its_end_is_complete() {
    let event =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let head = "transfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n";
    // Neither `[DONE]` nor the last chunk ever comes.
    let server = Server::with(response(200, head, &chunk));
    let answer = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.usage), ("x", None));
    // The same before the end of the answer.
    let event = event.replace("\"stop\"", "null");
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let server = Server::with(response(200, head, &chunk));
    let error = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Upstream && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn errors_inside_a_stream_equal_errors_outside() {
    use Api::{AnthropicMessages as A, OpenAiCompletions as C, OpenAiResponses as R};
    use ErrorKind::{Capability, Overflow, Upstream};
    for (api, event, kind, again) in [
        (C, r#"{"error":{"message":"Rate limit","code":429}}"#, Upstream, true),
        (
            C,
            r#"{"error":{"code":502,"message":"Provider disconnected"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            Upstream,
            true,
        ),
        (C, r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#, Upstream, true),
        (C, r#"{"error":"something"}"#, Upstream, true),
        (
            C,
            r#"{"object":"error","message":"This model's maximum context length is 100 tokens. However, you requested 200 tokens","code":400}"#,
            Overflow,
            false,
        ),
        (C, r#"{"error":{"message":"n_keep (15028) >= n_ctx (7424)"}}"#, Overflow, false),
        (C, r#"{"error":{"message":"Insufficient credits","code":402}}"#, Capability, false),
        (
            A,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Upstream,
            true,
        ),
        (
            A,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            Overflow,
            false,
        ),
        (
            A,
            r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#,
            Capability,
            false,
        ),
        (
            R,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}"#,
            Overflow,
            false,
        ),
        (
            R,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}"#,
            Upstream,
            true,
        ),
        (R, r#"{"type":"error","code":"rate_limit_exceeded","message":"slow"}"#, Upstream, true),
    ] {
        let server = Server::with(stream(&format!("data: {event}\n\n")));
        let error = model(&server, api).ask(&request()).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, again), "{event}: {error}");
        // The same with status 200 and without a stream.
        if api != R {
            let server = Server::with(json_response(200, event));
            let error = model(&server, api).ask(&request()).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{event}: {error}");
        }
    }
}

#[tokio::test]
async fn an_invalid_answer_of_a_model_is_a_clear_error() {
    for (reply, again) in [
        (response(200, "content-type: text/html\r\n", "<html>Welcome to nginx</html>"), false),
        (stream("event: hello\ndata: world\n\n"), true),
        (json_response(200, "{\"hello\":\"world\"}"), false),
        (json_response(200, "{\"choices\":"), true),
        (stream("data: {broken\n\ndata: [DONE]\n\n"), true),
        (response(200, "", ""), true),
    ] {
        let server = Server::with(reply.clone());
        let error = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Upstream, "{reply}");
        assert_eq!(error.is_retryable(), again, "{reply}: {error}");
        assert!(error.hint_text().is_some());
    }
}

#[tokio::test]
async fn an_endless_stream_is_cut() {
    let head = stream("").into_bytes();
    let word = "word ".repeat(200);
    let text = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n");
    let server = Server::start(vec![vec![Step::Send(head.clone()), Step::Repeat(text.into())]]);
    let answer = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap();
    assert_eq!(answer.stop, Stop::Length);
    assert!(answer.text.len() < 500 * 64 + 200_000, "{}", answer.text.len());

    let pings = ": ping\n\n".repeat(1_000);
    let server = Server::start(vec![vec![Step::Send(head), Step::Repeat(pings.into())]]);
    let error = model(&server, Api::OpenAiCompletions).ask(&request()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Upstream && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_given_up() {
    let timeouts = Timeouts { idle: Duration::from_millis(60), ..Timeouts::default() };
    let (begun, rest) = COMPLETIONS.split_at(300);
    let hang = |text: &str| vec![vec![Step::Send(stream(text).into()), Step::Hang]];
    let server = Server::start(hang(begun));
    let model = model_with(&server, Api::OpenAiCompletions, timeouts);
    let error = model.ask(&request()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.is_retryable(), "{error}");
    // A connection kept open after the last event is not waited for.
    let server = Server::start(hang(&format!("{begun}{rest}")));
    let model = model_with(&server, Api::OpenAiCompletions, Timeouts::default());
    assert_eq!(model.ask(&request()).await.unwrap().text, TEXT);
}
