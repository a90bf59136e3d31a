//! `ctx compact --undo`: restores the previous context, byte for byte.

use std::path::Path;

use ctx_session::{LogOptions, SessionLog};
use serde_json::{Value, json};

use crate::formats;
use crate::support::{Room, join, pi_lines, text};

const TURNS: usize = 40;

/// Returns the next request, as printed.
fn context(room: &Room, path: &Path) -> String {
    let ran = room.ctx(&["assemble", text(path), "--window", "64000", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

fn compact(room: &Room, path: &Path, target: &str) -> Value {
    let done = room.json(&["compact", text(path), "--window", "16000", "--target", target]);
    assert_eq!(done["compacted"], true, "{done}");
    done
}

fn undo(room: &Room, path: &Path) -> Value {
    let undone = room.json(&["compact", text(path), "--undo"]);
    assert_eq!((&undone["ok"], &undone["undone"]), (&json!(true), &json!(true)), "{undone}");
    undone
}

#[test]
fn undo_gives_back_the_exact_context_in_every_format() {
    let mut formats = formats::all(TURNS);
    formats.push(("ours", String::new()));
    for (name, bytes) in formats {
        let room = Room::new();
        let path = match name {
            "ours" => formats::ours(&room, TURNS),
            _ => room.write(name, bytes),
        };
        let whole = context(&room, &path);
        let done = compact(&room, &path, "8k");
        let once = context(&room, &path);
        assert_ne!(once, whole, "{name}");
        compact(&room, &path, "4k");
        let twice = context(&room, &path);
        assert_ne!(twice, once, "{name}");
        undo(&room, &path);
        assert_eq!(context(&room, &path), once, "{name}: one of two is undone");
        let undone = undo(&room, &path);
        assert_eq!(undone["compactionId"], done["entryId"], "{name}");
        assert_eq!(context(&room, &path), whole, "{name}: both are undone");
    }
}

#[test]
fn an_undo_of_an_undo_restores_the_compaction() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    compact(&room, &path, "8k");
    let compacted = context(&room, &path);
    let undone = undo(&room, &path);
    let entry = undone["entryId"].as_str().expect("an id");
    let args = ["compact", text(&path), "--undo", "--compaction", entry];
    let redone = room.json(&args);
    assert_eq!((&redone["undone"], &redone["compactionId"]), (&json!(true), &json!(entry)));
    assert_eq!(context(&room, &path), compacted);
    // A second time there is nothing left to undo, which is not an error.
    assert_eq!(room.json(&args)["undone"], false);
    assert_eq!(context(&room, &path), compacted);
}

#[test]
fn an_undo_restores_the_context_with_later_turns() {
    let (less, more) = (formats::all(TURNS), formats::all(TURNS + 3));
    for ((name, before), (_, after)) in less.into_iter().zip(more) {
        let room = Room::new();
        let path = room.write(name, &after);
        let whole = context(&room, &path);
        room.write(name, before);
        compact(&room, &path, "8k");
        room.write(name, after);
        let compacted = context(&room, &path);
        assert_ne!(compacted, whole, "{name}: the compaction applies after the file grew");
        assert!(compacted.contains(&format!("question {}", TURNS + 2)), "{name}");
        undo(&room, &path);
        assert_eq!(context(&room, &path), whole, "{name}");
    }
}

#[test]
fn a_session_of_ctx_continues_after_a_compaction_and_after_its_undo() {
    let room = Room::new();
    let path = formats::ours(&room, TURNS);
    let messages = |room: &Room| {
        let json: Value = serde_json::from_str(&context(room, &path)).expect("JSON");
        json["messages"].as_array().expect("a list").clone()
    };
    let whole = messages(&room);
    compact(&room, &path, "8k");
    let mut log = SessionLog::open(&path, LogOptions::default()).expect("it is free");
    formats::append(&mut log, TURNS..TURNS + 2);
    log.close().expect("it is written");
    assert_eq!(messages(&room)[0]["role"], "compactionSummary");
    undo(&room, &path);
    let undone = messages(&room);
    assert_eq!(undone[..whole.len()], whole[..]);
    assert_eq!(undone.len(), whole.len() + 8);
}

#[test]
fn an_undo_with_nothing_to_undo_is_not_an_error() {
    let room = Room::new();
    for path in [room.write("s.jsonl", join(&pi_lines(3))), formats::ours(&room, 3)] {
        let before = room.files();
        let undone = room.json(&["compact", text(&path), "--undo"]);
        assert_eq!((&undone["ok"], &undone["undone"]), (&json!(true), &json!(false)));
        assert!(undone["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{undone}");
        let ran = room.ctx(&["compact", text(&path), "--undo"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.starts_with("nothing to undo"), "{}", ran.stdout);
        assert_eq!(room.files(), before);
    }
}

#[test]
fn only_compactions_and_undos_can_be_undone() {
    let room = Room::new();
    let path = room.write("s.jsonl", join(&pi_lines(TURNS)));
    compact(&room, &path, "8k");
    let files = room.files();
    for (id, words) in [
        ("00000003", "not a compaction"),
        ("ffffffff", "entry 'ffffffff' not found"),
        ("0000", "several ids begin with '0000'"),
        ("", "entry '' not found"),
    ] {
        let ran = room.ctx(&["compact", text(&path), "--undo", "--compaction", id]);
        assert_eq!(ran.code, Some(1), "{id}");
        assert!(ran.stderr.starts_with(&format!("error: {words}")), "{id}: {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{id}: {}", ran.stderr);
    }
    assert_eq!(room.files(), files);
}

#[test]
fn a_branch_gets_a_summary_of_the_abandoned_messages() {
    let room = Room::new();
    let path = formats::ours(&room, TURNS);
    let session = text(&path);
    let ends = room.json(&["sessions", "branch", session]);
    assert_eq!(ends.as_array().map(Vec::len), Some(1), "{ends}");
    let leaf = ends[0]["id"].as_str().unwrap().to_owned();
    let first = room.json(&["assemble", session, "--window", "64000"]);
    let first = first["manifest"]["entries"][1]["entry"].as_str().unwrap().to_owned();
    let before = std::fs::read(&path).unwrap();

    let moved = room.json(&["sessions", "branch", session, &first]);
    assert_eq!(moved["target"], json!(first));
    assert!(moved["messagesLeft"].as_u64() > Some(10), "{moved}");
    assert!(std::fs::read(&path).unwrap().starts_with(&before), "nothing is removed");
    assert!(context(&room, &path).contains("explored a different conversation branch"));

    let back = room.json(&["sessions", "branch", session, &leaf]);
    assert_eq!(back["messagesLeft"], json!(1), "the summary: {back}");
    let ends = room.json(&["sessions", "branch", session]);
    assert_eq!(ends.as_array().map(Vec::len), Some(2), "{ends}");
    let wrong = room.ctx(&["sessions", "branch", session, "zzzz"]);
    assert_ne!(wrong.code, Some(0));
    let foreign = room.write("s.jsonl", join(&pi_lines(4)));
    let refused = room.ctx(&["sessions", "branch", text(&foreign), &leaf]);
    assert!(refused.stderr.contains("only a session of ctx can be changed"), "{}", refused.stderr);
}
