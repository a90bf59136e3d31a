//! `ctx memory forget`: messages found only in the archive are erased with their derived data.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::forget::planted;
use crate::forget_bounds::{room, session, value};
use crate::memory::{keeps_old, said};
use crate::support::{Room, join, pi_lines, text};

const TALK: &str = "agents/main/sessions/a.jsonl";

fn result(room: &Room, name: &str, text: &str) -> PathBuf {
    room.write(&format!("agents/main/tool-results/{name}.txt"), text)
}

fn forget(room: &Room, args: &[&str]) -> Value {
    room.json(&[&["memory", "forget", "--yes"], args].concat())
}

/// Archives a session of the home, and removes its transcript.
fn archived(room: &Room, texts: &[&str]) {
    let file = session(room, TALK, "s1", texts);
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn results_of_a_lost_transcript_are_erased_with_its_session() {
    let room = room();
    archived(&room, &["the full text is in tool-results/one.txt", "b"]);
    let one = result(&room, "one", "all of it");
    let lines = [pi_lines(0).remove(0), said(0, "user", "c").replace("00000000", "0000000a")];
    let source = room.write("source.jsonl", join(&lines));
    let talk = room.path(TALK);
    let to = ["convert", text(&source), "--to", "ctx", "--output", text(&talk)];
    assert_eq!(room.ctx(&to).code, Some(0));
    let gone = forget(&room, &["--session", "s1"]);
    assert_eq!(gone["agents"][0]["toolResults"], 1, "{gone}");
    assert!(!one.exists());
}

#[test]
fn a_file_that_a_projection_of_another_session_names_is_kept() {
    let room = room();
    archived(&room, &["the full text is in tool-results/one.txt", "b"]);
    let one = result(&room, "one", "all of it");
    let file = session(&room, "agents/main/sessions/b.jsonl", "s2", &["a", "b"]);
    let form = json!({
        "key": {"entry": "00000000", "hash": "0".repeat(32)}, "layer": "tool-guard",
        "form": "dropped", "reason": "moved to tool-results/one.txt",
    });
    let line = json!({
        "type": "custom", "customType": "ctx.projections", "id": "000000ff",
        "parentId": "00000001", "timestamp": "2026-01-05T09:00:00.000Z", "data": [form],
    });
    let before = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, format!("{before}{line}\n")).expect("it is written");
    let gone = forget(&room, &["--session", "s1"]);
    assert_eq!((&gone["agents"][0]["segments"], one.exists()), (&json!(2), true), "{gone}");
}

#[test]
fn a_file_belongs_to_the_first_archived_message_that_names_it() {
    let room = room();
    archived(&room, &["the full text is in tool-results/one.txt", "I read tool-results/one.txt"]);
    let one = result(&room, "one", "all of it");
    assert_eq!(forget(&room, &["--entry", "00000001"])["agents"][0]["toolResults"], 0);
    assert!(one.exists(), "the remaining message refers to it");
    assert_eq!(forget(&room, &["--entry", "00000000"])["agents"][0]["toolResults"], 1);
    assert!(!one.exists());
}

#[test]
fn an_archived_result_without_its_secrets_matches_its_file() {
    let room = room();
    let key = "ghp_x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm";
    let output = format!("the remote is https://{key}@github.com/acme/widgets.git");
    let called = "\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"bash\"";
    let of_tool = |n: usize, text: &str| {
        let line = said(n, "toolResult", text).replace("\"role\":\"toolResult\"", called);
        line.replace("\"content\"", &format!("\"isError\":{},\"content\"", n == 1))
    };
    let lines = [
        pi_lines(0).remove(0),
        of_tool(0, &output),
        of_tool(1, "no such file"),
        of_tool(2, "something else"),
    ];
    let outside = Room::new();
    let file = outside.write("talk.jsonl", join(&lines));
    room.json(&["memory", "ingest", text(&file)]);
    drop(outside);
    let files = [("one", &*output), ("two", "no such file"), ("three", "something else")];
    let [one, two, three] = files.map(|(name, text)| result(&room, name, text));
    assert!(!room.ctx(&["memory", "search", "remote"]).stdout.contains(key));
    assert_eq!(forget(&room, &["--entry", "00000000"])["agents"][0]["toolResults"], 1);
    assert_eq!(forget(&room, &["--entry", "00000001"])["agents"][0]["toolResults"], 1);
    assert_eq!([one, two, three].map(|file| file.exists()), [false, false, true]);
}

#[test]
fn engine_values_are_erased_with_a_session_found_only_in_the_archive() {
    let room = room();
    archived(&room, &["a red heron", "b"]);
    let [of_it, of_another] = ["head/s1", "head/s12"].map(|key| value(&room, key, "{}"));
    let gone = forget(&room, &["--session", "s1"]);
    assert_eq!(gone["agents"][0]["engineValues"], 1, "{gone}");
    assert!(!of_it.exists() && of_another.exists());
}

/// Creates a home with the overlay of a deleted file of another program, and with files of tool
/// results that its projections refer to. Also returns the former folder and path of the file.
fn lost() -> (Room, Room, PathBuf) {
    let room = Room::new();
    let mut config = keeps_old(json!({}));
    config["agents"]["defaults"]["toolGuard"] = json!({"offload": {"enabled": true}});
    room.write("ctx.json5", config.to_string());
    let outside = Room::new();
    let talk = join(&planted(40)).replace("00000002", "abcd0002");
    let file = outside.write("talks/theirs.jsonl", talk);
    let file = file.canonicalize().expect("it is there");
    room.json(&["assemble", text(&file), "--window", "32k", "--record"]);
    assert!(results(&room) > 0, "results were moved to files");
    std::fs::remove_file(&file).expect("it is there");
    (room, outside, file)
}

fn results(room: &Room) -> usize {
    let listed = std::fs::read_dir(room.path("agents/main/tool-results"));
    listed.map_or(0, Iterator::count)
}

#[test]
fn results_are_erased_with_an_overlay_whose_transcript_is_missing() {
    let (room, outside, _) = lost();
    let before = results(&room);
    let args = ["memory", "forget", "--yes", "--json", "--session", "talks/theirs.jsonl"];
    let mut command = room.command(&args);
    let done = command.current_dir(outside.path("")).output().expect("it runs");
    let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
    assert_eq!(report["agents"][0]["toolResults"], before, "{report}");
    assert_eq!(results(&room), 0);
}

#[test]
fn an_entry_of_an_overlay_without_transcript_is_erased_by_an_id_prefix() {
    let (room, _outside, file) = lost();
    let before = results(&room);
    let file = text(&file);
    let of_file = |id| ["memory", "forget", "--yes", "--session", file, "--entry", id];
    room.refused(&of_file("ffffffff"), "no session has a message of that id");
    room.refused(&of_file("0000"), "several entries begin with that id");
    let gone = room.json(&of_file("abcd"));
    assert!(gone["files"][0]["forms"].as_u64() >= Some(1), "{gone}");
    assert_eq!(results(&room), before - 1);
}
