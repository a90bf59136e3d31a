//! `ctx memory ingest` with many transcripts, equal messages and a full archive.

use serde_json::{Value, json};

use crate::memory::{keeps_old, said};
use crate::support::{Room, join, pi_lines, text};

fn room(memory: Value) -> Room {
    let room = Room::new();
    room.write("ctx.json5", keeps_old(memory).to_string());
    room
}

/// Creates a transcript of these messages.
fn talk(room: &Room, session: &str, messages: std::ops::Range<usize>) -> String {
    let mut lines = vec![pi_lines(0).remove(0).replace("\"s1\"", &format!("\"{session}\""))];
    let first = messages.start;
    lines.extend(messages.map(|n| said(n, "user", &format!("message number {n}"))));
    let none = format!("\"parentId\":\"{:08x}\"", first.saturating_sub(1));
    lines[1] = lines[1].replace(&none, "\"parentId\":null");
    text(&room.write(&format!("{session}.jsonl"), join(&lines))).to_owned()
}

fn figures(report: &Value, at: usize) -> [u64; 4] {
    ["added", "known", "repeated", "older"]
        .map(|of| report["sessions"][at][of].as_u64().unwrap_or(u64::MAX))
}

#[test]
fn the_others_are_archived_if_one_transcript_is_unreadable() {
    let room = room(json!({}));
    let [one, two] = ["one", "two"].map(|name| talk(&room, name, 0..3));
    let ran = room.ctx(&["memory", "ingest", &one, "/nonexistent", &two, "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("a report");
    assert_eq!(
        (&report["segments"], report["sessions"].as_array().map(Vec::len)),
        (&json!(6), Some(2))
    );
    assert_eq!(report["failed"][0]["path"], "/nonexistent", "{report}");
    assert!(report["failed"][0]["error"].as_str().is_some_and(|error| !error.is_empty()));
    assert!(ran.stderr.contains("/nonexistent was not archived"), "{}", ran.stderr);
    assert_eq!(room.ctx(&["memory", "ingest", "/nonexistent"]).code, Some(1));
}

#[test]
fn repeated_and_already_archived_messages_are_counted_separately() {
    let room = room(json!({}));
    let mut lines = vec![pi_lines(0).remove(0)];
    lines.extend(
        ["a", "go on", "go on", "go on"].iter().enumerate().map(|(n, t)| said(n, "user", t)),
    );
    let file = room.write("talk.jsonl", join(&lines));
    let ingest = || room.json(&["memory", "ingest", text(&file)]);
    assert_eq!(figures(&ingest(), 0), [2, 0, 2, 0]);
    assert_eq!(figures(&ingest(), 0), [0, 2, 2, 0]);
}

#[test]
fn the_oldest_messages_of_a_long_transcript_evict_no_newer_ones() {
    let room = room(json!({"maxSegments": 100}));
    let (old, new) = (talk(&room, "old", 0..300), talk(&room, "new", 400..460));
    let report = room.json(&["memory", "ingest", &old]);
    assert_eq!((figures(&report, 0), &report["segments"]), ([100, 0, 0, 200], &json!(100)));
    let again = room.ctx(&["memory", "ingest", &old]);
    assert!(again.stdout.contains("0 archived, 100 known, 200 older"), "{}", again.stdout);
    assert!(
        again.stderr.contains("200 messages skipped, as they are older than the archive keeps"),
        "{}",
        again.stderr
    );
    // Newer messages are archived, and remain when the old ones are archived again.
    assert_eq!(figures(&room.json(&["memory", "ingest", &new]), 0), [60, 0, 0, 0]);
    let report = room.json(&["memory", "ingest", &old]);
    assert_eq!((figures(&report, 0), &report["segments"]), ([0, 40, 0, 260], &json!(100)));
    assert_eq!(figures(&room.json(&["memory", "ingest", &new]), 0), [0, 60, 0, 0]);
}
