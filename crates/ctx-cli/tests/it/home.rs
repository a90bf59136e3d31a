//! A home that ctx 0.1.0 wrote (`tests/data/home-0.1`), and files of versions that do not exist yet.

use std::path::{Path, PathBuf};

use ctx_session::{Home, LogOptions, Overlay, SessionLog};
use serde_json::{Value, json};

use crate::support::{Ran, Room, text};

const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/home-0.1");
/// The path of the home when it was written, which its lock files and overlays contain.
const WRITTEN_AT: &str = "/home/ida/.ctx";
const FIRST: &str = "agents/demo/sessions/16aee73f-3159-4e3e-ba6b-8c86a6d4797c.jsonl";
/// A session whose two messages are only in the journal.
const SECOND: &str = "agents/demo/sessions/36c31b17-d23d-49d5-a552-5211b068acf9.jsonl";
const JOURNAL: &str = "journals/debbb4fe-6e45-4b3b-b25b-b63d1c77380a.journal";
const CLAUDE: &str =
    ".claude/projects/-home-sam-fernbank/5d0c1f6e-7a51-4c1e-9a57-0f2f4f1b7a10.jsonl";
const OVERLAY: &str = "overlays/10302bfdfdd9ce262c806b6157105a63.jsonl";
const HEALTH: &str = "engines/health.json";

/// Returns a copy of the home. Paths in its files lead to the copy.
fn home() -> Room {
    let room = Room::new();
    copy(Path::new(HOME), &room.path(""));
    let here = text(&room.path("")).trim_end_matches(['/', '\\']).replace('\\', r"\\");
    edit(&room.path(&format!("{SECOND}.lock")), WRITTEN_AT, &here);
    let overlay = overlay_of(&room);
    std::fs::rename(room.path(OVERLAY), &overlay).expect("renamed");
    edit(&overlay, WRITTEN_AT, &here);
    used_now(&room.path("agents/demo/sessions/sessions.json"));
    room
}

/// Sets the times of all sessions to now, because a session of an earlier day has ended, and
/// maintenance archives old sessions.
fn used_now(sessions: &Path) {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a stored session");
    let mut all: Value =
        serde_json::from_slice(&std::fs::read(sessions).expect("a stored session"))
            .expect("a stored session");
    for session in all.as_object_mut().expect("a stored session").values_mut() {
        for key in ["updatedAt", "sessionStartedAt"] {
            session[key] = json!(now.as_millis() as u64);
        }
    }
    std::fs::write(sessions, all.to_string()).expect("a stored session");
}

fn overlay_of(room: &Room) -> PathBuf {
    let overlay = Overlay::of(&Home::at(room.path("")), &room.path(CLAUDE)).expect("a transcript");
    overlay.path
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for item in std::fs::read_dir(from).expect("a folder") {
        let path = item.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("a file")),
        }
    }
}

/// Replaces text in a file.
fn edit(path: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(path).expect("text");
    assert!(text.contains(old), "{old} in {}", path.display());
    std::fs::write(path, text.replacen(old, new, 1)).expect("written");
}

fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn sessions_of_0_1_are_listed() {
    let room = home();
    let config = room.json(&["config", "check"]);
    assert_eq!(config["warnings"], json!([]));
    let listed = room.json(&["sessions"]);
    let mut ids: Vec<_> =
        listed.as_array().unwrap().iter().map(|s| s["sessionId"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "16aee73f-3159-4e3e-ba6b-8c86a6d4797c",
            "36c31b17-d23d-49d5-a552-5211b068acf9",
            "5d0c1f6e-7a51-4c1e-9a57-0f2f4f1b7a10",
        ]
    );
    let first = listed.as_array().unwrap().iter().find(|s| s["sessionKey"] == "agent:demo:main");
    assert_eq!(first.unwrap()["totalTokens"], 23_407, "from sessions.json");
    let engines = room.json(&["engines"]);
    let demo = list(&engines, "engines").iter().find(|engine| engine["id"] == "demo").unwrap();
    assert_eq!((&demo["state"], &demo["carrier"]), (&json!("degraded"), &json!("process")));
}

#[test]
fn a_compaction_of_0_1_is_read_undone_and_repeated() {
    let room = home();
    let first = room.path(FIRST);
    let status = room.json(&["status", text(&first)]);
    assert_eq!((&status["session"]["entries"], &status["compactions"]), (&json!(37), &json!(1)));
    assert_eq!(status["context"]["roles"]["compactionSummary"], 1);
    let compactions = room.json(&["compactions", text(&first)]);
    let summary = compactions[0]["summary"].as_str().unwrap();
    assert!(summary.contains("Tromsø") && summary.contains("[e:53a3b2bf]"), "{summary}");
    let undone = room.json(&["compact", text(&first), "--undo"]);
    assert_eq!(undone["compactionId"], "4228e017");
    assert_eq!(room.json(&["status", text(&first)])["context"]["messages"], 36);
    let again = room.json(&["compact", text(&first), "--window", "16000", "--target", "1200"]);
    assert_eq!(again["compacted"], true);
    assert_eq!(room.json(&["status", text(&first)])["compactions"], 1);
}

#[test]
fn an_overlay_of_0_1_belongs_to_its_transcript() {
    let room = home();
    let claude = room.path(CLAUDE);
    let before = std::fs::read(&claude).unwrap();
    let compactions = room.json(&["compactions", text(&claude)]);
    let summary = compactions[0]["summary"].as_str().unwrap();
    assert!(summary.contains("Never water between 11:00 and 16:00."), "{summary}");
    assert_eq!(room.json(&["compact", text(&claude), "--undo"])["undone"], true);
    assert_eq!(room.json(&["status", text(&claude)])["compactions"], 0);
    assert_eq!(std::fs::read(&claude).unwrap(), before);
}

#[test]
fn a_memory_of_0_1_is_searched_and_recalled() {
    let room = home();
    let found = room.json(&["memory", "search", "scale port", "--agent", "demo"]);
    let best = &found["hits"][0];
    assert_eq!(best["segment"], "ed5be1ad-2682-8f32-a8fd-f85dca1a399c");
    assert!(best["text"].as_str().unwrap().contains("port 8471"));
    let facts = room.json(&["memory", "facts", "--agent", "demo"]);
    let texts: Vec<_> =
        list(&facts, "facts").iter().map(|fact| fact["content"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts.contains(&"The vet's number is 0047-555-0131."), "{texts:?}");
    let question = [
        "recall",
        "which port has the scale of hive 9?",
        "--session",
        "agent:demo:main",
        "--agent",
        "demo",
    ];
    let block = room.json(&question)["block"].as_str().unwrap().to_owned();
    assert!(block.contains("<knowledge>") && block.contains("hive 9 is on port 8471"), "{block}");
    let stats = room.json(&["memory", "stats", "--agent", "demo"]);
    assert_eq!((&stats["segments"], &stats["vectors"]), (&json!(36), &json!(36)));
    assert_eq!((&stats["storedPieces"], &stats["newPieces"]), (&json!(36), &json!(0)));
}

#[test]
fn a_journal_of_0_1_completes_its_session() {
    let room = home();
    let second = room.path(SECOND);
    assert_eq!(room.json(&["status", text(&second)])["session"]["entries"], 0);
    drop(SessionLog::open(&second, LogOptions::default()).expect("the journal is replayed"));
    assert_eq!(room.json(&["status", text(&second)])["session"]["entries"], 2);
    let request = room.json(&["assemble", text(&second)]).to_string();
    assert!(request.contains("The journal of the second session keeps this line."), "{request}");
}

#[cfg(unix)]
#[test]
fn an_engine_of_0_1_finds_the_value_it_stored() {
    let room = home();
    let engine = "plugins: { slots: { contextEngine: 'demo' }, engines: { demo: { config: { mode: \
                  'store' } } } }";
    edit(&room.path("ctx.json5"), "profile:", &format!("{engine}, profile:"));
    let recorded = room.json(&["assemble", text(&room.path(FIRST)), "--record"]);
    assert!(recorded.to_string().contains("I remember."), "{recorded}");
}

/// Asserts that a command refuses a file: the error names it, both versions, and what to do.
fn refused(ran: &Ran, file: &Path, found: &str, known: &str) {
    let said = &ran.stderr;
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{said}");
    named(said, file, found, known);
}

fn named(said: &str, file: &Path, found: &str, known: &str) {
    assert!(said.contains(text(file)), "{} in {said}", file.display());
    for part in [&format!("version: {found}"), &format!("supported: {known}"), "update ctx"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn a_session_of_a_newer_ctx_is_not_written_to() {
    for (old, new, found, known) in
        [(r#""version":3"#, r#""version":4"#, "4", "3"), (r#""ctx":1"#, r#""ctx":2"#, "2", "1")]
    {
        let room = home();
        let first = room.path(FIRST);
        edit(&first, old, new);
        let before = std::fs::read(&first).unwrap();
        for command in [
            &["compact", text(&first), "--undo"][..],
            &["compact", text(&first), "--window", "16000", "--target", "600"],
            &["chat", "--demo", "-s", "main", "-p", "hello"],
        ] {
            refused(&room.ctx(command), &first, found, known);
        }
        let forget = ["memory", "forget", "--session", text(&first), "--entry", "53a3b2bf", "-y"];
        let ran = room.ctx(&forget);
        assert_eq!(ran.code, Some(1), "the message is still in the session");
        let why = format!("(version: {found}, supported: {known}, path: {})", text(&first));
        assert!(ran.stdout.contains(&why), "{}", ran.stdout);
        assert_eq!(std::fs::read(&first).unwrap(), before);
        assert_eq!(std::fs::read_dir(room.path("overlays")).unwrap().count(), 1);
    }
}

#[test]
fn an_overlay_of_a_newer_ctx_is_neither_read_nor_written() {
    let room = home();
    let (claude, overlay) = (room.path(CLAUDE), overlay_of(&room));
    edit(&overlay, r#""version":1"#, r#""version":2"#);
    let before = std::fs::read(&overlay).unwrap();
    for command in [
        &["status", text(&claude)][..],
        &["compactions", text(&claude)],
        &["compact", text(&claude), "--undo"],
        &["compact", text(&claude), "--window", "16000", "--target", "600"],
    ] {
        refused(&room.ctx(command), &overlay, "2", "1");
    }
    assert_eq!(std::fs::read(&overlay).unwrap(), before);
}

#[test]
fn a_journal_of_a_newer_ctx_is_kept() {
    let room = home();
    let journal = room.path(JOURNAL);
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[7] = b'2';
    std::fs::write(&journal, &bytes).unwrap();
    for session in ["second", "other"] {
        let ran = room.ctx(&["chat", "--demo", "-s", session, "-p", "hello"]);
        refused(&ran, &journal, "2", "1");
    }
    assert!(SessionLog::open(&room.path(SECOND), LogOptions::default()).is_err());
    assert_eq!(std::fs::read(&journal).unwrap(), bytes);
}

#[test]
fn failures_of_engines_that_a_newer_ctx_recorded_are_not_overwritten() {
    let room = home();
    let health = room.path(HEALTH);
    edit(&health, r#""version": 1"#, r#""version": 2"#);
    let before = std::fs::read(&health).unwrap();
    let ran = room.ctx(&["engines"]);
    assert_eq!(ran.code, Some(0), "the file is not essential: {}", ran.stderr);
    named(&ran.stderr, &health, "2", "1");
    assert_eq!(std::fs::read(&health).unwrap(), before);
}

#[test]
fn an_engine_with_a_newer_manifest_is_not_started() {
    let room = home();
    let manifest = room.path("engines/demo/demo.toml");
    edit(&manifest, "manifest_version = 1", "manifest_version = 2");
    let ran = room.ctx(&["assemble", text(&room.path(FIRST)), "--engine", "demo"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for part in [text(&manifest), "unsupported manifest version 2", "known: 1", "newer ctx"] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
}

/// Derived files are not refused: they are rebuilt from the archive.
#[test]
fn an_index_of_a_newer_ctx_is_rebuilt() {
    let room = home();
    let context = |name: &str| room.path("agents/demo/memory/context").join(name);
    let mut vectors = std::fs::read(context("vectors.bin")).unwrap();
    vectors[4] = 2;
    std::fs::write(context("vectors.bin"), vectors).unwrap();
    edit(&context("lexical/meta.json"), "ctx-memory 1", "ctx-memory 2");
    let found = room.json(&["memory", "search", "scale port", "--agent", "demo"]);
    assert!(found["hits"][0]["text"].as_str().unwrap().contains("port 8471"), "{found}");
}

/// An unknown key is not ignored, because it may restrict something.
#[test]
fn a_configuration_of_a_newer_ctx_is_refused_with_the_key() {
    let room = home();
    edit(&room.path("ctx.json5"), "profile:", "novelty: true, profile:");
    let ran = room.ctx(&["config", "check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("novelty") && ran.stderr.contains("ctx.json5"), "{}", ran.stderr);
}
