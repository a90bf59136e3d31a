//! Access control over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Serving, home};

#[test]
fn a_server_over_http_refuses_other_names_and_other_pages() {
    let room = home();
    let serving = Serving::start(&room);
    let address = serving.url.strip_prefix("http://").and_then(|url| url.split('/').next());
    let address = address.expect("a URL with a host");
    let status = |host: &str, origin: Option<&str>| {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let answer = lists_tools(address, &format!("Host: {host}\r\n{origin}"));
        answer.split(' ').nth(1).map(str::to_owned)
    };
    let of = |code: &str| Some(code.to_owned());
    assert_eq!(status(address, None), of("200"));
    assert_eq!(status(address, Some(&format!("http://{address}"))), of("200"));
    assert_eq!(status("evil.example", None), of("403"));
    assert_eq!(status(address, Some("http://evil.example")), of("403"));
    assert_eq!(status(address, Some("null")), of("403"));
    // Other machines could reach this address.
    room.refused(&["mcp", "--http", "0.0.0.0:0"], "this address is reachable by others");
}

/// Returns a server's answer to a tool listing with these headers.
fn lists_tools(address: &str, headers: &str) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{headers}Content-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn behind_a_proxy_writing_requires_the_token() {
    let room = home();
    let token = "a-token-of-a-test";
    for (args, may_write) in [(vec![], false), (vec!["--token", token], true)] {
        let args: Vec<_> =
            ["serve", "--listen", "127.0.0.1:0", "--json"].into_iter().chain(args).collect();
        let serving = Serving::of(room.command(&args).env_remove("CTX_SERVER_TOKEN"));
        let told: Value = serde_json::from_str(&serving.url).expect("it prints its address");
        let address =
            told["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("a URL");
        let host = format!("Host: {address}\r\n");
        let plain = lists_tools(address, &host);
        assert!(plain.contains("context_status") && !plain.contains("\"remember\""), "{plain}");
        let shown = lists_tools(address, &format!("{host}Authorization: Bearer {token}\r\n"));
        assert_eq!(shown.contains("\"remember\""), may_write, "{shown}");
    }
}
