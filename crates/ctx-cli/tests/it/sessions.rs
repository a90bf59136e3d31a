//! `ctx sessions maintain`.

use std::path::PathBuf;

use crate::support::{Room, join, pi_lines, text};

/// Creates a session of ctx in the store, last used long ago.
fn old_session(room: &Room, id: &str) -> PathBuf {
    let source = room.write("source.jsonl", join(&pi_lines(4)));
    let path = room.path(&format!("agents/main/sessions/{id}.jsonl"));
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    let ran = room.ctx(&["convert", text(&source), "--to", "ctx", "-o", text(&path), "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::fs::remove_file(source).expect("it was there");
    path
}

fn files(room: &Room) -> Vec<String> {
    let folder = std::fs::read_dir(room.path("agents/main/sessions")).expect("a folder");
    let names = folder.map(|file| file.expect("a file").file_name().into_string().expect("text"));
    let mut names: Vec<_> = names.filter(|name| !name.ends_with(".lock")).collect();
    names.sort();
    names
}

const STORE: &str = "agents/main/sessions/sessions.json";

#[test]
fn maintain_archives_old_sessions_and_a_dry_run_lists_them() {
    let room = Room::new();
    assert_eq!(room.json(&["sessions", "maintain"]), serde_json::json!([]));
    old_session(&room, "old");
    room.write(STORE, r#"{"agent:main:old":{"sessionId":"old","updatedAt":1}}"#);
    let before = files(&room);
    let dry = room.json(&["sessions", "maintain", "--dry-run"]);
    assert_eq!(dry[0]["done"][0]["sessionKey"], "agent:main:old");
    assert_eq!(
        (&dry[0]["done"][0]["act"], &dry[0]["done"][0]["why"]),
        (&"archived".into(), &"age".into())
    );
    assert_eq!((&dry[0]["entriesBefore"], &dry[0]["entriesAfter"]), (&1.into(), &0.into()));
    assert_eq!(files(&room), before);
    let ran = room.ctx(&["sessions", "maintain"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("agent:main:old") && ran.stdout.contains("archived"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("0 sessions (1 before)"), "{}", ran.stdout);
    let after = files(&room);
    assert!(after.len() == 2 && after[0].starts_with("old.jsonl.deleted."), "{after:?}");
    let ran = room.ctx(&["sessions", "maintain"]);
    assert!(!ran.stdout.contains("archived  "), "there is nothing left to do: {}", ran.stdout);
}

#[test]
fn archived_sessions_are_found_by_forget() {
    let room = Room::new();
    old_session(&room, "old");
    room.write(STORE, r#"{"agent:main:old":{"sessionId":"old","updatedAt":1}}"#);
    assert_eq!(room.ctx(&["sessions", "maintain"]).code, Some(0));
    let archived = room.path(&format!("agents/main/sessions/{}", files(&room)[0]));
    let read = || std::fs::read_to_string(&archived).expect("it is there");
    let said = "line of output";
    assert!(read().contains(said));
    let ran = room.ctx(&["memory", "forget", "--matching", said, "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!read().contains(said));
}

#[test]
fn an_invalid_configuration_is_refused_before_anything_changes() {
    let room = Room::new();
    old_session(&room, "old");
    room.write(STORE, r#"{"agent:main:old":{"sessionId":"old","updatedAt":1}}"#);
    let before = files(&room);
    room.write("ctx.json5", "{ session: { maintenance: { pruneAfter: 'soon' } } }");
    room.refused(&["sessions", "maintain"], "session.maintenance.pruneAfter");
    room.write("ctx.json5", "{ session: { maintenance: { pruneAfterr: '3d' } } }");
    room.refused(&["sessions", "maintain"], "pruneAfter");
    room.write("ctx.json5", "{}");
    room.misused(&["sessions", "maintain", "--agent", "../x"], "../x");
    assert_eq!(files(&room), before);
}
