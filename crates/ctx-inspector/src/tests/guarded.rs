//! The inspector behind the guard of a server.

use ctx_server::http::{Server, Token};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::*;

/// Starts a server with a token. Returns its address, the session's id, its shutdown and its task.
async fn served(place: &Place) -> (String, String, Shutdown, tokio::task::JoinHandle<()>) {
    let file = place.transcript("one.jsonl", 2, 3);
    let replays = place.replays(&[&file]);
    let id = replays.find(file.to_str().unwrap()).unwrap();
    let shutdown = Shutdown::default();
    let inspector = Inspector::new(replays, place.memory(), shutdown.clone()).with_token(true);
    let token = Some(Token::new("a-token-of-tests").unwrap());
    let server = Server { token, ..Server::new(([127, 0, 0, 1], 0).into()) };
    let bound = server.bind().await.unwrap();
    let at = bound.address().to_string();
    let running = tokio::spawn(bound.serve(inspector.router(), shutdown.clone()));
    (at, id, shutdown, running)
}

async fn send(at: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_from_other_pages_or_with_other_host_names_are_refused() {
    let place = Place::new();
    let (at, id, shutdown, running) = served(&place).await;
    let undo = format!("POST /api/sessions/{id}/compactions/x/undo HTTP/1.1\r\nHost: {at}");
    for (head, status) in [
        (format!("GET /api/sessions HTTP/1.1\r\nHost: {at}"), "200"),
        (format!("GET / HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}"), "200"),
        (format!("GET /api/sessions HTTP/1.1\r\nHost: {at}\r\nOrigin: http://evil.example"), "403"),
        (format!("GET /api/sessions HTTP/1.1\r\nHost: {at}\r\nOrigin: null"), "403"),
        ("GET /api/sessions HTTP/1.1\r\nHost: evil.example".to_owned(), "403"),
        (undo.clone(), "403"),
        (format!("{undo}\r\nAuthorization: Bearer a-guess-of-mine"), "403"),
        (format!("{undo}\r\nOrigin: http://evil.example"), "403"),
    ] {
        let answer = send(&at, &head).await;
        assert!(answer.contains(status), "{head}: {answer}");
    }
    shutdown.stop();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_starts_at_once_and_ends_with_the_server() {
    let place = Place::new();
    let (at, id, shutdown, running) = served(&place).await;
    let stream = TcpStream::connect(&at).await.unwrap();
    let mut stream = BufReader::new(stream);
    let head = format!("GET /api/events?session={id} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut line = String::new();
    while !line.contains("event: hello") {
        line.clear();
        assert!(stream.read_line(&mut line).await.unwrap() > 0, "the stream ended");
    }
    shutdown.stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    running.await.unwrap();
}
