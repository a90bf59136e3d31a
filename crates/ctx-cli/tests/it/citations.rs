//! `ctx diff`, `ctx expand` and `ctx compactions`: from a summary back to the original messages.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::formats;
use crate::support::{Room, join, pi_lines, text};

const TURNS: usize = 40;

/// Creates a compacted session in which the user stated a constraint.
fn compacted(room: &Room) -> (String, Value) {
    let mut lines = pi_lines(TURNS);
    lines[5] = lines[5].replace("question 1", "Never edit src/generated.rs. question 1");
    let path = room.write("s.jsonl", join(&lines));
    let done = room.json(&["compact", text(&path), "--window", "16000"]);
    (text(&path).to_owned(), done)
}

/// Returns the citations of a summary, with their brackets.
fn cited(summary: &str) -> Vec<String> {
    let parts = summary.split("[e:").skip(1).filter_map(|rest| rest.split_once(']'));
    parts.map(|(ids, _)| format!("[e:{ids}]")).collect()
}

fn messages(done: &Value) -> Option<usize> {
    done["result"]["details"]["receipt"]["messages"].as_u64().map(|n| n as usize)
}

#[test]
fn every_citation_of_a_summary_leads_to_its_message() {
    for (name, bytes) in formats::all(TURNS) {
        let room = Room::new();
        let path = room.write(name, bytes);
        let done = room.json(&["compact", text(&path), "--window", "16000"]);
        let summary = done["result"]["summary"].as_str().expect("text");
        let cited = cited(summary);
        assert!(!cited.is_empty(), "{name}: {summary}");
        let mut args = vec!["expand", text(&path)];
        args.extend(cited.iter().map(String::as_str));
        let found = room.json(&args);
        let ids: usize = cited.iter().map(|ids| ids.split(',').count()).sum();
        assert!(found.as_array().is_some_and(|found| found.len() >= ids), "{name}: {found}");
    }
}

#[test]
fn a_line_of_the_summary_is_found_in_the_message_it_cites() {
    let room = Room::new();
    let (file, done) = compacted(&room);
    let summary = done["result"]["summary"].as_str().expect("text");
    let line =
        summary.lines().find(|line| line.contains("src/generated.rs") && line.contains("[e:"));
    let cited = cited(line.unwrap_or_else(|| panic!("no line cites it: {summary}")));
    let said = "Never edit src/generated.rs. question 1";
    let original = room.json(&["expand", &file, &cited[0]]);
    assert!(original.to_string().contains(said), "{original}");
    let ran = room.ctx(&["expand", &file, &cited[0]]);
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("user 00000004"), "{}", ran.stdout);
}

#[test]
fn a_citation_may_be_written_in_many_ways() {
    let room = Room::new();
    let uuid = "7a5b33d0-11aa-4000-8000-000000000000";
    let lines = pi_lines(20).join("\n").replace("00000007", uuid);
    let path = room.write("s.jsonl", lines.replace("00000008", "7a5b9999"));
    let file = text(&path);
    let whole = room.json(&["expand", file, uuid]);
    assert_eq!(whole[0]["content"][0]["text"], "answer 1");
    for cited in ["7a5b3", "e:7a5b3", "[e:7a5b3]", "[e:7a5b33d0-11aa]"] {
        assert_eq!(room.json(&["expand", file, cited]), whole, "{cited}");
    }
    let two = room.json(&["expand", file, "7a5b3", "7a5b9"]);
    assert_eq!(two.as_array().map(Vec::len), Some(2));
    for cited in ["[e:7a5b3, e:7a5b9]", "[e:7a5b3,7a5b9]", "[e:7a5b3] [e:7a5b9]"] {
        assert_eq!(room.json(&["expand", file, cited]), two, "{cited}");
    }
}

#[test]
fn a_citation_of_nothing_or_of_several_is_an_error_with_a_hint() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(3)));
    for (cited, words, hint) in [
        ("[e:ffffffff]", "entry 'ffffffff' not found", "hint: `ctx convert"),
        ("e:0000000", "several ids begin with '0000000'", "hint: give a longer prefix"),
        ("", "entry '' not found", "hint: "),
        ("[]", "entry '[]' not found", "hint: "),
        ("\u{1b}]0;owned\u{7}", "entry '", "hint: "),
    ] {
        let ran = room.ctx(&["expand", text(&path), cited]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{cited}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains(hint), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
    }
}

#[test]
fn a_compaction_expands_to_all_messages_it_replaced() {
    let room = Room::new();
    let (file, done) = compacted(&room);
    let id = done["entryId"].as_str().expect("an id");
    let originals = room.json(&["expand", &file, id]);
    assert_eq!(originals.as_array().map(Vec::len), messages(&done));
}

#[test]
fn a_diff_lists_removed_facts_and_where_they_were_kept() {
    let room = Room::new();
    let (file, done) = compacted(&room);
    let diff = room.json(&["diff", &file]);
    assert_eq!(diff["compaction"], done["entryId"]);
    let removed = diff["removed"].as_array().expect("a list");
    assert_eq!(Some(removed.len()), messages(&done));
    assert_eq!(removed[0]["entry"], "00000000");
    let facts = diff["facts"].as_array().expect("a list");
    let ours = facts.iter().find(|f| f["text"].as_str().is_some_and(|t| t.contains("Never edit")));
    let ours = ours.unwrap_or_else(|| panic!("the constraint is not a fact: {facts:?}"));
    assert_eq!((&ours["entry"], &ours["kind"]), (&json!("00000004"), &json!("constraint")));
    assert_eq!(ours["survives"]["in"], "summary", "{ours}");
    // Most important first: facts are sorted by kind.
    let kinds: Vec<_> = facts.iter().map(|f| f["kind"].as_str().unwrap_or_default()).collect();
    let mut seen = HashSet::new();
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| run[0]);
    assert!(runs.into_iter().all(|kind| seen.insert(kind)), "{kinds:?}");
    let lost = room.json(&["diff", &file, "--lost"]);
    let lost = lost["facts"].as_array().expect("a list");
    assert!(lost.iter().all(|fact| fact["survives"]["in"] == "lost"), "{lost:?}");
}

#[test]
fn a_compaction_is_found_by_a_prefix_of_its_id() {
    let room = Room::new();
    let (file, done) = compacted(&room);
    let id = done["entryId"].as_str().expect("an id");
    let whole = room.json(&["diff", &file, id]);
    // A summary cites an earlier summary by a prefix of its id.
    let replaced = room.json(&["expand", &file, id]);
    assert!(replaced.as_array().is_some_and(|messages| messages.len() > 1), "{replaced}");
    let short = id.get(..8).expect("a UUID");
    for cited in [short.to_owned(), format!("e:{short}"), format!("[e:{short}]")] {
        assert_eq!(room.json(&["expand", &file, &cited]), replaced, "{cited}");
    }
    assert_eq!(room.json(&["diff", &file]), whole);
    let ran = room.ctx(&["compactions", &file]);
    let shown = ran.stdout.lines().nth(1).and_then(|l| l.split(' ').next()).expect("a row");
    assert_eq!(room.json(&["diff", &file, shown]), whole, "{shown}");
    room.refused(&["diff", &file, "00000003"], "'00000003' is not a compaction");
    room.refused(&["diff", &file, "ffffffff"], "entry 'ffffffff' not found");
    room.json(&["compact", &file, "--undo"]);
    room.refused(&["diff", &file], "no compaction in force");
    assert_eq!(room.json(&["diff", &file, id]), whole, "an undone compaction can still be shown");
}

#[test]
fn compactions_are_listed_with_their_state() {
    let room = Room::new();
    let lines = pi_lines(TURNS * 2);
    let path = room.write("s.jsonl", join(&lines[..1 + TURNS * 4]));
    let file = text(&path);
    let empty = room.ctx(&["compactions", file]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert_eq!(room.json(&["compactions", file]), json!([]));
    room.json(&["compact", file, "--window", "16000"]);
    room.write("s.jsonl", join(&lines));
    room.json(&["compact", file, "--window", "16000"]);
    let states = || -> Vec<&'static str> {
        let listed = room.ctx(&["compactions", file]).stdout;
        let state = |line: &str| {
            ["undone", "in force", "replaced"].into_iter().find(|state| line.contains(state))
        };
        listed.lines().skip(1).filter_map(state).collect()
    };
    assert_eq!(states(), ["replaced", "in force"]);
    room.json(&["compact", file, "--undo"]);
    assert_eq!(states(), ["in force", "undone"]);
}

#[test]
fn a_line_leads_to_its_message_and_to_the_bytes_in_the_file() {
    let room = Room::new();
    let mut lines = pi_lines(TURNS * 2);
    lines[5] = lines[5].replace("question 1", "Never edit src/generated.rs. question 1");
    let path = room.write("s.jsonl", join(&lines[..1 + TURNS * 4]));
    let file = text(&path);
    room.json(&["compact", file, "--window", "16000"]);
    room.write("s.jsonl", join(&lines));
    let done = room.json(&["compact", file, "--window", "16000"]);
    let summary = done["result"]["summary"].as_str().expect("text");
    let line = summary.lines().find(|line| line.contains("Never edit")).expect("a line");
    for asked in [line, "never edit src/generated.rs", "Never edit  src/generated.rs."] {
        let found = room.json(&["why", file, asked]);
        let origins = found["lines"].as_array().expect("a list");
        assert_eq!(origins.len(), 2, "both summaries have the line: {found}");
        assert_eq!(origins[0]["compaction"], done["entryId"], "newest first: {found}");
        for origin in origins {
            assert_eq!(origin["facts"][0]["kind"], "constraint", "{found}");
            let source = &origin["sources"][0];
            assert_eq!(
                (&source["entry"], &source["support"]),
                (&json!("00000004"), &json!("verbatim"))
            );
            let place = &source["place"];
            let number = |key: &str| place[key].as_u64().expect("a number") as usize;
            assert_eq!(number("line"), 6);
            let bytes = &join(&lines)[number("offset")..][..number("bytes")];
            assert_eq!(bytes, lines[5]);
        }
    }
    let shown = room.ctx(&["explain", file, line]);
    assert!(shown.stdout.contains("«Never edit src/generated.rs."), "{}", shown.stdout);
    room.refused(&["why", file, "The moon is made of cheese"], "nothing supports 'The moon");
    room.refused(&["why", file, "[e:00000004]"], "the text contains no words");
    room.refused(&["why", "missing.jsonl", "a line"], "missing.jsonl");
}

#[test]
fn an_invented_line_is_shown_as_unsupported() {
    let room = Room::new();
    let compaction = r#"{"type":"compaction","id":"c0000000","parentId":"0000000b","timestamp":"2026-01-05T09:00:00.000Z","summary":"- The server runs on Mars\n- answer 1","firstKeptEntryId":"00000008","tokensBefore":9}"#;
    let path = room.write("s.jsonl", join(&pi_lines(3)) + compaction + "\n");
    let asked = ["why", text(&path), "The server runs on Mars", "--json"];
    let ran = room.ctx(&asked);
    let found: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &found["lines"][0]["sources"]), (Some(1), &json!([])), "{found}");
    assert_eq!(found["lines"][0]["compaction"], "c0000000");
    let shown = room.ctx(&asked[..3]).stdout;
    assert!(shown.contains("nothing in the original messages supports it"), "{shown}");
    let found = room.json(&["why", text(&path), "answer 1"]);
    assert_eq!(found["lines"][0]["sources"][0]["entry"], "00000007", "{found}");
}
