//! Valid and invalid lines on standard input.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use ctx_core::ErrorKind;
use serde_json::{Value, json};

use super::super::serve_stdio;
use super::{KEY, home, server};

/// The output of a server.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn exchange(input: &str) -> (ctx_core::Result<()>, Vec<Value>) {
    let home = home();
    let written = Written::default();
    let ended = serve_stdio(server(home.path()), Cursor::new(input.to_owned()), written.clone());
    let written = written.0.lock().unwrap();
    let lines = std::str::from_utf8(&written).unwrap().lines();
    (ended, lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn request(id: u64, method: &str, params: &Value) -> String {
    let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request.to_string()
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let status = json!({ "name": "context_status", "arguments": { "session": KEY } });
    let asked: Vec<_> = (1..=40).map(|id| request(id, "tools/call", &status)).collect();
    let (ended, answers) = exchange(&(asked.join("\n") + "\n"));
    ended.unwrap();
    let mut ids: Vec<_> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=40).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["result"]["isError"] == false), "{answers:?}");
}

#[test]
fn calls_beyond_the_queue_are_answered_too() {
    let list = json!({ "name": "context_status", "arguments": { "session": KEY } });
    let asked: Vec<_> = (1..=400).map(|id| request(id, "tools/call", &list)).collect();
    let (ended, answers) = exchange(&(asked.join("\n") + "\n"));
    ended.unwrap();
    assert_eq!(answers.len(), 400);
    let is_fine = |answer: &Value| {
        let result = &answer["result"];
        result["isError"] == false || result["structuredContent"]["error"]["kind"] == "locked"
    };
    assert!(answers.iter().all(is_fine), "{answers:?}");
}

#[test]
fn lines_that_are_not_mcp_are_refused() {
    let deep = "[".repeat(100_000);
    let bad =
        ["{", "null", "[]", "\"x\"", "{\"id\":3}", &deep, "\u{feff}{}", "{\"jsonrpc\":\"1.0\"}"];
    let list = request(9, "tools/list", &json!({}));
    let (ended, answers) = exchange(&format!("{}\n\n  \n{list}\n", bad.join("\n")));
    ended.unwrap();
    let refused = answers.iter().filter(|answer| answer["error"]["code"].is_i64());
    assert_eq!(refused.count(), bad.len(), "{answers:?}");
    let listed = answers.iter().find(|answer| answer["id"] == 9).unwrap();
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(5));
}

#[test]
fn the_server_ends_when_its_output_is_closed() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let home = home();
    // The input never ends: the client keeps it open until the server exits.
    let (input, mut client) = io::pipe().unwrap();
    let list = request(1, "tools/list", &json!({}));
    client.write_all(format!("{list}\n").as_bytes()).unwrap();
    let ended = serve_stdio(server(home.path()), io::BufReader::new(input), Gone);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Io);
    drop(client);
}
