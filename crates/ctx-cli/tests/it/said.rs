//! The reports of commands about their results.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ran, Room, join, pi_lines, text};

const TURNS: usize = 40;

/// Returns the lines of a session, with one message edited.
fn edited(line: usize, edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut lines = pi_lines(TURNS);
    let mut entry: Value = serde_json::from_str(&lines[line]).expect("JSON");
    edit(&mut entry["message"]);
    lines[line] = entry.to_string();
    lines
}

/// Returns a session that its agent compacted at its end.
fn compacted_by_its_agent() -> String {
    let mut lines = pi_lines(TURNS);
    let last = TURNS * 4 - 1;
    lines.push(
        json!({
            "type": "compaction", "id": "8e549f92", "parentId": format!("{last:08x}"),
            "timestamp": "2026-01-05T10:00:00.000Z", "summary": "Questions were answered.",
            "firstKeptEntryId": "00000090", "tokensBefore": 40_000,
        })
        .to_string(),
    );
    join(&lines)
}

#[test]
fn usage_reported_before_a_compaction_is_not_used_after_it() {
    let room = Room::new();
    let lines = edited(TURNS * 4, |message| {
        message["usage"] = json!({"input": 30_000, "output": 100, "totalTokens": 30_100});
    });
    let path = room.write("s.jsonl", join(&lines));
    let status = ["status", text(&path), "--window", "64000"];
    let before = room.json(&status);
    assert_eq!(before["reported"]["tokens"], 30_100);
    assert!(before["reported"]["calibration"].as_f64() > Some(0.0), "{before}");
    assert!(room.ctx(&status).stdout.contains("30,000 reported by the provider"));
    room.json(&["compact", text(&path), "--window", "64000", "--target", "8k", "--force"]);
    assert_eq!(room.json(&status)["reported"]["calibration"], Value::Null);
    assert!(!room.ctx(&status).stdout.contains("30,000 reported"));
    room.json(&["compact", text(&path), "--undo"]);
    assert_eq!(room.json(&status)["reported"], before["reported"]);
}

#[test]
fn no_command_counts_messages_that_are_never_sent() {
    let room = Room::new();
    let lines = edited(4, |message| {
        *message = json!({
            "role": "bashExecution", "command": "ls -l", "output": "total 0", "exitCode": 0,
            "cancelled": false, "truncated": false, "excludeFromContext": true,
        });
    });
    let path = room.write("s.jsonl", join(&lines));
    let done = room.json(&["compact", text(&path), "--window", "16000"]);
    let compacted = &done["result"]["details"]["receipt"]["messages"];
    assert!(compacted.as_u64() > Some(4), "{compacted}");
    let listed = room.json(&["compactions", text(&path)]);
    assert_eq!(&listed[0]["covered"]["messages"], compacted);
    let diff = room.json(&["diff", text(&path)]);
    let removed = diff["removed"].as_array().expect("a list");
    assert_eq!(Some(removed.len() as u64), compacted.as_u64());
    assert!(removed.iter().all(|message| message["role"] != "bashExecution"), "{diff}");
}

#[test]
fn a_missed_target_is_reported() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let compact = |target| {
        ["compact", text(&path), "--window", "16000", "--dry-run", "--target", target, "--json"]
    };
    let run = |target| {
        let ran = room.ctx(&compact(target));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (serde_json::from_str::<Value>(&ran.stdout).expect("JSON"), ran.stderr)
    };
    let (missed, stderr) = run("100");
    assert_eq!(missed["targetReached"], false);
    assert!(stderr.contains("warning: the target of 100 tokens was not reached: "), "{stderr}");
    let (reached, stderr) = run("8k");
    assert_eq!(reached["targetReached"], true);
    assert!(!stderr.contains("target"), "{stderr}");
    let without = room.json(&["compact", text(&path), "--window", "16000", "--dry-run"]);
    assert_eq!(without["targetReached"], Value::Null);
}

#[test]
fn an_undo_reports_how_to_revert_it_and_what_is_in_force() {
    let room = Room::new();
    let path = room.write("s.jsonl", compacted_by_its_agent());
    let file = text(&path);
    let undo = ["compact", file, "--undo"];
    let words = "no compaction made by ctx is in force; 8e549f92 is the agent's: name it with \
                 --compaction to undo it";
    assert_eq!(room.json(&undo)["reason"], words);
    let ran = room.ctx(&undo);
    assert_eq!(ran.stdout, format!("nothing to undo: {words}\n"));
    let named = room.ctx(&[&undo[..], &["--compaction", "8e549f92"]].concat());
    assert!(named.stdout.starts_with("compaction 8e549f92 undone"), "{}", named.stdout);
    let said = named.stderr.split('`').nth(1).expect("a command");
    let redo: Vec<&str> = said.split(' ').skip(1).collect();
    // The list shows the undo, too.
    let listed = room.ctx(&["compactions", file]);
    let undone_by: String = redo.last().expect("an id").chars().take(8).collect();
    assert!(listed.stdout.contains(&format!("undone by {undone_by}")), "{}", listed.stdout);
    assert!(listed.stderr.contains(&format!("--undo --compaction {undone_by}")));
    let redone = room.ctx(&redo);
    assert!(redone.stdout.contains("in force again"), "{} {}", redone.stdout, redone.stderr);
    assert_eq!(room.json(&["compactions", file])[0]["undone"], false);
}

#[test]
fn an_undo_refuses_flags_that_it_would_ignore() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(1)));
    for flag in [
        "--target=8k",
        "--summary-model=none",
        "--identifiers=off",
        "--window=16000",
        "--model=m",
        "--instructions=x",
        "--force",
    ] {
        let ran = room.ctx(&["compact", text(&path), "--undo", flag]);
        assert_eq!(ran.code, Some(2), "{flag}: {}", ran.stderr);
        assert!(ran.stderr.contains("cannot be used with"), "{flag}: {}", ran.stderr);
    }
}

#[test]
fn hints_name_the_command_that_lists_ids() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let file = text(&path);
    room.json(&["compact", file, "--window", "16000"]);
    let hint = format!("hint: `ctx compactions {file}` lists them");
    for args in [
        &["diff", file, "zzzz"][..],
        &["diff", file, "00000003"],
        &["compact", file, "--undo", "--compaction", "zzz"],
        &["compact", file, "--undo", "--compaction", "00000003"],
    ] {
        room.refused(args, &hint);
    }
    let ran = room.ctx(&["convert", file, "--to", "word"]);
    assert_eq!(
        ran.stderr,
        "error: unknown format 'word'\n\
         hint: use ctx, pi, openai, anthropic, atif or ponybunny\n"
    );
    let ran = Ran::of(room.command(&["status", "-"]).stdin(Stdio::null()));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("standard input"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("memory"), "{}", ran.stderr);
}

#[test]
fn every_listed_format_can_be_written() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(2)));
    for format in ["ctx", "pi", "openai", "anthropic", "ponybunny"] {
        let ran = room.ctx(&["convert", text(&path), "--to", format]);
        assert_eq!(ran.code, Some(0), "{format}: {}", ran.stderr);
    }
}

#[test]
fn a_too_small_window_is_refused_with_the_guards_message_only() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(2)));
    let ran = room.ctx(&["assemble", text(&path), "--window", "10000"]);
    assert_eq!(
        ran.stderr,
        "error: Model context window too small (10000 tokens; source=agentContextTokens). \
         Minimum is 16000.\nhint: give --window 16000 or more\n"
    );
}

#[test]
fn config_check_warns_of_an_unusable_model() {
    let room = Room::new();
    let provider = "models: { providers: { own: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'k' \
                    } } }";
    for (model, words) in [
        ("nope/none", Some("agents.defaults.compaction.model 'nope/none' cannot be used")),
        (
            "own/m",
            Some(
                "unknown window of own/m; 16,000 tokens are assumed; set \
                  models.providers.own.models[].contextWindow",
            ),
        ),
        ("none", None),
    ] {
        let config = format!(
            "{{ agents: {{ defaults: {{ compaction: {{ model: '{model}' }} }} }}, {provider} }}"
        );
        room.write("ctx.json5", config);
        let ran = room.ctx(&["config", "check"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.starts_with("ok "), "{}", ran.stdout);
        assert_eq!(ran.stderr.is_empty(), words.is_none(), "{model}: {}", ran.stderr);
        assert!(ran.stderr.contains(words.unwrap_or_default()), "{model}: {}", ran.stderr);
        let warnings = room.json(&["config", "check"])["warnings"].as_array().map(Vec::len);
        assert_eq!(warnings, Some(usize::from(words.is_some())), "{model}");
    }
    // A command that calls the model reports it, too.
    let path = room.write("s.jsonl", join(&pi_lines(1)));
    let args = ["compact", text(&path), "--window", "32000", "--summary-model", "own/m"];
    let ran = room.ctx(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: unknown window of own/m"), "{}", ran.stderr);
}

#[test]
fn flags_of_every_command_come_last_in_its_help() {
    let room = Room::new();
    for command in ["replay", "status", "compact", "compactions", "convert", "check", "eval"] {
        let help = room.ctx(&[command, "--help"]).stdout;
        let (own, global) = help.split_once("Global options:").expect("a heading");
        for flag in ["--quiet", "--config", "--color"] {
            assert!(global.contains(flag) && !own.contains(flag), "{command} {flag}: {help}");
        }
        assert!(!global.contains("--json"), "{command}: {help}");
    }
}
