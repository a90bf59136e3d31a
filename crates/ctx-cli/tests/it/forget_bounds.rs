//! `ctx memory forget`: other data remains, and unreachable data is reported.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::memory::{keeps_old, said};
use crate::support::{Room, join, pi_lines, text};

pub(crate) fn room() -> Room {
    let room = Room::new();
    room.write("ctx.json5", keeps_old(json!({})).to_string());
    room
}

/// Creates and archives a session of ctx with this id and these texts in the home.
pub(crate) fn session(room: &Room, at: &str, id: &str, texts: &[&str]) -> PathBuf {
    let mut lines = vec![pi_lines(0).remove(0).replace("\"s1\"", &format!("\"{id}\""))];
    lines.extend(texts.iter().enumerate().map(|(n, text)| said(n, "user", text)));
    let outside = Room::new();
    let source = outside.write("source.jsonl", join(&lines));
    let file = room.path(at);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
    let made = room.ctx(&["convert", text(&source), "--to", "ctx", "--output", text(&file)]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let agent = at.split('/').nth(1).expect("an agent");
    room.json(&["memory", "ingest", text(&file), "--agent", agent]);
    file
}

/// Stores a value of an engine under a key.
pub(crate) fn value(room: &Room, key: &str, text: &str) -> PathBuf {
    let name = key.replace('/', "_");
    let line = json!(format!("engines/tree/{key}")).to_string();
    let at = format!("agents/main/store/engines/tree/{name}.value");
    room.write(&at, format!("{line}\n{text}"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it is there")
}

/// Forgets, expects an incomplete result, and returns the report.
pub(crate) fn incomplete(room: &Room, args: &[&str]) -> Value {
    let ran = room.ctx(&[&["memory", "forget", "--yes", "--json"], args].concat());
    assert_eq!(ran.code, Some(1), "{} {}", ran.stdout, ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("a report");
    assert_eq!(report["complete"], false, "{report}");
    report
}

pub(crate) fn holds(report: &Value, path: &str) -> bool {
    let held = report["stillHeld"].as_array().expect("a list");
    held.iter().any(|held| held["path"].as_str().is_some_and(|at| at.contains(path)))
}

#[test]
fn the_name_of_several_sessions_is_refused_and_a_path_is_unambiguous() {
    let room = room();
    let one = session(&room, "agents/main/sessions/chat.jsonl", "c1", &["a red heron"]);
    let two = session(&room, "agents/ops/sessions/chat.jsonl", "c1", &["a blue heron"]);
    let before = room.files();
    let all = ["memory", "forget", "--yes", "--session"];
    room.refused(&[&all[..], &["c1"]].concat(), "several sessions have that name");
    room.refused(&[&all[..], &["chat"]].concat(), "unknown session");
    let mistyped = ["chat", "--matching", "red heron"];
    room.refused(&[&all[..], &mistyped].concat(), "unknown session");
    assert_eq!(room.files(), before);
    let gone = room.json(&[&all[..], &[text(&one)]].concat());
    assert_eq!(gone["messages"].as_array().map(Vec::len), Some(1), "{gone}");
    assert!(!read(&one).contains("heron") && read(&two).contains("blue heron"));
    assert_eq!(room.json(&["memory", "stats"])["segments"], 0);
    assert_eq!(room.json(&["memory", "stats", "--agent", "ops"])["segments"], 1);
}

#[test]
fn a_session_outside_of_the_home_is_found_by_a_relative_path() {
    let (room, outside) = (room(), Room::new());
    let lines = [pi_lines(0).remove(0), said(0, "user", "a red heron"), said(1, "user", "b")];
    let file = outside.write("talks/theirs.jsonl", join(&lines));
    room.json(&["memory", "ingest", text(&file)]);
    let args = ["memory", "forget", "--yes", "--json", "--session", "talks/theirs.jsonl"];
    let mut command = room.command(&args);
    let done = command.current_dir(outside.path("")).output().expect("it runs");
    let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
    assert_eq!(report["agents"][0]["segments"], 2, "{report}");
    assert!(holds(&report, "talks/theirs.jsonl"), "{report}");
    assert_eq!(room.json(&["memory", "stats"])["segments"], 0);
}

#[test]
fn engine_values_are_erased_only_for_the_named_session() {
    let room = room();
    session(&room, "agents/main/sessions/a.jsonl", "s1", &["a red heron", "b"]);
    session(&room, "agents/main/sessions/b.jsonl", "s12", &["a red heron", "b"]);
    let heron = r#"{"summary":"a RED\nheron"}"#;
    let [one, two] = ["head/s1", "head/s12"].map(|key| value(&room, key, heron));
    let more = value(&room, "node/s1/4", r#"{"summary":"nothing of it"}"#);
    let only = ["--matching", "red heron", "--session", "s1"];
    let gone = room.json(&[&["memory", "forget", "--yes"], &only[..]].concat());
    assert_eq!(gone["agents"][0]["engineValues"], 2, "{gone}");
    assert!(!one.exists() && !more.exists() && two.exists());
    let [one, three] = ["head/s1", "head/s1:thread:2"].map(|key| value(&room, key, "{}"));
    let gone = room.json(&["memory", "forget", "--yes", "--session", "s1"]);
    assert_eq!(gone["agents"][0]["engineValues"], 1, "{gone}");
    assert!(!one.exists() && two.exists() && three.exists());
}

#[test]
fn engine_values_are_searched_as_json() {
    let room = room();
    let texts = [
        (r#"Red "heron""#, r#"{"a":"the red \"heron\" flew"}"#),
        ("grey heron", r#"{"a":"a grey\nheron"}"#),
        ("图表库", r#"{"a":"\u56fe\u8868\u5e93"}"#),
    ];
    for (what, kept) in texts {
        let value = value(&room, "head/x", kept);
        let gone = room.json(&["memory", "forget", "--yes", "--matching", what]);
        assert_eq!(
            (&gone["agents"][0]["engineValues"], value.exists()),
            (&json!(1), false),
            "{gone}"
        );
    }
}

#[test]
fn unreadable_data_is_reported_and_the_run_is_incomplete() {
    let forget = ["--matching", "red heron"];
    let talk = "agents/main/sessions/a.jsonl";
    let room = self::room();
    session(&room, talk, "s1", &["a red heron", "b"]);
    room.write("agents/main/sessions/b.jsonl", "no transcript");
    room.write("agents/main/sessions/a.jsonl.archived-1", "no transcript");
    room.write("agents/main/sessions/c.jsonl", "");
    let report = incomplete(&room, &forget);
    let held = ["b.jsonl", "a.jsonl.archived-1"].map(|path| holds(&report, path));
    assert_eq!((held, holds(&report, "c.jsonl")), ([true; 2], false), "{report}");
    assert!(!read(&room.path(talk)).contains("heron"), "the other files were rewritten");

    let room = self::room();
    session(&room, talk, "s1", &["a red heron", "b"]);
    let facts = room.path("agents/main/memory/context/knowledge.jsonl");
    let _ = std::fs::remove_file(&facts);
    std::fs::create_dir(&facts).expect("it is made");
    assert!(holds(&incomplete(&room, &forget), "knowledge.jsonl"));

    let room = self::room();
    let file = room.write("bad.jsonl", "no transcript");
    assert!(holds(&incomplete(&room, &["--session", text(&file)]), "bad.jsonl"));
    room.write("agents/main/sessions/sessions.json", "{");
    room.refused(&["memory", "forget", "--yes", "--session", "agent:main:new"], "is damaged");
}

#[cfg(unix)]
#[test]
fn an_unreadable_engine_value_makes_the_run_incomplete() {
    let room = self::room();
    session(&room, "agents/main/sessions/a.jsonl", "s1", &["a red heron", "b"]);
    let kept = value(&room, "head/s1", "{}");
    std::fs::remove_file(&kept).expect("it is there");
    std::os::unix::fs::symlink(&kept, &kept).expect("it is made");
    assert!(holds(&incomplete(&room, &["--session", "s1"]), "head_s1.value"));
}

#[test]
fn other_files_of_the_home_that_contain_the_text_are_reported() {
    for text in ["A Red\n   Heron", r"a red\nheron", r"\u0072ed heron", "RED HERON"] {
        let room = room();
        room.write("notes/mine.txt", text);
        let report = incomplete(&room, &["--matching", "red heron"]);
        assert!(holds(&report, "notes/mine.txt"), "{text}: {report}");
    }
}

#[test]
fn an_unreadable_folder_is_skipped_and_reported() {
    let room = room();
    let file = session(&room, "agents/main/sessions/a.jsonl", "s1", &["a red heron", "b"]);
    // Deeper than the limit of path lengths, which applies even to root.
    let name = "d".repeat(200);
    let chain = |root: &str| {
        let path = (0..12).fold(room.path(root), |path, _| path.join(&name));
        std::fs::create_dir_all(&path).expect("it is made");
        path
    };
    let lower = chain("lower");
    for (n, root) in ["upper", "over"].into_iter().enumerate() {
        let from = room.path(if n == 0 { "lower" } else { "upper" });
        std::fs::rename(from, chain(root).join("x")).expect("it is moved");
    }
    assert!(!lower.exists());
    let report = incomplete(&room, &["--matching", "red heron"]);
    assert!(holds(&report, "/over/"), "{report}");
    assert!(!read(&file).contains("heron"), "the session was rewritten");
}

#[test]
fn tool_result_files_are_erased_only_with_their_own_message() {
    let room = room();
    let results = |name: &str| room.path(&format!("agents/main/tool-results/{name}.txt"));
    let texts = [
        "the result is long; full text in tool-results/one.txt",
        "I have read tool-results/one.txt and like it",
        "the second one is in tool-results/two.txt",
        "I have read tool-results/two.txt as well",
    ];
    let file = session(&room, "agents/main/sessions/a.jsonl", "s1", &texts);
    for name in ["one", "two"] {
        room.write(&format!("agents/main/tool-results/{name}.txt"), "all of it");
    }
    let forget = |entry: &str| room.json(&["memory", "forget", "--yes", "--entry", entry]);
    assert_eq!(forget("00000001")["agents"][0]["toolResults"], 0);
    assert!(results("one").exists(), "a remaining message refers to it");
    assert_eq!(forget("00000002")["agents"][0]["toolResults"], 1);
    assert!(!results("two").exists(), "a message that only mentions it does not keep it");
    // A message found only in the archive is erased with its files, by a prefix of its id.
    std::fs::remove_file(&file).expect("it is there");
    room.refused(
        &["memory", "forget", "--yes", "--entry", "000000"],
        "several entries begin with that id",
    );
    assert_eq!(forget("00000000")["agents"][0]["toolResults"], 1);
    assert!(!results("one").exists());
    assert_eq!(forget("0000000")["messages"][0]["entry"], "00000003");
}
