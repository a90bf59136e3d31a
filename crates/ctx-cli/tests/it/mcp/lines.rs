//! Input on standard input, and problems of a home.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{KEY, home};
use crate::support::{Ran, Room, text};

/// Sends lines to `ctx mcp`, and returns its JSON output.
fn lines(room: &Room, args: &[&str], input: &str) -> (Ran, Vec<Value>) {
    let args: Vec<_> = ["mcp"].iter().chain(args).copied().collect();
    let mut child = room
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(input.as_bytes()).expect("the binary reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the binary ends");
    let ran = Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    let said =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("one object a line"));
    let said = said.collect();
    (ran, said)
}

/// Returns the lines with which a client of the older revision begins, followed by these requests.
fn asking(requests: &[Value]) -> String {
    let about = json!({ "name": "test", "version": "1" });
    let first = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about } });
    let second = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let lines = [first, second].into_iter().chain(requests.iter().cloned());
    lines.map(|line| line.to_string() + "\n").collect()
}

#[expect(clippy::needless_pass_by_value, reason = "arguments are made where they are passed")]
fn call(id: u64, name: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": name, "arguments": arguments } })
}

fn answer(said: &[Value], id: u64) -> &Value {
    said.iter()
        .find(|said| said["id"] == id)
        .unwrap_or_else(|| panic!("no answer to {id}: {said:?}"))
}

#[test]
fn stdout_has_only_the_protocol_and_the_server_ends_with_stdin() {
    let room = Room::new();
    let (ran, said) =
        lines(&room, &["--session", "nobody"], &asking(&[call(1, "context_status", json!({}))]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("has no session 'nobody' yet"), "{}", ran.stderr);
    assert_eq!(said.len(), 2, "{}", ran.stdout);
    assert_eq!(answer(&said, 1)["result"]["isError"], true, "{said:?}");
    // A client that disconnects at once.
    let (ran, said) = lines(&room, &[], "");
    assert_eq!((ran.code, said.len()), (Some(0), 0), "{}", ran.stderr);
}

#[test]
fn an_incomplete_line_is_refused_and_the_next_line_answered() {
    let room = home();
    let status = call(1, "context_status", json!({ "session": KEY })).to_string();
    let long = format!("\"{}\"", "x".repeat(5 << 20));
    let wrong = json!({ "jsonrpc": "2.0", "id": 7, "method": 5 });
    let bad = ["{\"jsonrpc\":\"2.0\",\"id\":5,\"meth", &long, "[1,2", "\u{0}", &wrong.to_string()];
    let input = format!("{}{}\n{status}\n", asking(&[]), bad.join("\n"));
    let (ran, said) = lines(&room, &[], &input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(answer(&said, 1)["result"]["isError"], false, "{said:?}");
    let refused: Vec<_> = said.iter().filter_map(|said| said["error"]["code"].as_i64()).collect();
    assert_eq!(refused, [-32_700, -32_600, -32_700, -32_700, -32_600], "{said:?}");
    assert_eq!(answer(&said, 7)["error"]["code"], -32_600);
}

#[test]
fn problems_of_a_home_are_errors_with_hints() {
    let room = home();
    let asked = [
        call(1, "context_status", json!({ "session": KEY })),
        call(2, "recall", json!({ "query": "the parrot", "session": KEY })),
    ];
    // The store is damaged, so no key is found; the error names the file.
    room.write("agents/main/sessions/sessions.json", "{\"half");
    let (_, said) = lines(&room, &[], &asking(&asked));
    for id in [1, 2] {
        let result = &answer(&said, id)["result"];
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["structuredContent"]["error"]["kind"], "corrupt", "{result}");
        let said = result["content"][0]["text"].as_str().expect("text");
        assert!(said.contains("hint: ") && said.contains("sessions.json"), "{said}");
    }
    // The session is found by its path, and its transcript, which is damaged too, is read as far as
    // possible.
    let path = room.path("agents/main/sessions/s1.jsonl");
    let whole = std::fs::read(&path).expect("the transcript");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    let asked = [
        call(1, "context_status", json!({})),
        call(2, "recall", json!({ "query": "the lighthouse parrot" })),
    ];
    let (_, said) = lines(&room, &["--session", text(&path)], &asking(&asked));
    assert_eq!(answer(&said, 1)["result"]["isError"], false, "{said:?}");
    let recalled = answer(&said, 2)["result"]["content"][0]["text"].as_str().expect("text");
    assert!(recalled.contains("Quillon"), "{recalled}");
}

#[test]
fn without_archived_messages_the_reason_is_given() {
    let room = Room::new();
    let off =
        json!({ "agents": { "defaults": { "memoryContext": { "archiveSessions": false } } } });
    room.write("ctx.json5", off.to_string());
    let asked = [
        call(1, "remember", json!({ "text": "the ferry leaves at noon" })),
        call(2, "recall", json!({ "query": "something else entirely" })),
    ];
    let (_, said) = lines(&room, &[], &asking(&asked));
    let result = &answer(&said, 2)["result"];
    assert_eq!(result["structuredContent"]["memoryEnabled"], false, "{result}");
    let said = result["content"][0]["text"].as_str().expect("text");
    assert!(said.contains("memoryContext.archiveSessions is false"), "{said}");
}

#[test]
fn a_read_only_server_has_no_tool_that_writes() {
    let room = home();
    let before = room.files();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let asked = [
        list,
        call(2, "remember", json!({ "text": "the ferry leaves at noon" })),
        call(3, "search_sessions", json!({ "query": "parrot", "session": KEY })),
        call(4, "expand", json!({ "entry": "00000005", "session": KEY })),
        call(5, "context_status", json!({ "session": KEY })),
    ];
    let (_, said) = lines(&room, &["--read-only"], &asking(&asked));
    let tools = answer(&said, 1)["result"]["tools"].as_array().expect("tools");
    assert!(
        tools.len() == 4 && tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true)
    );
    assert_eq!(answer(&said, 2)["error"]["code"], -32_602, "{said:?}");
    for id in [3, 4, 5] {
        assert_eq!(answer(&said, id)["result"]["isError"], false, "{said:?}");
    }
    assert_eq!(room.files(), before, "nothing was written");
}
