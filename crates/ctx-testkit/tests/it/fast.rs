//! The upstream for benchmarks.

use std::io::{Read, Write};
use std::net::TcpStream;

use ctx_testkit::provider::Fast;

use crate::client::{parse, request};

#[test]
fn it_answers_each_api_without_parsing_the_body() {
    let upstream = Fast::start().unwrap();
    let body = "{".repeat(100_000);
    for (path, last) in [
        ("/v1/chat/completions", "[DONE]"),
        ("/v1/responses", "response.completed"),
        ("/v1/messages", "message_stop"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "STOP"),
    ] {
        let mut stream = TcpStream::connect(upstream.address()).unwrap();
        stream.write_all(&request("POST", path, "", &body)).unwrap();
        let mut raw = Vec::new();
        stream.read_to_end(&mut raw).unwrap();
        let answer = parse(&raw);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        assert!(answer.whole && answer.text().contains(last), "{}", answer.text());
    }
    assert_eq!((upstream.count(), upstream.bytes()), (4, 400_000));
}
