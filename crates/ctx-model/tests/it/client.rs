//! The HTTP client.

use std::io::Write;
use std::time::Duration;

use ctx_core::ErrorKind;
use ctx_model::{Client, Method, Request, Timeouts, Url, header::HeaderMap};

use crate::server::{Server, Step, response};

fn request(url: &str) -> Request {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", "sk-secret-of-mine".parse().unwrap());
    Request { method: Method::POST, url: Url::parse(url).unwrap(), headers, body: "payload".into() }
}

#[tokio::test]
async fn bytes_are_passed_through_unchanged() {
    let server = Server::with(response(201, "x-more: yes\r\n", "abc\0def"));
    let client = Client::default();
    let mut response = client.send(request(&server.url())).await.unwrap();
    assert_eq!(response.status.as_u16(), 201);
    assert_eq!(response.headers["x-more"], "yes");
    assert_eq!(response.body.read_up_to(5).await.unwrap(), b"abc\0d");
    let seen = &server.seen()[0];
    assert_eq!((seen.line.as_str(), seen.body.as_str()), ("POST / HTTP/1.1", "payload"));
    assert_eq!(seen.header("x-api-key"), Some("sk-secret-of-mine"));
    assert!(seen.header("user-agent").unwrap().starts_with("ctx/"));
    assert_eq!(seen.header("referer"), None);
}

#[tokio::test]
async fn a_redirect_is_followed_on_the_same_server_only() {
    let other = Server::with(response(200, "", "stolen"));
    for (status, location, follows) in [
        (307, "/elsewhere".to_owned(), true),
        (308, "/elsewhere?x=1".to_owned(), true),
        (302, "/elsewhere".to_owned(), false),
        (303, "/elsewhere".to_owned(), false),
        (307, other.url(), false),
        (308, other.url().replace("127.0.0.1", "localhost"), false),
        (307, "not a url:::".to_owned(), true),
        (307, String::new(), false),
    ] {
        let location =
            if location.is_empty() { location } else { format!("location: {location}\r\n") };
        let server = Server::start(vec![
            vec![Step::Send(response(status, &location, "").into())],
            vec![Step::Send(response(200, "", "here").into())],
        ]);
        let sent = Client::default().send(request(&server.url())).await;
        if follows {
            assert_eq!(sent.unwrap().body.read_up_to(9).await.unwrap(), b"here", "{location}");
            assert_eq!(server.seen()[1].body, "payload");
        } else {
            let error = sent.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Upstream, "{status} {location}");
            assert!(!error.is_retryable() && error.hint_text().unwrap().contains("base URL"));
        }
    }
    assert!(other.seen().is_empty(), "no key went to another host");
}

#[tokio::test]
async fn a_redirect_in_circles_ends() {
    let server = Server::with(response(307, "location: /again\r\n", ""));
    let error = Client::default().send(request(&server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Upstream);
    assert!(
        error.to_string().contains("too many redirects")
            && !error.to_string().contains("elsewhere")
    );
    assert!(server.seen().len() < 10);
}

#[tokio::test]
async fn an_anonymous_client_sends_no_user_agent() {
    let server = Server::with(response(200, "", ""));
    Client::default().anonymous().send(request(&server.url())).await.unwrap();
    assert_eq!(server.seen()[0].header("user-agent"), None);
}

#[tokio::test]
async fn waiting_for_a_silent_server_ends() {
    const SHORT: Duration = Duration::from_millis(60);
    let begun = || Step::Send(response(200, "", "begun").into());
    let cases: Vec<(Timeouts, Vec<Step>)> = vec![
        (Timeouts { first_byte: SHORT, ..Timeouts::default() }, vec![Step::Hang]),
        (Timeouts { idle: SHORT, ..Timeouts::default() }, vec![begun(), Step::Hang]),
        (Timeouts { whole: SHORT, ..Timeouts::default() }, vec![Step::Hang]),
        (Timeouts { whole: SHORT, ..Timeouts::default() }, vec![begun(), Step::Hang]),
        (
            Timeouts {
                whole: SHORT,
                idle: Duration::MAX,
                first_byte: Duration::MAX,
                ..Timeouts::default()
            },
            vec![Step::Hang],
        ),
    ];
    for (timeouts, steps) in cases {
        let server = Server::start(vec![steps]);
        let client = Client::new(timeouts);
        let all = async {
            let mut response = client.send(request(&server.url())).await?;
            response.body.read_up_to(usize::MAX).await
        };
        let error = all.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn an_unreachable_server_is_a_retryable_error() {
    // The port was free a moment ago; no process listens on it now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Client::default()
        .send(request(&format!("http://127.0.0.1:{port}/?key=sk-secret-of-mine")))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Upstream);
    assert!(error.is_retryable());
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(!format!("{error:?} {error}").contains("sk-secret"));
}

#[test]
fn a_call_outside_of_a_runtime_is_an_error_and_not_a_panic() {
    let client = Client::default();
    let mut sending = Box::pin(client.send(request("http://127.0.0.1:9")));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match sending.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::Contract),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tls_is_set_up_before_it_fails() {
    // The other side does not speak TLS, so the handshake fails: no certificate, no panic.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let error = Client::default().send(request(&url)).await.unwrap_err();
    server.join().unwrap();
    assert!(matches!(error.kind(), ErrorKind::Upstream | ErrorKind::Io), "{error}");
}
