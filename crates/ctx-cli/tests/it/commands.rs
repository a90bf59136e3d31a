//! The output of each command.

use crate::support::{Room, join, pi_lines, text};

#[test]
fn replay_reports_every_request_by_its_answer() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(40)));
    let report = room.json(&["replay", text(&path), "--window", "16000"]);
    assert_eq!(report["session"]["format"], "pi");
    assert_eq!(report["session"]["entries"], 160);
    assert_eq!(report["session"]["messages"], 160);
    assert_eq!(report["session"]["toolResults"], 40);
    assert_eq!(report["session"]["badLines"], 0);
    assert_eq!((&report["window"], &report["reserve"]), (&16_000.into(), &4_000.into()));
    assert_eq!((&report["engine"], &report["profile"]), (&"legacy".into(), &"openclaw".into()));
    let requests = report["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 80);
    assert_eq!(requests[0]["entryId"], "00000001");
    assert_eq!(requests[1]["entryId"], "00000003");
    let tokens = |at: usize, name: &str| requests[at][name].as_u64().expect("a number");
    // "question 0" is 10 characters; the call is `read` and 19 characters of arguments.
    assert_eq!((tokens(0, "rawTokens"), tokens(0, "sentTokens")), (3, 3));
    assert_eq!(tokens(1, "rawTokens"), 3 + 6 + 750);
    let last = requests.len() - 1;
    assert!(tokens(last, "rawTokens") > 28_000);
    assert!(tokens(last, "sentTokens") <= 12_000);
    assert!(report["totals"]["overflowsWithout"].as_u64() > Some(0));
    assert_eq!(report["totals"]["overflowsWith"], 0);
    assert!(requests.iter().all(|r| r["fits"] == true));
    let acted = report["acted"].as_array().expect("a list");
    assert!(acted.contains(&"compaction".into()), "{acted:?}");
    let cut = requests.iter().position(|r| r["actions"]["compaction"].is_u64());
    let compaction = &report["compactions"][0];
    assert_eq!(compaction["request"].as_u64(), cut.map(|at| at as u64));
    let receipt = &compaction["details"]["receipt"];
    assert_eq!(receipt["rung"], "extractive");
    assert_eq!(receipt["audit"]["coverage"], 1.0);
    assert_eq!(receipt["audit"]["ungrounded"], serde_json::json!([]));
}

#[test]
fn replay_writes_a_page_that_needs_nothing_else() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(40)));
    let page = room.path("page.html");
    let ran = room.ctx(&["replay", text(&path), "--window", "16000", "--html", text(&page)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("model requests"), "{}", ran.stdout);
    let html = std::fs::read_to_string(&page).expect("the page is there");
    assert!(html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"));
    assert!(!html.contains("http://") && !html.contains("src=\"//"));
}

#[test]
fn the_manifest_of_assemble_has_every_entry() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(40)));
    let whole = room.json(&["assemble", text(&path), "--window", "16000"]);
    let entries = whole["manifest"]["entries"].as_array().expect("a list");
    assert_eq!(entries.iter().filter(|e| e["state"] != "inserted").count(), 160);
    let sent = entries.iter().filter(|e| e["state"] != "dropped").count();
    assert_eq!(whole["messages"].as_array().map(Vec::len), Some(sent));
    let at = room.json(&["assemble", text(&path), "--window", "16000", "--at", "00000003"]);
    assert_eq!(at["messages"].as_array().map(Vec::len), Some(4));
    room.refused(&["assemble", text(&path), "--at", "ffffffff"], "ffffffff");
    for shape in ["openai", "anthropic"] {
        let json = room.json(&["assemble", text(&path), "--window", "16000", "--to", shape]);
        assert!(json["messages"].as_array().is_some_and(|m| !m.is_empty()), "{shape}");
    }
}

#[test]
fn dropped_messages_stay_dropped_in_later_requests() {
    let room = Room::new();
    let lines = pi_lines(60);
    let path = room.write("s.jsonl", join(&lines[..161]));
    let args = ["assemble", text(&path), "--window", "16000"];
    let before = room.json(&[&args[..], &["--record"]].concat());
    room.write("s.jsonl", join(&lines[..165]));
    let after = room.json(&args);
    let messages = |json: &serde_json::Value| json["messages"].as_array().expect("a list").clone();
    let (mut before, after) = (messages(&before), messages(&after));
    // The model does not see when a summary was stored.
    before[0]["timestamp"] = after[0]["timestamp"].clone();
    // One more turn fits, so everything is sent again, and no dropped message returns.
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 4);
    let fresh = Room::new();
    let path = fresh.write("s.jsonl", join(&lines[..165]));
    let unaware = messages(&fresh.json(&["assemble", text(&path), "--window", "16000"]));
    assert_ne!(unaware[0], before[0]);
}

#[test]
fn convert_round_trips_pi_byte_for_byte() {
    let room = Room::new();
    let source = join(&pi_lines(5));
    let path = room.write("s.jsonl", &source);
    let ran = room.ctx(&["convert", text(&path), "--to", "pi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), source.as_str()));
    let output = room.path("out.json");
    assert_eq!(
        room.ctx(&["convert", text(&path), "--to", "openai", "-o", text(&output)]).code,
        Some(0)
    );
    room.refused(&["convert", text(&path), "--to", "openai", "-o", text(&output)], "exists");
    let back = room.json(&["status", text(&output)]);
    assert_eq!(back["session"]["format"], "openai");
    assert_eq!(back["session"]["messages"], 20);
    room.misused(&["convert", text(&path), "--to", "word"], "word");
}

#[test]
fn convert_makes_a_session_that_ctx_may_append_to() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(60)));
    room.json(&["compact", text(&path), "--force", "--window", "32k"]);
    let ours = room.path("ours.jsonl");
    assert_eq!(room.ctx(&["convert", text(&path), "--to", "ctx", "-o", text(&ours)]).code, Some(0));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&ours).expect("written").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let (theirs, listed) =
        (room.json(&["compactions", text(&path)]), room.json(&["compactions", text(&ours)]));
    assert_eq!(listed, theirs);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let before = std::fs::read(&ours).expect("written");
    assert_eq!(room.json(&["compact", text(&ours), "--undo"])["undone"], true);
    let after = std::fs::read(&ours).expect("still there");
    assert!(after.len() > before.len() && after.starts_with(&before), "appended to");
    let pony = room.path("pony.json");
    let args = ["convert", text(&path), "--to", "ponybunny", "--compacted", "-o", text(&pony)];
    assert_eq!(room.ctx(&args).code, Some(0));
    let written = std::fs::read_to_string(&pony).expect("written");
    let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written["compactedHistory"].as_array().map(Vec::len), Some(1));
    assert!(written["messages"].as_array().is_some_and(|m| !m.is_empty() && m.len() < 240));
    room.misused(&["convert", text(&path), "--to", "pi", "--compacted"], "ponybunny");
}

#[test]
fn engines_config_and_completions() {
    let room = Room::new();
    let engines = room.json(&["engines"]);
    assert!(engines["engines"].as_array().is_some_and(|e| e.iter().any(|e| e["id"] == "legacy")));
    room.refused(&["replay", "x.jsonl", "--engine", "legcay"], "x.jsonl");
    let path = room.write("s.jsonl", join(&pi_lines(2)));
    room.misused(&["replay", text(&path), "--engine", "legcay"], "legcay");
    let schema = room.ctx(&["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).expect("JSON");
    assert!(schema["properties"]["plugins"]["properties"]["slots"].is_object());
    let shown = room.json(&["config", "show", "--profile", "copaw"]);
    assert_eq!(shown["agents"]["running"]["memory_compact_ratio"], 0.75);
    assert_eq!(shown["profile"], "copaw");
    for printed in [&schema, &shown] {
        let printed = printed.to_string();
        let mut words = printed.split(|c: char| !c.is_ascii_digit() && c != '.');
        let noise = words.find(|word| word.split_once('.').is_some_and(|(_, part)| part.len() > 6));
        assert_eq!(noise, None, "numbers are printed as the configuration writes them");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = room.ctx(&["completions", shell]).stdout;
        for value in ["replay", "memory-context", "o200k", "legacy", "claude-sonnet-4-5", "goose"] {
            assert!(script.contains(value), "{shell}: {value}");
        }
    }
}

#[test]
fn sessions_lists_the_store() {
    let room = Room::new();
    assert_eq!(room.json(&["sessions"]), serde_json::json!([]));
    room.write(
        "agents/main/sessions/sessions.json",
        r#"{"agent:main:main":{"sessionId":"s1","updatedAt":1767600000000,"compactionCount":2}}"#,
    );
    let sessions = room.json(&["sessions"]);
    assert_eq!(sessions[0]["sessionKey"], "agent:main:main");
    assert_eq!(sessions[0]["sessionId"], "s1");
    assert_eq!(sessions[0]["compactionCount"], 2);
    room.write(
        "agents/main/sessions/sessions.json",
        r#"{"agent:main:main":{"sessionId":"s1"},"agent:main:x":{"sessionId":"s2","totalTokens":-5}}"#,
    );
    let ran = room.ctx(&["sessions"]);
    assert!(ran.stdout.contains("agent:main:main"), "{}", ran.stdout);
    assert!(ran.stderr.contains("agent:main:x"), "{}", ran.stderr);
}

#[test]
fn the_files_that_a_recorded_request_names_exist() {
    let room = Room::new();
    let long =
        pi_lines(20).into_iter().map(|l| l.replacen("line of output", &"x".repeat(3_000), 1));
    let path = room.write("s.jsonl", join(&long.collect::<Vec<_>>()));
    room.write(
        "ctx.json5",
        "{ profile: 'copaw', agents: { running: { enable_tool_result_compact: true } } }",
    );
    let assembled = room.json(&["assemble", text(&path), "--window", "64000", "--record"]);
    let messages = assembled["messages"].to_string();
    let pointers: Vec<_> = messages
        .split("[full output preserved at ")
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .collect();
    assert!(!pointers.is_empty());
    for (file, _) in pointers {
        assert!(std::fs::read_to_string(file).expect(file).contains(&"x".repeat(3_000)));
    }
}

#[test]
fn sessions_of_unknown_shapes_are_listed_too() {
    let room = Room::new();
    let store = r#"{ "agent:main:main": { "sessionId": "a", "updatedAt": 1 },
        "shape:of:tomorrow": { "sessionId": "b", "updatedAt": 2 } }"#;
    room.write("agents/main/sessions/sessions.json", store);
    let listed = room.json(&["sessions"]);
    let keys: Vec<_> =
        listed.as_array().expect("a list").iter().map(|s| &s["sessionKey"]).collect();
    assert_eq!(keys, ["shape:of:tomorrow", "agent:main:main"]);
}

#[test]
fn a_page_replaces_only_an_earlier_page() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    let other = room.write("notes.txt", "mine");
    room.refused(&["replay", text(&path), "--html", text(&other)], "exists");
    assert_eq!(std::fs::read_to_string(&other).expect("text"), "mine");
    let page = room.path("page.html");
    for _ in 0..2 {
        assert_eq!(room.ctx(&["replay", text(&path), "--html", text(&page)]).code, Some(0));
    }
}

#[test]
fn check_repairs_beside_the_transcript() {
    let room = Room::new();
    let torn = join(&pi_lines(3));
    let path = room.write("s.jsonl", &torn[..torn.len() - 30]);
    let ran = room.ctx(&["check", text(&path), "--repair"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let copy = room.json(&["check", text(&room.path("s.repaired.jsonl"))]);
    assert_eq!(copy["ok"], true, "{copy}");
    assert!(room.path("s.repaired.jsonl.unreadable").exists());
}

#[test]
fn text_of_a_transcript_is_escaped_on_the_terminal() {
    let room = Room::new();
    let hostile = r"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e\r\n";
    let lines = pi_lines(30).join("\n").replace("call_7", hostile).replace("0000001d", hostile);
    let path =
        room.write("s.jsonl", lines.replace("\"stop\"}", "\"stop\",\"model\":\"\\u001b[2Jm\"}"));
    for command in ["status", "assemble", "replay", "check"] {
        for colour in ["always", "never"] {
            let mut args = vec![command, text(&path), "--color", colour];
            if command != "check" {
                args.extend(["--window", "16000"]);
            }
            let ran = room.ctx(&args);
            assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
            for said in [&ran.stdout, &ran.stderr] {
                let bad = ["\u{1b}]", "\u{1b}[2J", "\u{9b}", "\u{202e}", "\u{7}", "\r"];
                let found = bad.iter().find(|b| said.contains(**b));
                assert_eq!(found, None, "{args:?}: {said:?}");
            }
        }
    }
}

#[test]
fn a_transcript_can_come_from_standard_input() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    let run = |args: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_ctx"))
            .args(args)
            .env("CTX_HOME", room.path("home"))
            .current_dir(room.path(""))
            .stdin(std::fs::File::open(&path).expect("it is there"))
            .output()
            .expect("the binary runs")
    };
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&run(args).stdout).expect("JSON")
    };
    assert_eq!(json(&["status", "-", "--json"])["session"]["messages"], 12);
    let assembled = json(&["assemble", "-", "--window", "32000", "--json"]);
    assert_eq!(assembled["messages"].as_array().map(Vec::len), Some(12));
    // Standard input has no folder for side files.
    for args in [["assemble", "-", "--record"], ["check", "-", "--repair"]] {
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("hint:"), "{args:?}");
    }
}

#[test]
fn status_refuses_a_window_that_replay_would_refuse() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    room.misused(&["status", text(&path), "--window", "1"], "Minimum is 16000");
    room.write("ctx.json5", "{ agents: { defaults: { contextTokens: 8000 } } }");
    let status = room.json(&["status", text(&path)]);
    assert_eq!((&status["shouldBlock"], &status["window"]), (&true.into(), &8_000.into()));
}

#[test]
fn offloaded_results_are_stored_in_the_folder_of_the_agent() {
    let room = Room::new();
    room.write(
        "ctx.json5",
        "{ agents: { defaults: { toolGuard: { offload: { enabled: true } } } } }",
    );
    let path = room.write("session.jsonl", join(&crate::forget::planted(40)));
    room.json(&["assemble", text(&path), "--window", "32k", "--record", "--agent", "ops"]);
    let results = |agent: &str| room.path(&format!("agents/{agent}/tool-results"));
    assert!(std::fs::read_dir(results("ops")).expect("a folder").count() > 0);
    assert!(!results("main").exists());
}

#[test]
fn the_timeout_of_a_session_lock_is_configurable() {
    let room = Room::new();
    room.write("ctx.json5", "{ session: { lockWaitMs: 0 } }");
    let source = room.write("s.jsonl", join(&pi_lines(40)));
    let own = text(&room.path("own.jsonl")).to_owned();
    let to = ["convert", text(&source), "--to", "ctx", "--output", &own];
    assert_eq!(room.ctx(&to).code, Some(0));
    let mut options = std::fs::File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    let lock = options.open(format!("{own}.lock")).expect("a lock file");
    lock.lock().expect("the lock is free");
    let ran = room.ctx(&["compact", &own, "--window", "16k", "--force"]);
    assert!(ran.stderr.contains("another writer has the file open"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("waited"), "it did not wait: {}", ran.stderr);
}
