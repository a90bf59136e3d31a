//! Clients that disconnect, and invalid answers.

use ctx_testkit::provider::{
    Cut, Failure, FailureKind, FakeProvider, Moment, Reply, RetryAfter, Step,
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

fn provider(steps: impl IntoIterator<Item = Step>) -> FakeProvider {
    FakeProvider::builder().script(steps).respond(|_| Step::text("done")).start().unwrap()
}

#[tokio::test]
async fn a_summary_is_kept_if_its_client_disconnects() {
    // A summary request has no tools.
    let provider = FakeProvider::builder().respond(|asked| match asked.json["tools"].is_array() {
        true => Step::text("done"),
        false => Step::new(Reply::Summary).held(),
    });
    let config = "{ server: { summaries: 'upstream', backgroundRatio: 1 } }";
    let rig = Rig::new(provider.start().unwrap(), Set { config, ..Set::default() }).await;
    let tools = json!([{ "type": "function", "function": { "name": "read" } }]);
    let body = json!({ "model": "m", "messages": talk(40, 600), "tools": tools });
    tokio::select! {
        answer = rig.post("/v1/chat/completions", &body) => {
            panic!("unexpected answer: {answer:?}")
        }
        () = rig.provider.arrived(1) => {}
    }
    rig.provider.release_all();
    assert_eq!(rig.post("/v1/chat/completions", &body).await.status, 200);
    assert!(rig.last().prompt.tokens() < 12_500);
    let records = rig.records().await;
    assert!(records[0].compaction.is_none(), "it was summarised before this request");
}

#[tokio::test]
async fn a_truncated_refusal_keeps_its_status_and_headers() {
    let busy = Failure::new(FailureKind::RateLimited).retry_after(RetryAfter::Seconds(7));
    let rig = Rig::new(provider([Step::error(busy).cut(Cut::AfterHeaders)]), Set::default()).await;
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let body = json!({ "model": "m", "messages": [user("hi")] }).to_string();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let response = rig.client.send(request).await.unwrap();
    assert_eq!(response.status, 429);
    assert_eq!(response.headers["retry-after"], "7");
}

#[tokio::test]
async fn an_unexpectedly_compressed_answer_is_not_held() {
    let body = "x".repeat(64);
    let mut step = Step::raw(200, "text/event-stream", body);
    if let Reply::Raw(raw) = &mut step.reply {
        raw.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
    }
    let rig = Rig::new(provider([step.stalled_at(Moment::AfterHeaders)]), Set::default()).await;
    let url = Url::parse(&format!("{}/v1/chat/completions", rig.url)).unwrap();
    let body = json!({ "model": "m", "messages": [user("hi")], "stream": true }).to_string();
    let request =
        Request { method: Method::POST, url, headers: HeaderMap::new(), body: body.into() };
    let response = rig.client.send(request).await.unwrap();
    assert_eq!(response.headers["content-encoding"], "gzip");
    assert_eq!(rig.last().header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn not_modified_is_not_treated_as_a_redirect() {
    let rig = Rig::new(provider([Step::raw(304, "text/plain", "")]), Set::default()).await;
    let got = rig.chat(&[user("hi")]).await;
    assert_eq!(got.status, 304);
}

/// Sends a request without its body, and returns once the server waits for the body.
async fn stalled(address: &str, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
         expect: 100-continue\r\n{head}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test]
async fn stalled_bodies_do_not_block_other_requests() {
    let rig = Rig::new(provider([]), Set::default()).await;
    let address = rig.url.strip_prefix("http://").unwrap();
    let mut open = Vec::new();
    for n in 0..64 {
        let heads = [
            "transfer-encoding: chunked",
            "content-encoding: gzip\r\ncontent-length: 10",
            "content-length: 64000000",
        ];
        open.push(stalled(address, heads[n % 3]).await);
    }
    assert_eq!(rig.chat(&[user("hi")]).await.status, 200);
    assert_eq!(rig.send(Method::GET, "/v1/models", &[], "").await.status, 200);
    assert_eq!(rig.send(Method::GET, "/healthz", &[], "").await.body, "ok\n");
}

#[tokio::test]
async fn small_bodies_do_not_wait_for_large_ones_and_health_reports_waiting() {
    let rig = Rig::new(provider([]), Set::default()).await;
    let all = u32::try_from(body::BodyMemory::KIB).unwrap();
    let _large = rig.proxy.space.rest.clone().acquire_many_owned(all).await.unwrap();
    assert_eq!(rig.chat(&[user("x".repeat(900_000))]).await.status, 200);
    assert_eq!(rig.send(Method::GET, "/healthz", &[], "").await.status, 200);
    let small = rig.proxy.space.first.clone().acquire_many_owned(all).await.unwrap();
    assert_eq!(rig.send(Method::GET, "/v1/models", &[], "").await.status, 200, "it has no body");
    assert_eq!(rig.send(Method::GET, "/healthz", &[], "").await.status, 503);
    drop(small);
    assert_eq!(rig.send(Method::GET, "/healthz", &[], "").await.status, 200);
}

/// Starts a server that answers each request with these bytes, once or endlessly. Returns its URL
/// and the number of its requests.
async fn raw(answer: &'static str, endless: bool) -> (String, Arc<AtomicU64>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, count) = (format!("http://{}", listener.local_addr().unwrap()), Arc::default());
    let counter: Arc<AtomicU64> = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
                if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            counter.fetch_add(1, Ordering::SeqCst);
            while stream.write_all(answer.as_bytes()).await.is_ok() && endless {}
        }
    });
    (url, count)
}

#[tokio::test]
async fn a_request_with_a_truncated_answer_is_not_repeated() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-ty", "HTTP/1.1 200 OK\r\n\x01: x\r\n\r\n"] {
        let (url, count) = raw(answer, false).await;
        let rig = Rig::before(url).await;
        assert_eq!(rig.chat(&[user("hi")]).await.status, 502, "{answer:?}");
        assert_eq!(count.load(Ordering::SeqCst), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_forwarded_is_refused() {
    for (answer, words) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n\
             10\r\n{\"a\": \"01234567\"}\r\n0\r\n\r\n",
            "content-length and transfer-encoding",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
            "another protocol",
        ),
    ] {
        let (url, count) = raw(answer, false).await;
        let rig = Rig::before(url).await;
        let got = rig.chat(&[user("hi")]).await;
        assert_eq!(got.status, 502, "{got:?}");
        assert!(got.body.contains(words), "{got:?}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn endless_early_hints_time_out() {
    let (url, count) = raw("HTTP/1.1 103 Early Hints\r\n\r\n", true).await;
    let config = "{ server: { timeouts: { firstByte: 1 } } }";
    let provider = FakeProvider::builder().start().unwrap();
    let rig = Rig::new(provider, Set { config, upstream: Some(url), ..Set::default() }).await;
    assert_eq!(rig.chat(&[user("hi")]).await.status, 504);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
