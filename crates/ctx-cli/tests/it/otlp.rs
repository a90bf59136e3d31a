//! Spans of a conversation, and collectors that accept them or fail.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::support::{Ran, Room};

/// Starts a collector with this answer. Returns its address and the received requests.
fn collector(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    let (sender, sent) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A broken connection shows as a missing request.
            let _ = take(stream, answer, &sender);
        }
    });
    (place, sent)
}

/// Reads one request, and reports it before it is answered.
fn take(stream: TcpStream, answer: &str, sent: &Sender<String>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    while !request.ends_with("\r\n\r\n") {
        let began = request.len();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        if let Some(number) = request[began..].to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    // The receiver may be gone.
    let _ = sent.send(request + &String::from_utf8_lossy(&body));
    if answer.is_empty() {
        // Waits until the client closes the connection.
        stream.read_to_end(&mut Vec::new())?;
    }
    stream.get_mut().write_all(answer.as_bytes())
}

/// Runs a conversation of one message with a collector at `place`.
fn chat(place: &str) -> Ran {
    let room = Room::new();
    let mut command = room.command(&["chat", "--demo", "-p", "hello"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{place}"));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue").current_dir(room.path(""));
    Ran::of(&mut command)
}

/// Checks that the conversation succeeded, and that there is one message about the collector.
fn told(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.trim().is_empty());
    let told: Vec<_> = ran.stderr.lines().filter(|line| line.contains("OTLP collector")).collect();
    assert_eq!(told.len(), 1, "{}", ran.stderr);
    assert!(told[0].starts_with("warning: spans were not sent"), "{}", told[0]);
    // The message may be wrapped over several lines.
    ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_collector_gets_the_spans_of_a_conversation() {
    let (place, sent) =
        collector("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let ran = chat(&place);
    assert_eq!((ran.code, ran.stderr.contains("OTLP")), (Some(0), false), "{}", ran.stderr);
    let sent: Vec<_> = sent.try_iter().collect();
    for request in &sent {
        assert!(request.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nx-team: blue\r\n"), "{request}");
    }
    let all = sent.concat();
    for part in ["turn", "request", "assemble", "service.name", "agent:demo:"] {
        assert!(all.contains(part), "{part} in {all}");
    }
    // Message texts are not sent.
    assert!(!all.contains("hello"), "{all}");
}

#[test]
fn spans_rejected_by_a_collector_cause_one_warning() {
    let (place, _sent) =
        collector("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let said = told(&chat(&place));
    assert!(said.contains("it answered 404 Not Found"), "{said}");
}

#[test]
fn a_collector_that_never_answers_does_not_end_the_conversation() {
    let (place, sent) = collector("");
    told(&chat(&place));
    assert!(sent.try_iter().next().is_some());
}

#[test]
fn an_unreachable_collector_causes_one_warning() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let said = told(&chat(&place));
    assert!(said.contains(&place), "{said}");
}
