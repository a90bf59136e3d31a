//! `ctx hook`: events of Claude Code, Codex, Gemini CLI and the plugin of opencode; `ctx statusline`.

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
    ran(room, &["hook"], event, url)
}

pub(crate) fn ran(room: &Room, args: &[&str], event: &Value, url: &str) -> Ran {
    let mut command = room.command(args);
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

/// Returns the text that an event adds to the context; empty if it adds nothing.
fn added(room: &Room, event: &Value) -> String {
    let ran = hook(room, event, "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    if ran.stdout.is_empty() {
        return String::new();
    }
    let said: Value = serde_json::from_str(&ran.stdout).expect("one object");
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], event["hook_event_name"]);
    said["hookSpecificOutput"]["additionalContext"].as_str().expect("a text").to_owned()
}

#[test]
fn a_tool_call_after_a_compaction_is_told_what_it_lost() {
    let room = Room::new();
    let path = session(&room);
    let event =
        |name: &str| json!({ "hook_event_name": name, "session_id": "s", "transcript_path": path });
    assert_eq!(added(&room, &event("PostToolUse")), "");
    assert_eq!(added(&room, &event("PreCompact")), "");
    assert!(added(&room, &event("PostToolUse")).contains("stable-7"));
    assert_eq!(added(&room, &event("PostToolUse")), "");
}

/// A rollout of Codex 0.169, shortened: `message` is the summary; the newest message of the user is kept.
fn rollout(room: &Room, summary: &str) -> Value {
    let line = |kind: &str, payload: Value| {
        json!({ "timestamp": "2026-11-29T06:57:41.000Z", "type": kind, "payload": payload })
            .to_string()
            + "\n"
    };
    let message = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let kept = message("user", "input_text", "Read the big file.");
    let lines = [
        line("session_meta", json!({ "id": "01a2", "cwd": "/w", "model_provider": "fake" })),
        line("response_item", message("user", "input_text", "Never push to the branch stable-7.")),
        line("response_item", message("assistant", "output_text", "I will not.")),
        line("response_item", kept.clone()),
        line(
            "compacted",
            json!({ "message": summary,
            "replacement_history": [kept, message("user", "input_text", summary)] }),
        ),
    ];
    let path = room.write("rollout-2026-11-29T06-57-41-01a2.jsonl", lines.concat());
    path.to_str().expect("a path").into()
}

#[test]
fn codex_is_told_when_its_session_starts_anew_after_a_compaction() {
    let room = Room::new();
    let event = json!({ "session_id": "01a2", "transcript_path": rollout(&room, "The user greeted."),
        "cwd": "/w", "hook_event_name": "SessionStart", "model": "m", "permission_mode": "default",
        "source": "compact" });
    let text = added(&room, &event);
    assert!(text.contains("stable-7") && !text.contains("big file"), "{text}");
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "turn_id": "t", "prompt": "go on",
        "session_id": "01a2", "transcript_path": event["transcript_path"] });
    assert_eq!(added(&room, &prompt), "");
    // An ephemeral session has no file, and the summary of OpenAI is encrypted.
    let ephemeral = json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on",
        "session_id": "01a3", "transcript_path": null });
    assert_eq!(added(&room, &ephemeral), "");
    let encrypted = json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on",
        "session_id": "01a4", "transcript_path": rollout(&room, "") });
    assert_eq!(added(&room, &encrypted), "");
}

/// A chat of Gemini CLI 0.61, shortened: a list that begins with a snapshot replaces earlier messages.
fn chat(room: &Room) -> Value {
    let message = |id: &str, kind: &str, text: &str| json!({ "id": id, "timestamp": "2026-11-29T06:58:16.061Z", "type": kind, "content": [{ "text": text }] });
    let set = |messages: &[Value]| json!({ "$set": { "messages": messages } });
    let head = json!({ "sessionId": "7cea", "projectHash": "42", "startTime": "2026-11-29T06:58:16.032Z" });
    let about = message("d0", "user", "<session_context>This is the Gemini CLI.</session_context>");
    let snapshot = "<state_snapshot>The user greeted.</state_snapshot>";
    let answer = "Got it. Thanks for the additional context!";
    let lines = [
        head,
        set(std::slice::from_ref(&about)),
        message("a0", "user", "Never push to the branch stable-7."),
        message("a1", "gemini", "I will not."),
        set(&[about, message("b0", "user", snapshot), message("b1", "gemini", answer)]),
        message("a2", "user", "go on"),
    ];
    let lines = lines.map(|line| line.to_string() + "\n").concat();
    room.write("session-7cea.jsonl", lines).to_str().expect("a path").into()
}

#[test]
fn gemini_cli_is_told_with_the_next_prompt() {
    let room = Room::new();
    let event = json!({ "session_id": "7cea", "transcript_path": chat(&room), "cwd": "/w",
        "hook_event_name": "BeforeAgent", "timestamp": "2026-11-29T06:58:23.000Z", "prompt": "go on" });
    assert!(added(&room, &event).contains("stable-7"));
    assert_eq!(added(&room, &event), "");
}

#[test]
fn the_plugin_of_opencode_is_told_each_time() {
    let room = Room::new();
    let event = json!({ "hook_event_name": "session.compacted", "session_id": "s", "transcript_path": session(&room) });
    let first = added(&room, &event);
    assert!(first.contains("stable-7"));
    assert_eq!(added(&room, &event), first);
}

#[test]
fn a_session_starts_with_the_size_of_memory() {
    let room = Room::new();
    let start =
        json!({ "hook_event_name": "SessionStart", "session_id": "n", "source": "startup" });
    assert_eq!(hook(&room, &start, "").stdout, "");
    room.write("ctx.json5", r#"{"agents":{"defaults":{"memoryContext":{"enabled":true}}}}"#);
    assert_eq!(hook(&room, &start, "").stdout, "");
    let archived = json!({ "hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": session(&room) });
    assert_eq!(added(&room, &archived), "");
    let said = hook(&room, &start, "").stdout;
    assert!(said.starts_with(r#"{"systemMessage":"ctx: "#) && said.contains("passage"), "{said}");
}

#[test]
fn the_status_line_has_what_is_known() {
    let room = Room::new();
    let line = |session: &Value| ran(&room, &["statusline"], session, "").stdout;
    let usage = json!({ "input_tokens": 500, "cache_creation_input_tokens": 2_500,
        "cache_read_input_tokens": 38_000, "output_tokens": 9 });
    let window = json!({ "context_window_size": 200_000, "current_usage": usage });
    let session = json!({ "session_id": "s", "workspace": { "project_dir": "/w" }, "context_window": window });
    assert_eq!(line(&session), "41k of 200k · cache 93 %\n");
    let fresh =
        json!({ "context_window": { "context_window_size": 1_000_000, "current_usage": null } });
    assert_eq!(line(&fresh), "\n");
    assert_eq!(ran(&room, &["statusline"], &json!("no session"), "").code, Some(1));
}
