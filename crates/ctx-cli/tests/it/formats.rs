//! One conversation in every readable format.

use std::ops::Range;
use std::path::PathBuf;

use ctx_core::{RawJson, Timestamp};
use ctx_session::key::FileId;
use ctx_session::{LogOptions, NewEntry, NewSession, SessionLog};
use serde_json::{Value, json};

use crate::support::{Room, join, pi_lines, text};

/// Returns name and text of a file with this number of turns, in each format. In line-based
/// formats, a file with more turns begins with the text of a file with fewer turns.
pub(crate) fn all(turns: usize) -> Vec<(&'static str, String)> {
    vec![
        ("pi.jsonl", join(&pi_lines(turns))),
        ("claude-code.jsonl", claude_code(turns)),
        ("openai.json", openai(turns)),
        ("anthropic.json", anthropic(turns)),
        ("ponybunny.json", ponybunny(turns)),
        ("codex.jsonl", codex(turns)),
    ]
}

/// Creates a session of ctx with this number of turns.
pub(crate) fn ours(room: &Room, turns: usize) -> PathBuf {
    let path = room.path("ours.jsonl");
    let session = NewSession {
        id: FileId::new("s1").expect("an id"),
        timestamp: Timestamp(1_767_600_000_000),
        cwd: "/w".to_owned(),
        parent_session: None,
    };
    let mut log = SessionLog::create(&path, &session, LogOptions::default()).expect("a log");
    append(&mut log, 0..turns);
    log.close().expect("it is written");
    path
}

/// Appends turns to a session of ctx.
pub(crate) fn append(log: &mut SessionLog, turns: Range<usize>) {
    for line in &pi_lines(turns.end)[1 + turns.start * 4..] {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        let message = NewEntry::message(RawJson::from_text(entry["message"].to_string()));
        log.append(&message, Timestamp(1_767_600_001_000)).expect("it is appended");
    }
}

fn output() -> String {
    "line of output\n".repeat(200)
}

fn openai(turns: usize) -> String {
    let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
    for turn in 0..turns {
        let call = json!({"id": format!("call_{turn}"), "type": "function", "function": {
            "name": "read", "arguments": json!({"path": format!("src/{turn}.rs")}).to_string()}});
        messages.extend([
            json!({"role": "user", "content": format!("question {turn}")}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": format!("call_{turn}"), "content": output()}),
            json!({"role": "assistant", "content": format!("answer {turn}")}),
        ]);
    }
    Value::Array(messages).to_string()
}

fn anthropic(turns: usize) -> String {
    let messages = (0..turns).flat_map(anthropic_turn);
    let messages: Vec<_> =
        messages.map(|(role, content)| json!({"role": role, "content": content})).collect();
    json!({"model": "claude-sonnet-4-5", "system": "Be brief.", "messages": messages}).to_string()
}

fn anthropic_turn(turn: usize) -> [(&'static str, Value); 4] {
    let id = format!("call_{turn}");
    let input = json!({"path": format!("src/{turn}.rs")});
    [
        ("user", json!([{"type": "text", "text": format!("question {turn}")}])),
        ("assistant", json!([{"type": "tool_use", "id": id, "name": "read", "input": input}])),
        ("user", json!([{"type": "tool_result", "tool_use_id": id, "content": output()}])),
        ("assistant", json!([{"type": "text", "text": format!("answer {turn}")}])),
    ]
}

fn claude_code(turns: usize) -> String {
    let mut lines = String::new();
    let mut parent = Value::Null;
    for (n, (role, content)) in (0..turns).flat_map(anthropic_turn).enumerate() {
        let uuid = format!("{n:08x}-0000-4000-8000-000000000000");
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = format!("msg_{n}").into();
            message["model"] = "claude-sonnet-4-5".into();
        }
        let line = json!({
            "type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "cwd": "/w",
            "isSidechain": false, "message": message,
            "timestamp": format!("2026-01-05T08:{:02}:{:02}.000Z", n / 60 % 60, n % 60),
        });
        parent = uuid.into();
        lines.push_str(&format!("{line}\n"));
    }
    lines
}

fn ponybunny(turns: usize) -> String {
    let turn = |turn: usize| {
        let at = 1_767_600_000_000_u64 + turn as u64 * 1_000;
        let id = format!("call_{turn}");
        let call =
            json!({"id": id, "name": "read", "arguments": {"path": format!("src/{turn}.rs")}});
        [
            json!({"role": "user", "content": format!("question {turn}"), "timestamp": at}),
            json!({"role": "assistant", "content": "", "toolCalls": [call], "timestamp": at + 1}),
            json!({"role": "tool", "toolCallId": id, "toolName": "read", "content": output(),
                "timestamp": at + 2}),
            json!({"role": "assistant", "content": format!("answer {turn}"), "timestamp": at + 3}),
        ]
    };
    let messages: Vec<_> = (0..turns).flat_map(turn).collect();
    json!({"messages": messages}).to_string()
}

fn codex(turns: usize) -> String {
    let mut lines = String::new();
    let mut line = |kind: &str, payload: Value| {
        let time = "2026-01-05T08:00:00.000Z";
        let line = json!({"timestamp": time, "type": kind, "payload": payload});
        lines.push_str(&format!("{line}\n"));
    };
    line("session_meta", json!({"id": "s1", "cwd": "/w", "instructions": "Be brief."}));
    for turn in 0..turns {
        let said = |role: &str, kind: &str, text: String| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
        let id = format!("call_{turn}");
        let path = json!({"path": format!("src/{turn}.rs")}).to_string();
        let call =
            json!({"type": "function_call", "name": "read", "call_id": id, "arguments": path});
        let result = json!({"type": "function_call_output", "call_id": id, "output": output()});
        line("response_item", said("user", "input_text", format!("question {turn}")));
        line("response_item", call);
        line("response_item", result);
        line("response_item", said("assistant", "output_text", format!("answer {turn}")));
    }
    lines
}

#[test]
fn each_format_is_recognized() {
    let room = Room::new();
    for (name, bytes) in all(3) {
        let path = room.write(name, bytes);
        let status = room.json(&["status", text(&path)]);
        let format = name.split('.').next().expect("a name");
        assert_eq!(status["session"]["format"], format, "{name}");
        assert_eq!(status["problems"], json!([]), "{name}");
    }
}
