//! A server that sends exactly the bytes a test scripts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ctx_core::{SummaryRequest, Tokens};
use ctx_model::{Api, Client, Endpoint, HttpModel, KeyRef, ModelFacts, Timeouts};
use serde_json::Value;

/// What the server does with a connection after reading the request.
pub(crate) enum Step {
    /// Sends bytes and continues.
    Send(Vec<u8>),
    /// Repeats the bytes until the client disconnects.
    Repeat(Vec<u8>),
    /// Keeps the connection open and silent.
    Hang,
}

/// A received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers the first connection with the first steps, the second with the second, and all later
    /// ones with the last.
    pub(crate) fn start(replies: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (at, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { return };
                let steps = &replies[at.min(replies.len() - 1)];
                log.lock().unwrap().push(read(&stream));
                if play(&mut stream, steps) {
                    open.push(stream);
                }
            }
        });
        Self { port, seen }
    }

    /// Answers every request with this response.
    pub(crate) fn with(response: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![vec![Step::Send(response.into())]])
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Seen {
    let mut reader = BufReader::new(stream);
    let mut seen = Seen::default();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or(0) > 0 {
        let text = line.trim_end().to_owned();
        line.clear();
        if text.is_empty() {
            break;
        }
        match text.split_once(": ") {
            Some((name, value)) => seen.headers.push((name.to_owned(), value.to_owned())),
            None => seen.line = text,
        }
    }
    let length = seen.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    seen.body = String::from_utf8_lossy(&body).into_owned();
    seen
}

/// Performs the steps, and returns whether to keep the connection open.
fn play(stream: &mut TcpStream, steps: &[Step]) -> bool {
    let _ = stream.set_nodelay(true);
    for step in steps {
        let sent = match step {
            Step::Send(bytes) => stream.write_all(bytes),
            Step::Repeat(bytes) => loop {
                if let Err(e) = stream.write_all(bytes) {
                    break Err(e);
                }
            },
            Step::Hang => return true,
        };
        if sent.is_err() {
            return false;
        }
    }
    false
}

/// Returns a response whose body ends when the connection closes.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}\r\n{body}")
}

pub(crate) fn stream(body: &str) -> String {
    response(200, "content-type: text/event-stream\r\n", body)
}

pub(crate) fn json(status: u16, body: &str) -> String {
    response(status, "content-type: application/json\r\n", body)
}

pub(crate) const KEY: &str = "sk-test-key-that-is-secret";

pub(crate) fn facts() -> ModelFacts {
    ModelFacts {
        name: "test/model-1".to_owned(),
        id: "model-1".to_owned(),
        window: Tokens(32_000),
        window_is_assumed: false,
        max_output: None,
        prices: None,
        reasoning: false,
        truncates: false,
    }
}

pub(crate) fn endpoint(server: &Server, api: Api) -> Endpoint {
    Endpoint::new(&server.url(), api).unwrap().with_key(KeyRef::parse(KEY).unwrap())
}

pub(crate) fn model(server: &Server, api: Api) -> HttpModel {
    HttpModel::new(facts(), endpoint(server, api), Arc::new(Client::default()))
}

pub(crate) fn model_with(server: &Server, api: Api, timeouts: Timeouts) -> HttpModel {
    HttpModel::new(facts(), endpoint(server, api), Arc::new(Client::new(timeouts)))
}

pub(crate) fn request() -> SummaryRequest {
    SummaryRequest {
        system: "You summarise.".to_owned(),
        prompt: "Summarise \"this\": 压缩".to_owned(),
        max_tokens: Tokens(500),
    }
}
