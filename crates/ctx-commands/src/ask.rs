//! Requests to a server on this machine.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use ctx_trace::stats::Status;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends a request to a server on this machine, and returns the whole answer: head and body.
pub(crate) fn ask(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> ctx_core::Result<String> {
    let host = url.trim_start_matches("http://");
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = body.len();
    head.push_str(&format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n"));
    let exchange = || {
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    exchange().map_err(|error: std::io::Error| {
        Error::new(ErrorKind::Io, "the proxy does not answer")
            .with("url", url)
            .with("cause", &error)
            .hint("see proxy/serve.log in the home folder")
            .source(error)
    })
}

/// Whether a proxy got requests since a time in milliseconds; `None` if it does not answer.
pub(crate) fn has_passed(url: &str, since: i64) -> Option<bool> {
    let said = json(url, &format!("/api/status?since={since}"))?;
    Some(said["requests"].as_u64()? > 0)
}

/// Returns the status of the newest conversation in a folder, or in an unknown one, with a request since
/// a time in milliseconds.
pub(crate) fn status(url: &str, since: i64, folder: &str) -> Option<Status> {
    let folder = utf8_percent_encode(folder, NON_ALPHANUMERIC);
    let path = format!("/api/status?since={since}&project={folder}");
    serde_json::from_value(json(url, &path)?["status"].take()).ok()
}

fn json(url: &str, path: &str) -> Option<Value> {
    let answer = ask(url, "GET", path, &[], "").ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}
