//! Watches the fake provider's answers: two implementations of four APIs, compared.

use std::io::{Read, Write};
use std::net::TcpStream;

use ctx_core::Tokens;
use ctx_dialect::wire::{AnswerState, Protocol, Request, Watch, route};
use ctx_testkit::provider::{
    Answer, Call, Failure, FailureKind, FakeProvider, Finish, Step, Words,
};
use serde_json::json;

/// The paths of each API, and whether the body requests a stream.
const PATHS: [(Protocol, &str, bool); 9] = [
    (Protocol::Chat, "/v1/chat/completions", false),
    (Protocol::Chat, "/v1/chat/completions", true),
    (Protocol::Responses, "/v1/responses", false),
    (Protocol::Responses, "/v1/responses", true),
    (Protocol::Messages, "/v1/messages", false),
    (Protocol::Messages, "/v1/messages", true),
    (Protocol::Gemini, "/v1beta/models/m:generateContent", false),
    (Protocol::Gemini, "/v1beta/models/m:streamGenerateContent", true),
    (Protocol::Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", true),
];

fn body(protocol: Protocol, streams: bool) -> String {
    let mut body = match protocol {
        Protocol::Chat => json!({
            "messages": [{ "role": "user", "content": "hello there" }],
            "stream_options": { "include_usage": true },
        }),
        Protocol::Responses => json!({ "input": "hello there" }),
        Protocol::Messages | Protocol::Converse => {
            json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": "hello there" }] })
        }
        Protocol::Gemini => {
            return json!({ "contents": [{ "parts": [{ "text": "hello there" }] }] }).to_string();
        }
    };
    body["stream"] = json!(streams);
    body.to_string()
}

/// Returns the body of a response, with chunks joined.
fn ask(provider: &FakeProvider, path: &str, body: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(provider.address()).expect("it listens");
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("it reads");
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).expect("it answers");
    let end = raw.windows(4).position(|part| part == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&raw[..end]).to_lowercase();
    let mut rest = &raw[end..];
    if !head.contains("transfer-encoding: chunked") {
        return rest.to_vec();
    }
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|part| part == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).expect("a size");
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    whole
}

/// Watches the answer for each path, split into chunks of seven bytes.
fn watched(provider: &FakeProvider) -> Vec<(Protocol, bool, Watch)> {
    let watched = PATHS.map(|(protocol, path, streams)| {
        let body = body(protocol, streams);
        let route = route("POST", path).expect("a known path");
        let request = Request::parse(&route, &body).expect("a request");
        assert_eq!((request.protocol, request.streams), (protocol, streams));
        let mut watch = Watch::new(protocol);
        for piece in ask(provider, path, &body).chunks(7) {
            watch.push(piece);
        }
        watch.end();
        (protocol, streams, watch)
    });
    watched.into()
}

#[test]
fn every_answer_is_detected_with_its_usage() {
    let calls = vec![Call { name: "f".into(), arguments: json!({ "x": 1 }) }];
    let answers = [
        Answer { text: "hi".into(), ..Answer::default() },
        Answer { calls, ..Answer::default() },
        Answer { thinking: "hm".into(), text: "hi".into(), ..Answer::default() },
    ];
    for answer in answers {
        let script = [Step::answer(answer.clone()).always()];
        let provider = FakeProvider::builder().script(script).start().expect("a provider");
        for (protocol, streams, watch) in watched(&provider) {
            let what = format!("{protocol} {streams} {answer:?}");
            assert_eq!(
                (watch.state(), watch.is_finished()),
                (AnswerState::Content, true),
                "{what}"
            );
            assert!(watch.failure().is_none() && watch.finish_reason().is_some(), "{what}");
            let usage = watch.usage().expect(&what);
            assert_eq!(usage.prompt(), 3, "{what}");
            assert!(usage.output > 0 && !watch.is_window_full(), "{what}");
        }
    }
}

#[test]
fn a_full_window_is_detected_as_an_error_and_as_a_finish_reason() {
    let provider = FakeProvider::builder().window(Tokens(2)).start().expect("a provider");
    for (protocol, streams, watch) in watched(&provider) {
        assert_eq!(watch.state(), AnswerState::Failure, "{protocol} {streams}");
        let failure = watch.failure().expect("a failure");
        assert!(failure.message.is_some() && failure.code.is_some(), "{failure:?}");
    }
    let answer = Answer { finish: Some(Finish::WindowFull), text: "x".into(), ..Answer::default() };
    let script = [Step::answer(answer).always()];
    let provider = FakeProvider::builder().script(script).start().expect("a provider");
    for (protocol, streams, watch) in watched(&provider) {
        let says_so = matches!(protocol, Protocol::Chat | Protocol::Messages);
        assert_eq!(watch.is_window_full(), says_so, "{protocol} {streams}");
    }
}

#[test]
fn an_error_in_a_stream_is_detected_before_and_after_the_first_word() {
    let overflow = Failure::new(FailureKind::Overflow).words(Words::OpenaiChat);
    for (after, seen) in [(0, AnswerState::Failure), (40, AnswerState::Content)] {
        let script = [Step::error(overflow.clone().in_stream(after)).always()];
        let provider = FakeProvider::builder().script(script).start().expect("a provider");
        for (protocol, streams, watch) in watched(&provider) {
            let expected = if streams { seen } else { AnswerState::Failure };
            assert_eq!(watch.state(), expected, "{protocol} {streams} {after}");
            let failure = watch.failure().expect("a failure");
            assert_eq!(failure.code.as_deref(), Some("context_length_exceeded"), "{protocol}");
        }
    }
}
