//! The record of a request.

use ctx_testkit::provider::{Api, FakeProvider, Outcome, Step, When};
use serde_json::json;

use crate::client::{exchange, post, request};

const CHAT: &str = "/v1/chat/completions";

#[test]
fn a_request_is_recorded_unchanged() {
    let provider = FakeProvider::builder().start().unwrap();
    let body = json!({
        "model": "m", "max_tokens": 7, "stream": true,
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
        ],
        "tools": [{ "type": "function", "function": { "name": "read" } }],
    });
    let headers = "Authorization: Bearer sk-secret-1\r\nX-Title: test\r\n";
    let asked =
        request("POST", "/some/prefix/v1/chat/completions?beta=1", headers, &body.to_string());
    assert_eq!(exchange(&provider, &asked).status, 200);

    let request = provider.requests().remove(0);
    assert_eq!((request.number, request.method.as_str()), (1, "POST"));
    assert_eq!(request.path, "/some/prefix/v1/chat/completions?beta=1");
    assert_eq!(request.api, Some(Api::Chat));
    assert_eq!((request.model(), request.max_tokens(), request.stream()), ("m", Some(7), true));
    assert_eq!(request.header("x-title"), Some("test"));
    assert_eq!(request.key(), Some("sk-secret-1"));
    assert_eq!(request.json, body);
    assert_eq!(request.body, body.to_string());
    assert_eq!(request.prompt.tools, ["read"]);
    assert_eq!(request.prompt.text(), "be brief\nhello");
    assert!(request.usage.prompt() > 4 && request.usage.output > 0);
    assert_eq!(provider.wait_ended(1), Some(Outcome::Sent));
    assert!(!format!("{request:?} {provider:?}").contains("secret"), "{request:?}");
}

#[test]
fn matching_requests_take_the_steps_in_order() {
    let script = [
        Step::text("for anthropic").when(When { api: Some(Api::Messages), ..When::default() }),
        Step::text("for b").when(When { model: Some("b".into()), ..When::default() }),
        Step::text("about lunch").when(When { contains: Some("lunch".into()), ..When::default() }),
        Step::text("twice").times(2),
        Step::text("a stream").when(When { stream: Some(true), ..When::default() }),
        Step::text("the rest").always(),
    ];
    let provider = FakeProvider::builder().script(script).start().unwrap();
    assert_eq!(provider.steps_left(), 6);
    let rows = [
        (CHAT, "a", "hello", false, "twice"),
        (CHAT, "b", "hello", false, "for b"),
        (CHAT, "a", "when is lunch?", false, "about lunch"),
        ("/v1/messages", "a", "hello", false, "for anthropic"),
        ("/v1/messages", "a", "hello", false, "twice"),
        (CHAT, "b", "lunch", false, "the rest"),
        (CHAT, "a", "hello", true, "a stream"),
        (CHAT, "a", "hello", true, "the rest"),
    ];
    for (path, model, text, stream, said) in rows {
        let messages = json!([{ "role": "user", "content": text }]);
        let body = json!({ "model": model, "messages": messages, "stream": stream });
        let answer = post(&provider, path, &body).text();
        assert!(answer.contains(&format!("\"{said}\"")), "{path} {model} {text}: {answer}");
    }
    assert_eq!(provider.steps_left(), 0);
}

#[test]
fn a_function_answers_requests_that_no_step_takes() {
    let builder = FakeProvider::builder().script([Step::text("scripted")]);
    let provider = builder
        .respond(|request| {
            Step::text(format!("{}: {}", request.number, request.prompt.last_user()))
        })
        .start()
        .unwrap();
    let ask = |text: &str| {
        let body = json!({ "messages": [{ "role": "user", "content": text }] });
        let answer = post(&provider, CHAT, &body).json();
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask("one"), "scripted");
    assert_eq!(ask("two"), "2: two");
    provider.extend([Step::text("added")]);
    assert_eq!(ask("three"), "added");
    assert_eq!(ask("four"), "4: four");
}

#[test]
fn async_code_waits_without_blocking_its_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let provider = FakeProvider::builder().script([Step::text("x").held()]).start().unwrap();
        let address = provider.address();
        let asked = request("POST", CHAT, "", "{\"model\":\"m\",\"messages\":[]}");
        let client = tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(&asked).await.unwrap();
            let mut raw = String::new();
            stream.read_to_string(&mut raw).await.unwrap();
            raw
        });
        provider.arrived(1).await;
        assert_eq!(provider.requests()[0].outcome, Outcome::Open);
        provider.release();
        assert_eq!(provider.ended(1).await, Outcome::Sent);
        assert!(client.await.unwrap().starts_with("HTTP/1.1 200 OK"));
    });
}

#[test]
fn one_connection_serves_many_requests() {
    use std::io::{Read, Write};
    let provider = FakeProvider::builder().script([Step::text("same").always()]).start().unwrap();
    let mut stream = std::net::TcpStream::connect(provider.address()).unwrap();
    let body = "{\"model\":\"m\",\"messages\":[]}";
    let asked =
        format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for n in 1..=3 {
        stream.write_all(asked.as_bytes()).unwrap();
        let mut raw = Vec::new();
        while !crate::client::parse(&raw).whole {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            raw.extend(byte);
        }
        assert_eq!(provider.count(), n);
    }
}
