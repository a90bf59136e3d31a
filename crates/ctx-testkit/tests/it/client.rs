//! A client that records every byte, and whether an answer was complete.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ctx_testkit::provider::FakeProvider;
use serde_json::Value;

/// The bytes received over one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// 0 if there was no status line.
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The body, with chunks joined.
    pub(crate) body: Vec<u8>,
    /// All bytes, unchanged.
    pub(crate) raw: Vec<u8>,
    /// Whether the body ended as HTTP requires.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns the data of each event, JSON or not; of each line if it is not an event stream.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = self.text().replace("\r\n", "\n");
        if self.header("content-type") != Some("text/event-stream") {
            return text.lines().map(str::to_owned).collect();
        }
        let data = |event: &str| {
            event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned)
        };
        text.split("\n\n").filter_map(data).collect()
    }

    /// Returns the events that are JSON.
    pub(crate) fn values(&self) -> Vec<Value> {
        self.events().iter().filter_map(|event| serde_json::from_str(event).ok()).collect()
    }

    /// Returns the strings at that pointer in all events, joined.
    pub(crate) fn joined(&self, pointer: &str) -> String {
        let values = self.values();
        values.iter().filter_map(|value| value.pointer(pointer)?.as_str()).collect()
    }
}

/// Sends bytes and reads until the other side closes.
pub(crate) fn exchange(provider: &FakeProvider, bytes: &[u8]) -> Answer {
    let mut stream = send(provider, bytes);
    let mut raw = Vec::new();
    // A reset ends the connection as well.
    let _ = stream.read_to_end(&mut raw);
    parse(&raw)
}

/// Sends bytes and returns the connection.
pub(crate) fn send(provider: &FakeProvider, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(provider.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Returns the bytes of a request whose connection closes after the answer.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn get(provider: &FakeProvider, path: &str) -> Answer {
    exchange(provider, &request("GET", path, "", ""))
}

pub(crate) fn post(provider: &FakeProvider, path: &str, body: &Value) -> Answer {
    exchange(provider, &request("POST", path, "", &body.to_string()))
}

pub(crate) fn parse(raw: &[u8]) -> Answer {
    let mut answer = Answer { raw: raw.to_vec(), ..Answer::default() };
    let Some(end) = raw.windows(4).position(|part| part == b"\r\n\r\n") else { return answer };
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    answer.status = status.parse().unwrap_or_default();
    answer.headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let rest = &raw[end + 4..];
    let length = answer.header("content-length").and_then(|n| n.parse::<usize>().ok());
    (answer.body, answer.whole) = match length {
        Some(length) => (rest.to_vec(), rest.len() == length),
        None => unchunked(rest),
    };
    answer
}

/// Joins the chunks, and returns whether the last one is there.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|part| part == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let Ok(size) = usize::from_str_radix(&size, 16) else { break };
        if size == 0 {
            return (body, true);
        }
        let from = end + 2;
        let to = (from + size).min(rest.len());
        body.extend_from_slice(&rest[from..to]);
        rest = rest.get(to + 2..).unwrap_or_default();
    }
    (body, false)
}
