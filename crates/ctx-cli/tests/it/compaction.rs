//! The output of `ctx compact`, and the files that it changes.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::formats;
use crate::support::{Ran, Room, join, pi_lines, text};

const TURNS: usize = 40;

fn compact<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["compact", file, "--window", "16000"], more].concat()
}

/// Checks that an answer has exactly these keys.
fn has_keys(value: &Value, keys: &[&str]) {
    let mut found: Vec<_> = value.as_object().expect("an object").keys().collect();
    let mut keys: Vec<_> = keys.to_vec();
    found.sort();
    keys.sort_unstable();
    assert_eq!(found, keys);
}

#[test]
fn the_json_of_compact_has_exactly_the_documented_keys() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let done = room.json(&compact(text(&path), &[]));
    let keys = ["ok", "compacted", "result", "entryId", "dryRun", "targetReached", "archived"];
    let of_engine = ["engine", "engineAnswered", "engineFailures", "warnings"];
    has_keys(&done, &[&keys[..], &of_engine].concat());
    assert_eq!((&done["ok"], &done["compacted"]), (&json!(true), &json!(true)));
    assert_eq!(done["dryRun"], false);
    let result = &done["result"];
    has_keys(result, &["summary", "firstKeptEntryId", "tokensBefore", "tokensAfter", "details"]);
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64(), "{result}");
    let receipt = &result["details"]["receipt"];
    assert_eq!(receipt["rung"], "extractive");
    assert_eq!(receipt["trigger"], "manual");
    assert_eq!(receipt["audit"]["ungrounded"], json!([]));
    assert_eq!(receipt["firstKeptEntryId"], result["firstKeptEntryId"]);
    let listed = room.json(&["compactions", text(&path)]);
    assert_eq!(listed[0]["id"], done["entryId"]);
    assert_eq!(listed[0]["summary"], result["summary"]);
    assert_eq!(listed[0]["details"], result["details"]);
    assert_eq!(listed[0]["by"], "ctx");
}

#[test]
fn the_command_compacts_even_if_compaction_is_disabled() {
    let room = Room::new();
    let off = json!({"agents": {"defaults": {"compaction": {"enabled": false}}}});
    room.write("ctx.json5", off.to_string());
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let replayed = room.json(&["replay", text(&path), "--window", "16000"]);
    assert_eq!(replayed["totals"]["compactions"], 0, "nothing is compacted automatically");
    let done = room.json(&compact(text(&path), &[]));
    assert_eq!(done["compacted"], true, "{done}");
    let summary = done["result"]["summary"].as_str().expect("a summary");
    assert!(summary.contains("## "), "{summary}");
}

#[test]
fn a_compaction_with_nothing_to_do_is_not_an_error() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(1)));
    let before = room.files();
    for more in [&[][..], &["--dry-run"]] {
        let done = room.json(&compact(text(&path), more));
        assert_eq!((&done["ok"], &done["compacted"]), (&json!(true), &json!(false)), "{more:?}");
        assert!(done["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{done}");
        assert_eq!(done["entryId"], Value::Null);
        assert!(done.get("result").is_none_or(Value::is_null), "{done}");
    }
    let ran = room.ctx(&compact(text(&path), &[]));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("nothing compacted: "), "{}", ran.stdout);
    assert_eq!(room.files(), before);
}

#[test]
fn a_dry_run_stores_nothing_and_reports_the_result() {
    let room = Room::new();
    for path in [room.write("s.jsonl", join(&pi_lines(TURNS))), formats::ours(&room, TURNS)] {
        let before = room.files();
        let tried = room.json(&compact(text(&path), &["--dry-run"]));
        assert_eq!((&tried["dryRun"], &tried["entryId"]), (&json!(true), &Value::Null));
        assert_eq!(room.files(), before);
        let done = room.json(&compact(text(&path), &[]));
        assert_eq!(tried["result"]["summary"], done["result"]["summary"]);
        assert_eq!(tried["result"]["tokensAfter"], done["result"]["tokensAfter"]);
    }
}

#[test]
fn files_of_other_programs_are_never_changed() {
    for (name, bytes) in formats::all(TURNS) {
        let room = Room::new();
        let path = room.write(name, &bytes);
        let before = room.files();
        let done = room.json(&compact(text(&path), &[]));
        assert_eq!(done["compacted"], true, "{name}: {done}");
        assert_eq!(room.files()[&path], before[&path], "{name}");
        assert!(room.path("overlays").is_dir(), "{name}");
        room.json(&["compact", text(&path), "--undo"]);
        assert_eq!(room.files()[&path], before[&path], "{name}");
    }
}

#[test]
fn a_compaction_is_appended_to_a_session_of_ctx() {
    let room = Room::new();
    let path = formats::ours(&room, TURNS);
    let before = std::fs::read_to_string(&path).expect("text");
    let done = room.json(&compact(text(&path), &[]));
    let after = std::fs::read_to_string(&path).expect("text");
    let added = after.strip_prefix(&before).expect("it is only appended to");
    let entry: Value = serde_json::from_str(added).expect("one line");
    assert_eq!(entry["type"], "compaction");
    assert_eq!(entry["id"], done["entryId"]);
    let last: Value = serde_json::from_str(before.lines().last().expect("a line")).expect("JSON");
    assert_eq!(entry["parentId"], last["id"]);
    for key in ["summary", "firstKeptEntryId", "tokensBefore", "details"] {
        assert_eq!(entry[key], done["result"][key], "{key}");
    }
    assert!(!room.path("overlays").exists());
}

#[test]
fn status_shows_the_tokens_that_compact_reported() {
    for (name, bytes) in formats::all(TURNS) {
        for profile in ["openclaw", "ponybunny", "copaw", "memory-context", "pi"] {
            let room = Room::new();
            let path = room.write(name, &bytes);
            let file = text(&path);
            let done = room.json(&compact(file, &["--profile", profile]));
            let status = room.json(&["status", file, "--window", "16000", "--profile", profile]);
            assert_eq!(
                done["result"]["tokensAfter"], status["context"]["tokens"],
                "{profile} {name}"
            );
            assert_eq!(status["context"]["compaction"], done["entryId"], "{profile} {name}");
            assert_eq!(status["shouldCompact"], false, "{profile} {name}");
        }
    }
}

#[test]
fn shortened_messages_are_counted_at_their_new_size() {
    let room = Room::new();
    let mut lines = pi_lines(20);
    // The newest result alone exceeds the tokens that may be kept.
    lines[79] = lines[79].replace("line of output", &"a longer line of output ".repeat(30));
    let path = room.write("s.jsonl", join(&lines[..80]));
    let file = text(&path);
    let done = room.json(&compact(file, &[]));
    let shortened = &done["result"]["details"]["receipt"]["shortened"];
    assert_eq!(shortened, &json!(["0000004e"]), "{done}");
    let status = room.json(&["status", file, "--window", "16000"]);
    assert_eq!(status["context"]["tokens"], done["result"]["tokensAfter"]);
    room.json(&["compact", file, "--undo"]);
    let undone = room.json(&["status", file, "--window", "16000"]);
    assert_eq!(undone["context"]["tokens"], done["result"]["tokensBefore"]);
}

#[test]
fn a_second_compaction_merges_the_earlier_summary() {
    let room = Room::new();
    let mut lines = pi_lines(TURNS * 2);
    lines[1] = lines[1].replace("question 0", "Never touch vendor/legacy.rs, whatever happens.");
    let path = room.write("s.jsonl", join(&lines[..1 + TURNS * 4]));
    let first = room.json(&compact(text(&path), &[]));
    room.write("s.jsonl", join(&lines));
    let second = room.json(&compact(text(&path), &[]));
    for done in [&first, &second] {
        let summary = done["result"]["summary"].as_str().expect("text");
        assert!(summary.contains("Never touch vendor/legacy.rs"), "{summary}");
    }
    let assembled = room.json(&["assemble", text(&path), "--window", "64000"]);
    let messages = assembled["messages"].as_array().expect("a list");
    let summaries = messages.iter().filter(|m| m["role"] == "compactionSummary");
    let summaries: Vec<_> = summaries.map(|m| &m["summary"]).collect();
    assert_eq!(summaries, [&second["result"]["summary"]]);
    let listed = room.json(&["compactions", text(&path)]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
}

#[test]
fn the_output_for_users_has_the_wording_of_copaw() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let dry = room.json(&compact(text(&path), &["--dry-run"]));
    let messages = &dry["result"]["details"]["receipt"]["messages"];
    let dry = room.ctx(&compact(text(&path), &["--dry-run"]));
    assert!(
        dry.stdout.starts_with("Dry run") && !dry.stdout.contains("Complete"),
        "{}",
        dry.stdout
    );
    let ran = room.ctx(&compact(text(&path), &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let block = format!(
        "**Compact Complete!**\n\n- Messages compacted: {messages}\n**Compressed Summary:**\n"
    );
    assert!(ran.stdout.starts_with(&block), "{}", ran.stdout);
    for words in
        ["tokens (", "written by extractive", "must be kept", "since the beginning (100.0 %)"]
    {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("stored as") && ran.stderr.contains("--undo"), "{}", ran.stderr);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}

#[test]
fn compact_obeys_a_target_and_instructions() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let done = room.json(&compact(text(&path), &["--dry-run", "--target", "3k"]));
    assert!(done["result"]["tokensAfter"].as_u64() <= Some(3_000), "{done}");
    let done = room.json(&compact(text(&path), &["--dry-run", "--instructions", "src/7.rs"]));
    assert!(done["result"]["summary"].as_str().is_some_and(|s| s.contains("src/7.rs")), "{done}");
    room.misused(&compact(text(&path), &["--target", "none"]), "invalid number of tokens 'none'");
}

#[test]
fn the_identifier_flag_decides_whether_identifiers_are_kept() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let summary = |policy: &str| {
        let done = room.json(&compact(text(&path), &["--dry-run", "--identifiers", policy]));
        done["result"]["summary"].as_str().expect("text").to_owned()
    };
    for policy in ["preserve", "strict"] {
        assert!(summary(policy).contains("src/3.rs"), "{policy}");
    }
    assert!(!summary("anonymize").contains("src/3.rs"));
}

#[test]
fn standard_input_allows_only_a_dry_run() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    let run = |args: &[&str]| {
        let file = std::fs::File::open(&path).expect("it is there");
        Ran::of(room.command(args).stdin(Stdio::from(file)))
    };
    let tried = run(&compact("-", &["--dry-run", "--json"]));
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    let tried: Value = serde_json::from_str(&tried.stdout).expect("JSON");
    assert_eq!(tried["compacted"], true);
    for args in [&compact("-", &[])[..], &["compact", "-", "--undo"]] {
        let refused = run(args);
        assert_eq!(refused.code, Some(2), "{args:?}");
        assert!(refused.stderr.starts_with("error: standard input"), "{}", refused.stderr);
        assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
    }
}

#[test]
fn a_recorded_request_stores_the_compaction_it_made() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    // In Anthropic's format, because pi's contains the time at which a summary was stored.
    let assemble = ["assemble", text(&path), "--window", "16000", "--to", "anthropic"];
    let sent = room.json(&[&assemble[..], &["--record"]].concat());
    let listed = room.json(&["compactions", text(&path)]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let again = room.json(&assemble);
    assert_eq!(sent["messages"], again["messages"]);
}
