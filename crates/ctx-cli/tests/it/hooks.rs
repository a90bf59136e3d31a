//! `ctx hook`: events of Claude Code.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ran, Room};

/// Writes a session that was compacted: its summary has nothing of the rule.
fn session(room: &Room) -> String {
    let mut lines = Vec::new();
    let mut push = |mut line: Value, parent: Option<usize>| {
        let number = lines.len();
        line["uuid"] = format!("u{number}").into();
        line["parentUuid"] = parent.map(|parent| format!("u{parent}")).into();
        line["sessionId"] = "s".into();
        line["timestamp"] = "2026-11-01T10:00:00.000Z".into();
        lines.push(line.to_string());
    };
    let user =
        |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
    push(user("Never push to the branch stable-7. The config is /etc/app/prod-17.toml."), None);
    let answer = json!({ "role": "assistant", "id": "m", "model": "claude-opus-4-1",
        "content": [{ "type": "text", "text": "I will not push to it." }] });
    push(json!({ "type": "assistant", "message": answer }), Some(0));
    push(
        json!({ "type": "system", "subtype": "compact_boundary", "content": "compacted",
        "logicalParentUuid": "u1", "compactMetadata": { "trigger": "manual", "preTokens": 9 } }),
        None,
    );
    let mut summary = user("This session is being continued. Summary: the user greeted.");
    summary["isCompactSummary"] = true.into();
    push(summary, Some(2));
    let path = room.write("session.jsonl", lines.join("\n") + "\n");
    path.to_str().expect("a path").to_owned()
}

fn hook(room: &Room, event: &Value, url: &str) -> Ran {
    let mut command = room.command(&["hook"]);
    command.env("ANTHROPIC_BASE_URL", url);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(event.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn what_a_compaction_lost_is_put_back_once_with_the_next_prompt() {
    let room = Room::new();
    let event = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s",
        "transcript_path": session(&room), "prompt": "go on" });
    let first = hook(&room, &event, "");
    let said: Value = serde_json::from_str(&first.stdout).expect("one object");
    let text = said["hookSpecificOutput"]["additionalContext"].as_str().expect("a text");
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit");
    assert!(text.contains("stable-7") && text.contains("/etc/app/prod-17.toml"), "{text}");
    let second = hook(&room, &event, "");
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), ""), "{}", second.stderr);
}

#[test]
fn other_events_and_bad_ones_change_nothing() {
    let room = Room::new();
    let path = session(&room);
    let stop = json!({ "hook_event_name": "Stop", "session_id": "s", "transcript_path": path });
    assert_eq!(hook(&room, &stop, "").stdout, "");
    let missing = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s",
        "transcript_path": "/nonexistent/x.jsonl", "prompt": "hi" });
    assert_eq!(hook(&room, &missing, "").code, Some(0));
    let outside = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "../../x",
        "transcript_path": path, "prompt": "hi" });
    // 1 is reported by the client; 2 would block the prompt.
    assert_eq!(hook(&room, &outside, "").code, Some(1));
    assert_eq!(hook(&room, &json!("no event"), "").code, Some(1));
    assert!(!room.path("hooks").exists());
}
