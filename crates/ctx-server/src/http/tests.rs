//! Tests of access control and shutdown.

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::routing::get;
use axum::{Extension, Router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::guard::Guard;
use super::*;

fn guard(listen: &str, token: Option<&str>) -> Guard {
    let mut server = Server::new(listen.parse().unwrap());
    server.token = token.map(|token| Token::new(token).unwrap());
    server.hosts = vec!["box.example".to_owned()];
    server.origins = vec!["app://obsidian.md".to_owned()];
    Guard { address: server.listen, server }
}

fn get_request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Returns the status of a refusal, or whether the request may write.
fn admission(guard: &Guard, path: &str, headers: &[(&str, &str)]) -> Result<bool, u16> {
    let admitted =
        guard.admit(get_request(path, headers)).map_err(|refused| refused.status().as_u16())?;
    Ok(admitted.extensions().get::<Access>().unwrap().writes)
}

#[test]
fn a_foreign_name_that_resolves_to_this_server_is_refused() {
    let guard = guard("127.0.0.1:8787", None);
    for host in ["127.0.0.1:8787", "localhost:8787", "LOCALHOST", "[::1]:8787", "box.example"] {
        assert_eq!(admission(&guard, "/", &[("host", host)]), Ok(false), "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8787",
        "localhost.evil.example",
        "192.168.1.4",
        "",
        "127.0.0.1:1@evil.example",
        "127.0.0.1:1/x",
    ] {
        assert_eq!(admission(&guard, "/", &[("host", host)]), Err(403), "{host}");
    }
}

#[test]
fn a_host_name_in_the_request_line_is_checked() {
    let guard = guard("127.0.0.1:8787", None);
    let host = [("host", "127.0.0.1:8787")];
    assert_eq!(admission(&guard, "http://127.0.0.1:8787/v1/models", &host), Ok(false));
    assert_eq!(admission(&guard, "http://evil.example/v1/models", &host), Err(403));
    assert_eq!(admission(&guard, "http://evil.example/v1/models", &[]), Err(403));
    assert_eq!(admission(&guard, "/v1/models", &[]), Err(403), "no server is named");
}

#[tokio::test]
async fn a_token_sent_to_a_server_without_a_token_is_reported() {
    let guard = guard("127.0.0.1:8787", None);
    for (path, headers) in [
        ("/t/a-long-token/v1/models", &[("host", "localhost")][..]),
        ("/v1/models", &[("host", "localhost"), ("x-ctx-token", "a-long-token")]),
    ] {
        let refused = guard.admit(get_request(path, headers)).unwrap_err();
        assert_eq!(refused.status(), 401);
        let body = axum::body::to_bytes(refused.into_body(), 4_096).await.unwrap();
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("has none") && body.contains("--token"), "{body}");
    }
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let guard = guard("127.0.0.1:8787", None);
    let with = |origin| admission(&guard, "/", &[("host", "localhost:8787"), ("origin", origin)]);
    assert_eq!(with("http://localhost:8787"), Ok(false));
    assert_eq!(with("app://obsidian.md"), Ok(false));
    for origin in ["http://evil.example", "null", "http://localhost:9999", "file://localhost:8787"]
    {
        assert_eq!(with(origin), Err(403), "{origin}");
    }
    let own = ("origin", "http://localhost:8787");
    for second in ["http://localhost:8787", "http://evil.example"] {
        let headers = [("host", "localhost:8787"), own, ("origin", second)];
        assert_eq!(admission(&guard, "/", &headers), Err(403), "{second}");
    }
}

#[test]
fn requests_of_another_site_without_an_origin_are_refused() {
    let guard = guard("127.0.0.1:8787", None);
    let with = |path, site| {
        admission(&guard, path, &[("host", "localhost:8787"), ("sec-fetch-site", site)])
    };
    for site in ["cross-site", "same-site", "x"] {
        assert_eq!(with("/v1/models", site), Err(403), "{site}");
        assert_eq!(with("/", site), Ok(false), "a link to the page: {site}");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(with("/v1/models", site), Ok(false), "{site}");
    }
}

#[tokio::test]
async fn a_refusal_uses_the_protocol_of_the_client() {
    let guard = guard("127.0.0.1:8787", None);
    for (path, at) in [
        ("/v1/messages", "/error/type"),
        ("/v1/chat/completions", "/error/code"),
        ("/v1beta/models/m:generateContent", "/error/status"),
        ("/v1/models", "/error/kind"),
    ] {
        for (headers, status) in [
            ([("host", "localhost"), ("x-ctx-token", "a-long-token")], 401),
            ([("host", "localhost"), ("origin", "http://evil.example")], 403),
        ] {
            let refused = guard.admit(get_request(path, &headers)).unwrap_err();
            assert_eq!(refused.status(), status);
            let body = axum::body::to_bytes(refused.into_body(), 4_096).await.unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert!(body.pointer(at).is_some_and(serde_json::Value::is_string), "{path} {body}");
        }
    }
}

#[tokio::test]
async fn a_browser_is_told_that_a_listed_origin_is_allowed() {
    let mut server = Server::new("127.0.0.1:0".parse().unwrap());
    server.origins = vec!["app://obsidian.md".to_owned()];
    let bound = server.bind().await.unwrap();
    let (address, shutdown) = (bound.address(), Shutdown::default());
    let router = Router::new().fallback(|| async { "answered" });
    let running = tokio::spawn(bound.serve(router, shutdown.clone()));
    for (line, more, is_answered) in [
        (
            "OPTIONS /v1/messages",
            "access-control-request-method: POST\r\n\
          access-control-request-headers: x-api-key\r\n",
            false,
        ),
        ("POST /v1/messages", "", true),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\norigin: app://obsidian.md\r\n{more}\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("access-control-allow-origin: app://obsidian.md"), "{answer}");
        assert_eq!(answer.contains("access-control-allow-headers: x-api-key"), !is_answered);
        assert_eq!(answer.contains("answered"), is_answered, "{answer}");
    }
    shutdown.stop();
    running.await.unwrap();
}

#[test]
fn a_token_is_required_beyond_loopback_and_allows_writes() {
    let open = guard("0.0.0.0:8787", Some("a-long-token"));
    let near = guard("127.0.0.1:8787", Some("a-long-token"));
    let host = ("host", "10.0.0.5:8787");
    assert_eq!(admission(&open, "/v1/models", &[host]), Err(401));
    assert_eq!(admission(&near, "/v1/models", &[("host", "localhost")]), Ok(false));
    for guard in [&open, &near] {
        let shown = [
            admission(guard, "/t/a-long-token/v1/models", &[host]),
            admission(guard, "/v1/models", &[host, ("x-ctx-token", "a-long-token")]),
            admission(guard, "/v1/models", &[host, ("authorization", "Bearer a-long-token")]),
        ];
        assert_eq!(shown, [Ok(true); 3]);
        assert_eq!(admission(guard, "/t/a-wrong-token/v1/models", &[host]), Err(401));
        assert_eq!(admission(guard, "/v1/models", &[host, ("x-ctx-token", "a-long")]), Err(401));
    }
}

#[test]
fn the_token_is_removed_and_the_provider_key_is_forwarded() {
    let guard = guard("127.0.0.1:8787", Some("a-long-token"));
    let host = ("host", "localhost");
    let headers = [host, ("x-ctx-token", "a-long-token"), ("authorization", "Bearer sk-1")];
    let request = guard.admit(get_request("/t/a-long-token/v1/models?limit=2", &headers)).unwrap();
    assert_eq!(request.uri(), "/v1/models?limit=2");
    assert!(request.headers().get("x-ctx-token").is_none());
    assert_eq!(request.headers()["authorization"], "Bearer sk-1");
    let headers = [host, ("authorization", "Bearer a-long-token")];
    let request = guard.admit(get_request("/t/a-long-token", &headers)).unwrap();
    assert_eq!(request.uri(), "/");
    assert!(request.headers().get("authorization").is_none());
}

#[tokio::test]
async fn a_public_address_requires_a_token() {
    let error = Server::new("0.0.0.0:0".parse().unwrap()).bind().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(Token::new("short").is_err() && Token::new("with a/slash").is_err());
}

/// Returns a server whose only response streams the texts sent through the channel.
async fn streaming() -> (SocketAddr, mpsc::Sender<String>, Shutdown, tokio::task::JoinHandle<()>) {
    streaming_by(Server::new("127.0.0.1:0".parse().unwrap())).await
}

async fn streaming_by(
    mut server: Server,
) -> (SocketAddr, mpsc::Sender<String>, Shutdown, tokio::task::JoinHandle<()>) {
    let (pieces, received) = mpsc::channel::<String>(1);
    let received = Arc::new(tokio::sync::Mutex::new(received));
    let stream = move || {
        let received = received.clone();
        async move {
            Body::from_stream(futures_util::stream::unfold(received, |received| async move {
                let piece = received.lock().await.recv().await?;
                Some((Ok::<_, std::io::Error>(Bytes::from(piece)), received))
            }))
        }
    };
    let router = Router::new().route("/", get(stream));
    server.grace = Duration::from_secs(600);
    let bound = server.bind().await.unwrap();
    let (address, shutdown) = (bound.address(), Shutdown::default());
    let running = tokio::spawn(bound.serve(router, shutdown.clone()));
    (address, pieces, shutdown, running)
}

async fn ask(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    stream
}

async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut all, mut piece) = (Vec::new(), [0; 256]);
    while !String::from_utf8_lossy(&all).contains(wanted) {
        let read = stream.read(&mut piece).await.unwrap_or(0);
        if read == 0 {
            break;
        }
        all.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn shutdown_finishes_a_running_answer() {
    let (address, pieces, shutdown, running) = streaming().await;
    let mut client = ask(address).await;
    pieces.send("one".to_owned()).await.unwrap();
    assert!(read_until(&mut client, "one").await.contains("one"));
    shutdown.stop();
    pieces.send("two".to_owned()).await.unwrap();
    drop(pieces);
    assert!(read_until(&mut client, "\r\n0\r\n\r\n").await.contains("two"));
    running.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn the_second_stop_is_immediate() {
    let (address, pieces, shutdown, running) = streaming().await;
    let mut client = ask(address).await;
    pieces.send("one".to_owned()).await.unwrap();
    read_until(&mut client, "one").await;
    shutdown.stop();
    shutdown.stop();
    running.await.unwrap();
    assert!(!read_until(&mut client, "\r\n0\r\n\r\n").await.contains("0\r\n\r\n"));
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_client_that_reads_nothing() {
    let mut server = Server::new("127.0.0.1:0".parse().unwrap());
    server.unread = Duration::from_millis(50);
    let (address, pieces, shutdown, running) = streaming_by(server).await;
    let _client = ask(address).await;
    // More than any connection can buffer.
    pieces.send("x".repeat(64 << 20)).await.unwrap();
    shutdown.stop();
    let ended = tokio::time::timeout(Duration::from_secs(60), running).await;
    ended.expect("the connection ends by itself, long before the grace period ends").unwrap();
}

#[tokio::test]
async fn the_rights_of_a_request_reach_its_handler() {
    let router = Router::new().route(
        "/",
        get(|Extension(access): Extension<Access>| async move {
            if access.writes { StatusCode::OK } else { StatusCode::FORBIDDEN }
        }),
    );
    let mut server = Server::new("127.0.0.1:0".parse().unwrap());
    server.token = Some(Token::new("a-long-token").unwrap());
    let bound = server.bind().await.unwrap();
    let (address, shutdown) = (bound.address(), Shutdown::default());
    let running = tokio::spawn(bound.serve(router, shutdown.clone()));
    let mut client = ask(address).await;
    assert!(read_until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 403"));
    client.write_all(b"GET /t/a-long-token/ HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(read_until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    shutdown.stop();
    running.await.unwrap();
}
