use std::path::PathBuf;

use ctx_core::{Block, ContentHash, Projected, ProjectionKey, Role, ToolResult};
use proptest::prelude::*;

use super::*;
use crate::key::FileId;

pub(crate) fn new_session(path: &Path, options: LogOptions) -> SessionLog {
    let session = NewSession {
        id: FileId::new("s1").unwrap(),
        timestamp: Timestamp(1765233665306),
        cwd: "/src".into(),
        parent_session: None,
    };
    SessionLog::create(path, &session, options).unwrap()
}

pub(crate) fn sample(entry: &str, form: Projected) -> Projection {
    let hash = ContentHash::of(&Message::text(Role::User, entry));
    let key = ProjectionKey { entry: entry.into(), hash };
    Projection { key, layer: "pruning".into(), form, reason: "old".into(), points_to: Vec::new() }
}

fn message(text: &str) -> NewEntry {
    let content = serde_json::to_string(text).unwrap();
    NewEntry::message(RawJson::from_text(format!("{{\"role\":\"user\",\"content\":{content}}}")))
}

fn setup() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s1.jsonl");
    (dir, path)
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn open(path: &Path) -> Result<SessionLog> {
    SessionLog::open(path, LogOptions::default())
}

#[test]
fn entries_form_a_chain_and_leaf_entries_begin_branches() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    let now = Timestamp(1);
    let a = log.append(&message("a"), now).unwrap();
    let b = log.append(&message("b"), now).unwrap();
    log.append(&NewEntry::Leaf { target_id: Some(a.clone()) }, now).unwrap();
    assert_eq!(log.leaf(), Some(&a));
    log.close().unwrap();

    let mut log = open(&path).unwrap();
    assert_eq!((&*log.session_id, log.leaf()), ("s1", Some(&a)));
    let c = log.append(&message("c"), now).unwrap();
    log.branch(Some(b.clone())).unwrap();
    log.append(&message("d"), now).unwrap();
    assert_eq!(log.branch(Some("nowhere".into())).unwrap_err().kind(), ErrorKind::NotFound);
    log.branch(None).unwrap();
    log.append(&message("e"), now).unwrap();
    log.commit().unwrap();

    let lines = lines(&path);
    assert_eq!(lines[0]["version"], 3);
    let parents: Vec<_> = lines[1..].iter().map(|l| l["parentId"].as_str()).collect();
    let parent = |id: &EntryId| lines.iter().find(|l| l["id"] == **id).unwrap()["parentId"].clone();
    assert_eq!(parent(&c), *a);
    assert_eq!(parents, [None, Some(&*a), Some(&*b), Some(&*a), Some(&*b), None]);
    assert_eq!(lines[1]["id"].as_str().unwrap().len(), 8);
}

#[test]
fn a_transcript_reads_what_the_log_wrote() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    let now = Timestamp(1765233665307);
    let result = |id: &str| {
        Block::ToolResult(ToolResult {
            call_id: id.into(),
            name: Some("bash".into()),
            content: vec![Block::text(id)],
            is_error: false,
        })
    };
    let hello = Message::text(Role::User, "hello");
    let user = log.append_message(&hello, now).unwrap().remove(0);
    let results = Message::new(Role::ToolResult, vec![result("c1"), result("c2")]);
    let results = log.append_message(&results, now).unwrap();
    let label = NewEntry::Label { target_id: user.clone(), label: Some("start".into()) };
    let label = log.append(&label, now).unwrap();

    let transcript = Transcript::open(&path).unwrap();
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.header.id.as_deref(), Some("s1"));
    let ids: Vec<_> = transcript.entries.iter().map(|e| e.id.clone()).collect();
    assert_eq!(ids, [user.clone(), results[0].clone(), results[1].clone(), label]);
    assert_eq!(transcript.leaf(), log.leaf());
    assert_eq!(transcript.labels.get(&*user).map(String::as_str), Some("start"));
    let context = transcript.context(None).unwrap().entries;
    assert_eq!(context.len(), 3);
    assert_eq!(context[0].message().unwrap().plain_text(), "hello");

    log.append(&NewEntry::Leaf { target_id: Some(user.clone()) }, now).unwrap();
    assert_eq!(Transcript::open(&path).unwrap().leaf(), Some(&user));
    drop(log);
    assert_eq!(open(&path).unwrap().leaf(), Some(&user));
}

#[test]
fn an_undone_compaction_has_no_effect() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    let now = Timestamp(1);
    log.append(&message("a"), now).unwrap();
    let kept = log.append(&message("b"), now).unwrap();
    let compaction = NewEntry::Compaction {
        summary: "of a".into(),
        first_kept_entry_id: kept,
        tokens_before: 9,
        tokens_after: None,
        details: None,
        from_hook: None,
        ctx: None,
    };
    let compaction = log.append(&compaction, now).unwrap();
    let context = || {
        let entries = Transcript::open(&path).unwrap().context(None).unwrap().entries;
        entries.iter().map(|e| e.message().unwrap().plain_text()).collect::<Vec<_>>()
    };
    let compacted = context();
    assert!(compacted[0].contains("of a") && compacted[1] == "b", "{compacted:?}");
    log.append(&NewEntry::undo(&compaction), now).unwrap();
    assert_eq!(context(), ["a", "b"]);
}

#[test]
fn a_second_writer_is_refused_until_the_first_closes() {
    let (_dir, path) = setup();
    let log = new_session(&path, LogOptions::default());
    let error = open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("s1.jsonl"));
    drop(log);
    assert!(open(&path).is_ok());
}

#[test]
fn an_existing_file_is_not_created_again() {
    let (_dir, path) = setup();
    drop(new_session(&path, LogOptions::default()));
    let session = NewSession {
        id: FileId::new("s2").unwrap(),
        timestamp: Timestamp(0),
        cwd: String::new(),
        parent_session: None,
    };
    let error = SessionLog::create(&path, &session, LogOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    // A file left by a crash between creation and header is not a session yet.
    std::fs::write(&path, "").unwrap();
    assert!(SessionLog::create(&path, &session, LogOptions::default()).is_ok());
}

#[test]
fn files_of_other_programs_are_refused_and_no_file_is_created() {
    let cases = [
        ("", ErrorKind::UnknownFormat),
        ("nonsense\n", ErrorKind::UnknownFormat),
        ("[1]\n", ErrorKind::UnknownFormat),
        (r#"{"type":"session","id":"x","ctx":1}"#, ErrorKind::UnknownFormat),
        (r#"{"type":"session","version":2,"id":"x","ctx":1}"#, ErrorKind::UnknownFormat),
        (r#"{"type":"session","version":4,"id":"x","ctx":1}"#, ErrorKind::UnknownFormat),
        (r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#, ErrorKind::InvalidInput),
    ];
    for (text, kind) in cases {
        let (dir, path) = setup();
        std::fs::write(&path, text).unwrap();
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.hint_text().is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_torn_line_is_moved_at_the_first_append_and_not_earlier() {
    let (dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    let a = log.append(&message("a"), Timestamp(1)).unwrap();
    drop(log);
    let whole = std::fs::read(&path).unwrap();
    for (n, torn) in [&b"{\"type\":\"mess"[..], b"\0\0\0\0", b"\xff\xfe{"].iter().enumerate() {
        let before = std::fs::read(&path).unwrap();
        let with_torn = [&before[..], torn].concat();
        std::fs::write(&path, &with_torn).unwrap();
        let mut log = open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), with_torn);
        log.append(&message("b"), Timestamp(1)).unwrap();
        drop(log);
        let aside = dir.path().join(format!("s1.jsonl.torn-{}", n + 1));
        assert_eq!(std::fs::read(aside).unwrap(), *torn);
    }
    let lines = lines(&path);
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[2]["parentId"], *a);
    assert!(std::fs::read(&path).unwrap().starts_with(&whole));
}

#[test]
fn complete_entries_before_a_torn_one_on_the_same_line_stay() {
    let (dir, path) = setup();
    drop(new_session(&path, LogOptions::default()));
    let whole = std::fs::read_to_string(&path).unwrap()
        + r#"{"type":"session_info","id":"x","parentId":null,"timestamp":"2025-12-08T22:41:05.306Z"}"#;
    std::fs::write(&path, format!("{whole}{{\"type\":")).unwrap();
    let mut log = open(&path).unwrap();
    log.append(&message("b"), Timestamp(1)).unwrap();
    drop(log);
    let healed = std::fs::read_to_string(&path).unwrap();
    assert!(healed.starts_with(&(whole + "\n")), "{healed}");
    assert_eq!(lines(&path)[2]["parentId"], "x");
    assert_eq!(std::fs::read(dir.path().join("s1.jsonl.torn-1")).unwrap(), b"{\"type\":");
}

#[test]
fn a_missing_line_break_is_added() {
    let (dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    let a = log.append(&message("a"), Timestamp(1)).unwrap();
    drop(log);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end()).unwrap();
    let mut log = open(&path).unwrap();
    log.append(&message("b"), Timestamp(1)).unwrap();
    assert_eq!(lines(&path)[2]["parentId"], *a);
    assert!(!dir.path().join("s1.jsonl.torn-1").exists());
}

#[test]
fn damaged_lines_in_the_middle_do_not_matter() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    log.append(&message("a"), Timestamp(1)).unwrap();
    drop(log);
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"\0\0\0\nnonsense\n\n{\"id\":5}\n");
    let deep =
        format!("{{\"id\":\"deep\",\"x\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    text.extend_from_slice(deep.as_bytes());
    std::fs::write(&path, &text).unwrap();
    let mut log = open(&path).unwrap();
    assert_eq!(log.leaf().map(|l| &**l), Some("deep"));
    log.append(&message("b"), Timestamp(1)).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(&text));
}

#[test]
fn a_file_changed_by_another_program_is_not_written_to() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    log.append(&message("a"), Timestamp(1)).unwrap();
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"type\":\"message\",\"id\":\"x\"}\n");
    std::fs::write(&path, &text).unwrap();
    let error = log.append(&message("b"), Timestamp(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(std::fs::read(&path).unwrap(), text);
}

#[test]
fn a_refused_entry_changes_nothing() {
    let (_dir, path) = setup();
    let options = LogOptions { durability: Durability::PerEntry, ..LogOptions::default() };
    let mut log = new_session(&path, options);
    let a = log.append(&message("a"), Timestamp(1)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let bad = [
        NewEntry::message(RawJson::from_text("{")),
        NewEntry::Leaf { target_id: Some("nowhere".into()) },
    ];
    for entry in bad {
        log.append(&entry, Timestamp(1)).unwrap_err();
    }
    log.append(&message("b"), Timestamp(i64::MAX)).unwrap_err();
    assert_eq!((log.leaf(), std::fs::read(&path).unwrap()), (Some(&a), before));
}

#[test]
fn a_large_entry_is_written_as_one_line() {
    let (_dir, path) = setup();
    let mut log = new_session(&path, LogOptions::default());
    log.append(&message(&"x\n".repeat(4 << 20)), Timestamp(1)).unwrap();
    log.append(&message("after"), Timestamp(1)).unwrap();
    log.close().unwrap();
    assert_eq!(lines(&path).len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever a file is cut off, the next writer continues, no complete line is lost, and the
    /// torn line is kept in a separate file.
    #[test]
    fn a_cut_anywhere_after_the_header_is_repaired(
        texts in prop::collection::vec(".{0,30}", 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (dir, path) = setup();
        let mut log = new_session(&path, LogOptions::default());
        let header = log.file.bytes();
        for text in &texts {
            log.append(&message(text), Timestamp(1)).unwrap();
        }
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        let keep = header as usize + cut.index(whole.len() - header as usize);
        std::fs::write(&path, &whole[..keep]).unwrap();

        let mut log = open(&path).unwrap();
        log.append(&message("next"), Timestamp(2)).unwrap();
        log.close().unwrap();
        let aside = std::fs::read(dir.path().join("s1.jsonl.torn-1")).unwrap_or_default();
        let healed = std::fs::read(&path).unwrap();
        let kept = keep - aside.len();
        prop_assert!(healed.starts_with(&whole[..kept]));
        prop_assert_eq!(&aside[..], &whole[kept..keep]);
        for line in healed.split(|b| *b == b'\n') {
            let json = serde_json::from_slice::<serde_json::Value>(line);
            prop_assert!(line.is_empty() || json.is_ok());
        }
    }
}

#[test]
fn a_locked_session_cannot_be_opened_and_an_open_one_cannot_be_locked() {
    let (dir, path) = setup();
    assert!(SessionLock::of(&path).unwrap().is_none());
    assert!(!dir.path().join("s1.jsonl.lock").exists());
    drop(new_session(&path, LogOptions::default()));
    let hold = SessionLock::of(&path).unwrap();
    assert!(hold.is_some());
    let error = SessionLog::open(&path, LogOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(hold);
    let log = SessionLog::open(&path, LogOptions::default()).unwrap();
    assert_eq!(SessionLock::of(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(log);
}

#[test]
fn no_file_is_created_beside_a_file_of_another_program() {
    let (dir, path) = setup();
    std::fs::write(&path, "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n").unwrap();
    assert!(SessionLock::of(&path).unwrap().is_none());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn projections_are_stored_in_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut log = new_session(&path, LogOptions::default());
    let load = || Transcript::open(&path).unwrap().projections(None).unwrap();
    assert_eq!(load(), []);
    log.append_projections(&[], Timestamp(5)).unwrap();
    assert_eq!(log.leaf(), None);

    let short = Arc::new(Message::text(Role::User, "short"));
    let saved = [sample("a", Projected::Dropped), sample("b", Projected::Replaced(short))];
    log.append_projections(&saved[..1], Timestamp(5)).unwrap();
    log.append_projections(&saved[1..], Timestamp(5)).unwrap();
    assert_eq!(load(), saved);

    let text = std::fs::read_to_string(&path).unwrap();
    let broken = text.replacen("\"hash\"", "\"hush\"", 1) + "{\"customType\":\"ctx.projections";
    std::fs::write(&path, broken).unwrap();
    assert_eq!(load(), saved[1..]);
}
