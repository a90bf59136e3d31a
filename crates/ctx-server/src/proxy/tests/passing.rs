//! Requests that pass unchanged.

use ctx_testkit::provider::{Cut, FailureKind, FakeProvider, Moment, Outcome, Step};

use super::*;

fn provider(script: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(script).respond(|_| Step::text("hello")).start().unwrap()
}

/// Returns a response without its time-dependent headers.
fn content(got: Got) -> (StatusCode, HeaderMap, String) {
    let mut headers = got.headers;
    for name in ["date", "transfer-encoding", "connection"] {
        headers.remove(name);
    }
    (got.status, headers, got.body)
}

#[tokio::test]
async fn an_unknown_api_with_a_history_is_warned_of_once() {
    let rig = Rig::new(FakeProvider::builder().start().unwrap(), Set::default()).await;
    let body = json!({ "model": "m", "messages": [user("hi")] });
    for path in ["/v2/chat", "/v2/chat", "/v1/messages/count_tokens"] {
        rig.post(path, &body).await;
    }
    rig.post("/v1/embeddings", &json!({ "model": "m", "input": ["hi"] })).await;
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.len() == 1 && warnings[0].contains("/v2/chat"), "{warnings:?}");
}

#[tokio::test]
async fn a_request_that_fits_and_its_answer_pass_byte_for_byte() {
    let (rig, twin) = (Rig::new(provider([]), Set::default()).await, provider([]));
    // Spaces, order and unknown fields.
    let body = r#"{ "model":"m",  "unheard": [1.50, {"of":null}],
        "messages":[ {"content":"hi","role":"user","x":1e3} ], "stream":true }"#;
    for stream in [true, false] {
        let body = body.replace("true", &stream.to_string());
        let headers = [("authorization", "Bearer k"), ("x-extra", "1"), ("anthropic-beta", "a")];
        let path = "/v1/chat/completions?api-version=2";
        let through = rig.send(Method::POST, path, &headers, body.clone()).await;
        let asked = rig.last();
        assert_eq!(asked.body, body.as_bytes());
        assert_eq!(asked.path, path);
        assert_eq!((asked.key(), asked.header("x-extra")), (Some("k"), Some("1")));
        let direct =
            send(&rig.client, &twin.url(), Method::POST, path, &headers, body.into()).await;
        assert_eq!(content(through), content(direct));
    }
}

#[tokio::test]
async fn every_api_passes_streamed_and_whole() {
    let (rig, twin) = (Rig::new(provider([]), Set::default()).await, provider([]));
    let (chat, responses, messages) =
        ("/v1/chat/completions", "/v1/responses", "/v1/messages?beta=true");
    for (path, history) in [
        (chat, json!({ "messages": [user("hi")] })),
        (responses, json!({ "input": [{ "type": "message", "role": "user", "content": "hi" }] })),
        (responses, json!({ "input": "hi" })),
        (messages, json!({ "messages": [user("hi")], "system": "s", "max_tokens": 100 })),
    ] {
        for stream in [true, false] {
            let mut body = history.clone();
            body["model"] = "m".into();
            body["stream"] = stream.into();
            let through = rig.post(path, &body).await;
            assert_eq!(rig.last().body, body.to_string().as_bytes());
            let headers = [("authorization", "Bearer k"), ("content-type", "application/json")];
            let body = Bytes::from(body.to_string());
            let direct = send(&rig.client, &twin.url(), Method::POST, path, &headers, body).await;
            assert_eq!(content(through), content(direct), "{path} {stream}");
        }
    }
    let sessions = rig.proxy.trace().sessions();
    let all = sessions.iter().flat_map(|session| &session.requests);
    assert_eq!(all.filter(|record| record.outcome == ctx_trace::RequestOutcome::Ok).count(), 8);
}

#[tokio::test]
async fn requests_other_than_conversations_pass() {
    let rig = Rig::new(provider([]), Set::default()).await;
    let got = rig.send(Method::GET, "/v1/models", &[("authorization", "Bearer k")], "").await;
    assert_eq!(got.status, 200);
    assert_eq!(got.json()["data"][0]["id"], "fake-model");
    assert_eq!(rig.last().key(), Some("k"));
    let body = json!({ "model": "m", "messages": [user("count this")] });
    let counted = rig.post("/v1/messages/count_tokens", &body).await;
    assert!(counted.json()["input_tokens"].as_u64().is_some_and(|n| n > 0), "{counted:?}");
    let got = rig.send(Method::GET, "/no/such/thing", &[], "").await;
    let direct = rig.provider.url();
    let direct = send(&rig.client, &direct, Method::GET, "/no/such/thing", &[], Bytes::new()).await;
    assert_eq!(content(got), content(direct));
    assert!(rig.proxy.trace().sessions().is_empty());
}

#[tokio::test]
async fn a_base_url_may_omit_its_version() {
    for base in ["", "/v1", "/v1/"] {
        let rig = Rig::new(provider([]), Set { base, ..Set::default() }).await;
        for path in ["/v1/chat/completions", "/chat/completions"] {
            let body = json!({ "model": "m", "messages": [user("hi")] });
            assert_eq!(rig.post(path, &body).await.status, 200);
            assert_eq!(rig.last().path, "/v1/chat/completions", "{base} {path}");
        }
    }
}

#[tokio::test]
async fn refusals_other_than_overflows_pass_unchanged() {
    let failures = [
        FailureKind::RateLimited,
        FailureKind::TokensPerMinute,
        FailureKind::Unauthorized,
        FailureKind::BadGateway,
        FailureKind::Overloaded,
        FailureKind::UnsupportedParameter,
    ];
    for kind in failures {
        let rig = Rig::new(provider([Step::error(kind).times(2)]), Set::default()).await;
        let through = rig.chat(&[user("hi")]).await;
        let body = json!({ "model": "m", "messages": [user("hi")] }).to_string();
        let headers = [("authorization", "Bearer k"), ("content-type", "application/json")];
        let path = "/v1/chat/completions";
        let direct = rig.provider.url();
        let direct = send(&rig.client, &direct, Method::POST, path, &headers, body.into()).await;
        assert_eq!(content(through), content(direct), "{kind:?}");
        assert_eq!(rig.provider.count(), 2, "{kind:?}");
        assert_eq!(rig.records().await[0].outcome, ctx_trace::RequestOutcome::Refused);
    }
}

#[tokio::test]
async fn an_answer_is_streamed_to_the_client() {
    let rig = Rig::new(
        provider([Step::text("one two three").held_at(Moment::AfterEvents(3))]),
        Set::default(),
    )
    .await;
    let body = json!({ "model": "m", "messages": [user("hi")], "stream": true }).to_string();
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let mut response = rig.client.send(request).await.unwrap();
    let first = response.body.chunk().await.unwrap().expect("the beginning of the answer");
    assert!(!first.is_empty());
    rig.provider.release();
    let rest = response.body.read_up_to(1 << 20).await.unwrap();
    assert!(String::from_utf8(rest).unwrap().contains("[DONE]"));
}

#[tokio::test]
async fn a_disconnected_client_ends_the_provider_request() {
    let rig = Rig::new(provider([Step::endless("and so on")]), Set::default()).await;
    let body = json!({ "model": "m", "messages": [user("hi")], "stream": true }).to_string();
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let mut response = rig.client.send(request).await.unwrap();
    response.body.chunk().await.unwrap().expect("the beginning of the answer");
    let mut events = rig.proxy.trace().subscribe();
    drop(response);
    assert_eq!(rig.provider.ended(1).await, Outcome::Abandoned);
    let record = loop {
        if let ctx_trace::TraceEvent::Recorded(record) = events.recv().await.unwrap() {
            break record;
        }
    };
    assert_eq!(record.outcome, ctx_trace::RequestOutcome::Abandoned);
}

#[tokio::test]
async fn a_client_disconnected_while_waiting_ends_the_provider_request() {
    let rig = Rig::new(provider([Step::text("late").held()]), Set::default()).await;
    let body = json!({ "model": "m", "messages": [user("hi")] }).to_string();
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    {
        let sent = rig.client.send(request);
        tokio::select! {
            answer = sent => panic!("unexpected answer: {answer:?}"),
            () = rig.provider.arrived(1) => {}
        }
    }
    assert_eq!(rig.provider.ended(1).await, Outcome::Abandoned);
}

#[tokio::test]
async fn a_truncated_provider_answer_is_detected() {
    let steps = [
        Step::text("a b c d").cut(Cut::AfterEvents(3)),
        Step::garbage(),
        Step::raw(200, "text/html", "<html>maintenance</html>"),
    ];
    let rig = Rig::new(provider(steps), Set::default()).await;
    let body = json!({ "model": "m", "messages": [user("hi")], "stream": true }).to_string();
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let mut response = rig.client.send(request).await.unwrap();
    let mut broke = false;
    loop {
        match response.body.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => {
                broke = true;
                break;
            }
        }
    }
    assert!(broke, "a stream that was cut must not look whole");
    let got = rig.chat(&[user("hi")]).await;
    assert_eq!(got.status, 502, "{got:?}");
    assert!(got.json()["error"]["message"].as_str().is_some_and(|text| text.contains("broke off")));
    let got = rig.chat(&[user("hi")]).await;
    assert_eq!((got.status.as_u16(), &*got.body), (200, "<html>maintenance</html>"));
}

#[tokio::test]
async fn the_proxy_adds_no_user_agent() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let rig = Rig::new(provider([]), Set::default()).await;
    let address = rig.url.strip_prefix("http://").unwrap();
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    for path in ["/v1/chat/completions", "/v1/embeddings"] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
            content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(rig.last().header("user-agent"), None, "{path}");
    }
    let got = rig.send(Method::GET, "/v1/models", &[("user-agent", "me/1")], "").await;
    assert_eq!((got.status.as_u16(), rig.last().header("user-agent")), (200, Some("me/1")));
}
