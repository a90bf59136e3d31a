//! Compactions stored, seen and undone, in sessions of ours and beside files of others.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{
    Compacted, ContentHash, EntryId, ErrorKind, Message, Projected, Projection, ProjectionKey,
    RawJson, Role, Timestamp, Tokens,
};
use ctx_session::compactions::{CompactedBy, rewrite_compacted, store_compaction, undo_compaction};
use ctx_session::key::FileId;
use ctx_session::log::{LogOptions, NewEntry, NewSession, SessionLog};
use ctx_session::overlay::Overlay;
use ctx_session::paths::Home;
use ctx_session::{
    ConvertOptions, Format, ProblemKind, Transcript, keep_sent_forms, open, sent_forms,
};

const NOW: Timestamp = Timestamp(1_765_233_665_306);

/// A folder with a home and a transcript in it.
struct House {
    _dir: tempfile::TempDir,
    home: Home,
    path: PathBuf,
}

impl House {
    fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        std::fs::write(&path, bytes).unwrap();
        Self { home: Home::at(dir.path().join("home")), path, _dir: dir }
    }

    /// A session of ours with messages `m1` to `m<count>`, of the user and the assistant in turns.
    fn ours(count: usize) -> Self {
        let house = Self::new(b"");
        std::fs::remove_file(&house.path).unwrap();
        let session = NewSession {
            id: FileId::new("s").unwrap(),
            timestamp: NOW,
            cwd: "/".into(),
            parent_session: None,
        };
        let mut log = SessionLog::create(&house.path, &session, LogOptions::default()).unwrap();
        for n in 1..=count {
            log.append(&said(n), NOW).unwrap();
        }
        log.close().unwrap();
        house
    }

    fn open(&self) -> Transcript {
        open(&self.home, &self.path).unwrap()
    }

    fn store(&self, at: Option<&EntryId>, compacted: &Compacted) -> ctx_core::Result<EntryId> {
        store_compaction(&self.home, &self.path, at, compacted, NOW)
    }

    fn undo(&self, which: Option<&EntryId>) -> Option<EntryId> {
        let undone = undo_compaction(&self.home, &self.path, which, NOW).unwrap();
        undone.map(|undone| undone.id)
    }

    fn overlay(&self) -> PathBuf {
        Overlay::of(&self.home, &self.path).unwrap().path().to_owned()
    }

    fn grow(&self, text: &str) {
        let mut file = std::fs::File::options().append(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

fn said(n: usize) -> NewEntry {
    let role = if n % 2 == 1 { "user" } else { "assistant" };
    NewEntry::message(RawJson::from_text(format!(r#"{{"role":"{role}","content":"m{n}"}}"#)))
}

fn compacted(summary: &str, first_kept: &EntryId) -> Compacted {
    Compacted {
        summary: summary.into(),
        first_kept_entry_id: first_kept.clone(),
        tokens_before: Tokens(1_000),
        tokens_after: Some(Tokens(100)),
        details: Some(serde_json::json!({"rung": "extractive"})),
        projections: Vec::new(),
    }
}

/// All of what a context says, to be compared byte for byte.
fn snapshot(transcript: &Transcript, leaf: Option<&EntryId>) -> Vec<String> {
    let context = transcript.context(leaf).unwrap();
    let around = format!("{} {:?} {:?}", context.thinking_level, context.model, context.compaction);
    let messages = context.entries.iter().map(|entry| {
        let message = entry.message().unwrap();
        format!("{} {}", entry.id(), serde_json::to_string(&*message).unwrap())
    });
    std::iter::once(around).chain(messages).collect()
}

fn texts(transcript: &Transcript, leaf: Option<&EntryId>) -> Vec<String> {
    let entries = transcript.context(leaf).unwrap().entries;
    entries.iter().map(|entry| entry.message().unwrap().plain_text()).collect()
}

/// The message `back` from the end of the context.
fn kept(transcript: &Transcript, back: usize) -> EntryId {
    let entries = transcript.context(None).unwrap().entries;
    entries[entries.len() - back].id().clone()
}

/// Stores, looks at, undoes and redoes a compaction; everything else must stay.
fn there_and_back(house: &House, name: &str) {
    let bytes = std::fs::read(&house.path).unwrap();
    let plain = house.open();
    let before = snapshot(&plain, None);
    let (line, tips) = (plain.main_line().unwrap().len(), plain.tips().len());
    let stats = plain.stats().unwrap();
    let (listed, counted) = (plain.compaction_list(None).unwrap(), plain.compactions().unwrap());
    let leaf = plain.leaf().cloned();
    let first_kept = kept(&plain, 2);
    let id = house.store(leaf.as_ref(), &compacted("what was", &first_kept)).unwrap();

    let transcript = house.open();
    assert_eq!(transcript.problems(), plain.problems(), "{name}");
    let after = snapshot(&transcript, None);
    assert_eq!(after.len(), 4, "{name}: a summary and what is kept");
    assert_eq!(after[2..], before[before.len() - 2..], "{name}");
    assert_eq!(snapshot(&transcript, leaf.as_ref()), before, "{name}: before it, as it was");
    assert_eq!(transcript.context(None).unwrap().compaction.as_ref(), Some(&id));
    assert_eq!(transcript.compactions().unwrap(), counted + 1, "{name}");
    assert_eq!(transcript.main_line().unwrap().len(), line, "{name}");
    assert_eq!(transcript.tips().len(), tips, "{name}");
    assert_eq!(transcript.leaf(), Some(&id));
    for (index, entry) in transcript.entries().iter().enumerate() {
        assert!(entry.parent().is_none_or(|parent| parent < index), "{name}");
        transcript.raw_line(index).unwrap();
    }

    let list = transcript.compaction_list(None).unwrap();
    assert_eq!(list[..list.len() - 1], listed[..], "{name}");
    let newest = list.last().unwrap();
    assert_eq!((&newest.id, newest.by, newest.undone), (&id, CompactedBy::Ctx, false));
    assert_eq!((newest.summary.as_str(), newest.tokens_before), ("what was", Some(Tokens(1_000))));
    assert_eq!(newest.first_kept_entry_id.as_ref(), Some(&first_kept));
    assert!(newest.details.as_ref().unwrap().as_str().contains("extractive"));
    let covered = transcript.covered_by(&id, None).unwrap();
    assert_eq!(covered.len(), newest.covered.messages, "{name}");
    assert_eq!(covered.first().map(|e| e.id()), newest.covered.first.as_ref(), "{name}");

    let replay = transcript.line_with_compactions(None).unwrap();
    assert_eq!(replay.items.len(), line, "{name}");
    assert_eq!(replay.trailing.len(), 1, "{name}");
    assert_eq!(replay.trailing[0], (id.clone(), compacted("what was", &first_kept)), "{name}");

    let undo = house.undo(None).unwrap();
    let undone = house.open();
    assert_eq!(snapshot(&undone, None), before, "{name}");
    let newest = undone.compaction_list(None).unwrap().pop().unwrap();
    assert_eq!((newest.undone, newest.undone_by.as_ref()), (true, Some(&undo)), "{name}");
    assert_eq!(undone.line_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(Some(&id)), None, "{name}: once is enough");

    house.undo(Some(&undo)).unwrap();
    assert_eq!(snapshot(&house.open(), None), after, "{name}: an undo can be undone");
    house.undo(None).unwrap();
    assert_eq!(snapshot(&house.open(), None), before, "{name}");
    assert_eq!(house.undo(None), None, "{name}");

    let after = house.open();
    if !after.is_ours() {
        assert_eq!(std::fs::read(&house.path).unwrap(), bytes, "{name}: the file is untouched");
        assert_eq!(after.stats().unwrap(), stats, "{name}");
        let mut copies = [Vec::new(), Vec::new()];
        plain.repaired_copy(&mut copies[0]).unwrap();
        after.repaired_copy(&mut copies[1]).unwrap();
        assert!(copies[0] == copies[1], "{name}");
        assert_eq!(after.inspect().unwrap(), plain.inspect().unwrap(), "{name}");
    }
}

/// A line of Claude Code's.
fn claude(uuid: &str, kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":null,"sessionId":"s","message":{message}}}"#
    ) + "\n"
}

/// One answer over several lines, with its results in between.
fn claude_lines() -> Vec<String> {
    let answer = |uuid: &str, id: &str, block: &str| {
        let message =
            format!(r#"{{"id":"{id}","model":"o","role":"assistant","content":[{block}]}}"#);
        claude(uuid, "assistant", &message)
    };
    let call = |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"ls","input":{{}}}}"#);
    let result = |uuid: &str, id: &str| {
        let block =
            format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{id} done"}}"#);
        claude(uuid, "user", &format!(r#"{{"role":"user","content":[{block}]}}"#))
    };
    vec![
        claude("u1", "user", r#"{"role":"user","content":"go"}"#),
        answer("a1", "m1", r#"{"type":"text","text":"first"}"#),
        claude("u2", "user", r#"{"role":"user","content":"more"}"#),
        answer("a2", "m2", r#"{"type":"text","text":"let me see"}"#),
        answer("a3", "m2", &call("t1")),
        answer("a4", "m2", &call("t2")),
        result("r1", "t1"),
        result("r2", "t2"),
    ]
}

fn pi_line(id: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

const PI_HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/\"}\n";

/// One, two and three; then two branches.
fn pi_tree() -> String {
    let lines = [
        ("a", "null", "one"),
        ("b", "\"a\"", "two"),
        ("c", "\"b\"", "three"),
        ("l", "\"c\"", "left"),
        ("r", "\"c\"", "right"),
        ("o", "\"a\"", "other"),
        ("r2", "\"r\"", "right again"),
    ];
    let lines = lines.map(|(id, parent, text)| pi_line(id, parent, text));
    format!("{PI_HEADER}{}", lines.concat())
}

const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s"}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"old"}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"s","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"r0"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"r1"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"r2"}]}]}}
{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]}}
"#;

#[test]
fn a_compaction_goes_in_and_comes_out_of_every_format() {
    let chat = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}]"#;
    let pony = "{messages: [{role: 'user', content: 'a'}, {role: 'assistant', content: 'b'}, {role: 'user', content: 'c'}], compactedHistory: [{role: 'system', content: 's'}]}";
    let v1 = "{\"type\":\"session\",\"id\":\"s\"}\n".to_owned()
        + r#"{"type":"message","message":{"role":"user","content":"x"}}"#
        + "\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"y\"}}\n"
        + "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"z\"}}\n";
    let cases = [
        (Format::OpenAiChat, chat.to_owned()),
        (Format::OpenAiChat, chat.trim_matches(['[', ']']).replace("},", "}\n")),
        (Format::PonyBunny, pony.to_owned()),
        (Format::Pi, pi_tree()),
        (Format::Pi, v1),
        (
            Format::ClaudeCode,
            claude_lines().concat() + &claude("u9", "user", r#"{"role":"user","content":"end"}"#),
        ),
    ];
    for (format, text) in cases {
        let house = House::new(text.as_bytes());
        assert_eq!(house.open().format(), format, "{text}");
        there_and_back(&house, format.name());
    }
    there_and_back(&House::ours(7), "ours");
}

#[test]
fn a_compaction_goes_in_and_comes_out_of_recorded_sessions() {
    let data = std::env::var_os("CTX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let mut seen = 0;
    for folder in ["claude-code", "pi"] {
        let Ok(files) = std::fs::read_dir(data.join(folder)) else { continue };
        for file in files.map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "jsonl") {
                let house = House::new(&std::fs::read(&file).unwrap());
                there_and_back(&house, &file.display().to_string());
                seen += 1;
            }
        }
    }
    if seen == 0 {
        println!("skipped: {} is not there (set CTX_DATA)", data.display());
    }
}

#[test]
fn a_compaction_stays_where_it_was_planned_while_the_file_grows() {
    let lines = claude_lines();
    // Planned when the file ended in the middle of an answer.
    let house = House::new(lines[..5].concat().as_bytes());
    let at = house.open().leaf().cloned().unwrap();
    assert_eq!(&*at, "a3");
    house.grow(&lines[5..7].concat());
    let id = house.store(Some(&at), &compacted("sum", &"a2".into())).unwrap();
    let expected = ["sum", "let me see", ""];
    assert_eq!(texts(&house.open(), None), expected);
    house.grow(&lines[7]);
    house.grow(&claude("u9", "user", r#"{"role":"user","content":"end"}"#));
    let grown = house.open();
    assert_eq!(texts(&grown, None), ["sum", "let me see", "", "", "end"]);
    assert_eq!(grown.leaf().unwrap().as_ref(), "u9");
    assert_eq!(grown.tips().len(), 1);
    // The answer is whole, wherever it is looked at from.
    for leaf in [None, Some(&id), Some(&at)] {
        let context = grown.context(leaf).unwrap();
        let answer = context.entries.iter().find(|entry| &**entry.id() == "a2").unwrap();
        assert_eq!(answer.message().unwrap().tool_calls().count(), 2);
    }
    let replay = grown.line_with_compactions(None).unwrap();
    let before: Vec<_> = replay
        .items
        .iter()
        .filter(|item| !item.compactions.is_empty())
        .map(|item| (item.item.entry.id().to_string(), item.compactions[0].0.clone()))
        .collect();
    assert_eq!(before, [("r1".to_owned(), id)]);
}

#[test]
fn a_compaction_is_in_force_on_every_branch_through_its_place() {
    let house = House::new(pi_tree().as_bytes());
    let plain = Transcript::open(&house.path).unwrap();
    let children = |transcript: &Transcript, id: &str| -> Vec<String> {
        let children = transcript.children(transcript.index_of(id).unwrap());
        children.iter().map(|&c| transcript.entries()[c].id().to_string()).collect()
    };
    let tips = |transcript: &Transcript| -> Vec<String> {
        transcript.tips().iter().map(|&t| transcript.entries()[t].id().to_string()).collect()
    };
    let id = house.store(Some(&"c".into()), &compacted("sum", &"b".into())).unwrap();
    let transcript = house.open();
    assert_eq!(tips(&transcript), tips(&plain));
    assert_eq!(children(&transcript, "c"), [id.to_string()]);
    assert_eq!(children(&transcript, &id), children(&plain, "c"));
    let at = |id: &str| texts(&transcript, Some(&id.into()));
    assert_eq!(at("l"), ["sum", "two", "three", "left"]);
    assert_eq!(at("r2"), ["sum", "two", "three", "right", "right again"]);
    assert_eq!(at("o"), ["one", "other"]);
    assert_eq!(at("c"), ["one", "two", "three"]);

    // It was undone on one branch only: the leaf's.
    house.undo(None).unwrap();
    let transcript = house.open();
    assert_eq!(texts(&transcript, None), ["one", "two", "three", "right", "right again"]);
    assert_eq!(texts(&transcript, Some(&"l".into())), ["sum", "two", "three", "left"]);
    assert!(!transcript.compaction_list(Some(&"l".into())).unwrap()[0].undone);
    assert_eq!(transcript.compaction_list(Some(&"o".into())).unwrap(), []);
    // The copy is that of the file alone.
    let mut copy = Vec::new();
    transcript.convert(Format::Pi, &mut copy).unwrap();
    assert_eq!(copy, std::fs::read(&house.path).unwrap());
    let mut left_out = transcript.convert(Format::OpenAiChat, &mut copy).unwrap().left_out;
    left_out.retain(|sentence| sentence.contains("beside the file"));
    assert_eq!(left_out, ["1 compaction that ctx keeps beside the file"]);
}

#[test]
fn what_stands_in_a_single_line_is_kept_in_part() {
    let house = House::new(CODEX.as_bytes());
    let before = texts(&house.open(), None);
    assert_eq!(before, ["r0", "r1", "r2", "new"]);
    let first_kept = kept(&house.open(), 3);
    house.store(None, &compacted("sum", &first_kept)).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "r1", "r2", "new"]);
    house.undo(None).unwrap();
    assert_eq!(texts(&house.open(), None), before);
}

#[test]
fn the_agents_own_compactions_are_listed_and_undone_by_name_only() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"k1","sessionId":"s","compactMetadata":{"preTokens":155301}}"#;
    let summary = r#"{"type":"user","uuid":"k2","isCompactSummary":true,"sessionId":"s","message":{"role":"user","content":"their summary"}}"#;
    let end = claude("u9", "user", r#"{"role":"user","content":"end"}"#);
    let text = format!("{}{boundary}\n{summary}\n{end}", claude_lines().concat());
    let house = House::new(text.as_bytes());
    let list = house.open().compaction_list(None).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!((list[0].by, list[0].tokens_before), (CompactedBy::Agent, Some(Tokens(155_301))));
    assert_eq!((list[0].summary.as_str(), &list[0].first_kept_entry_id), ("their summary", &None));
    assert_eq!((list[0].covered.messages, list[0].covered.last.as_deref()), (6, Some("r2")));
    assert_eq!(house.open().line_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(None), None);
    assert!(!house.home.root().exists(), "nothing to undo, nothing written");

    house.undo(Some(&"k2".into())).unwrap();
    let undone = house.open();
    assert_eq!(texts(&undone, None), ["go", "first", "more", "let me see", "", "", "end"]);
    for (name, kind) in [("u9", ErrorKind::InvalidInput), ("nowhere", ErrorKind::NotFound)] {
        let error = undo_compaction(&house.home, &house.path, Some(&name.into()), NOW).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.hint_text().is_some());
    }
}

#[test]
fn compactions_on_compactions_are_undone_one_by_one() {
    for house in [House::ours(8), House::new(pi_tree().as_bytes())] {
        let states: Vec<_> = (0..3)
            .map(|n| {
                let transcript = house.open();
                let state = snapshot(&transcript, None);
                let first_kept = kept(&transcript, 3 - n);
                let id = house.store(None, &compacted(&format!("sum {n}"), &first_kept)).unwrap();
                (state, id)
            })
            .collect();
        let list = house.open().compaction_list(None).unwrap();
        let messages: Vec<_> = list.iter().map(|c| c.covered.messages).collect();
        assert_eq!(messages[1..], [1, 1], "what is covered is counted once");
        for (state, id) in states.into_iter().rev() {
            let undone = undo_compaction(&house.home, &house.path, None, NOW).unwrap().unwrap();
            assert_eq!((&undone.target, undone.redone), (&id, false));
            assert_eq!(snapshot(&house.open(), None), state);
        }
        assert_eq!(house.open().compactions().unwrap(), 0);
    }
}

#[test]
fn a_session_of_ours_goes_on_after_its_compactions() {
    let house = House::ours(6);
    let first_kept = kept(&house.open(), 2);
    let planned = house.open().leaf().cloned();
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.append(&said(7), NOW).unwrap();
    let error = house.store(None, &compacted("sum", &first_kept)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.hint_text().is_some_and(|hint| hint.contains("wait")), "{error}");
    log.close().unwrap();
    // What came after the plan is kept.
    let id = house.store(planned.as_ref(), &compacted("sum", &first_kept)).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "m5", "m6", "m7"]);
    assert!(!house.home.root().exists(), "all of it is in the session");
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    assert_eq!(log.leaf(), Some(&id));
    log.append(&said(8), NOW).unwrap();
    log.close().unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "m5", "m6", "m7", "m8"]);
    // A plan from before the compaction is out of date; a broken one is none.
    let error = house.store(planned.as_ref(), &compacted("late", &first_kept)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = house.store(None, &compacted("lost", &"nowhere".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    house.undo(None).unwrap();
    let all: Vec<_> = (1..=8).map(|n| format!("m{n}")).collect();
    assert_eq!(texts(&house.open(), None), all);
    assert_eq!(house.open().problems(), []);
}

#[test]
fn two_writers_beside_a_file_are_one_after_the_other() {
    let house = House::new(pi_tree().as_bytes());
    let other = Overlay::of(&house.home, &house.path).unwrap();
    let id = other.append(&NewEntry::undo(&"x".into()), Some(&"r2".into()), NOW).unwrap();
    let error = house.store(None, &compacted("sum", &"c".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    other.release().unwrap();
    // A plan made without the overlay names the file's own leaf.
    house.store(Some(&"r2".into()), &compacted("sum", &"c".into())).unwrap();
    let error = house.store(Some(&"r2".into()), &compacted("sum", &"c".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let problems = house.open().problems().to_vec();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::DamagedOverlay);
    assert!(house.open().index_of(&id).is_some());
}

fn form_of(transcript: &Transcript, id: &EntryId, text: &str) -> Projection {
    let message = transcript.main_line().unwrap();
    let message = message.iter().find(|item| item.entry.id() == id).unwrap().entry.message();
    let message = message.unwrap();
    Projection {
        key: ProjectionKey { entry: id.clone(), hash: ContentHash::of(&message) },
        layer: "t".into(),
        form: Projected::Replaced(std::sync::Arc::new(Message::text(Role::User, text))),
        reason: "short".into(),
    }
}

#[test]
fn forms_come_and_go_with_their_compaction() {
    for house in [House::ours(6), House::new(pi_tree().as_bytes())] {
        let transcript = house.open();
        let (first, second) = (kept(&transcript, 2), kept(&transcript, 1));
        let sent = form_of(&transcript, &first, "sent");
        let (own, double) =
            (form_of(&transcript, &first, "own"), form_of(&transcript, &second, "double"));
        keep_sent_forms(&house.home, &house.path, std::slice::from_ref(&sent)).unwrap();
        let mut with_forms = compacted("sum", &first);
        with_forms.projections = vec![own.clone(), double.clone()];
        let id = house.store(None, &with_forms).unwrap();
        // What the compaction did to a view is also reported as a form that was sent.
        let again = Projection { reason: "another".into(), ..double.clone() };
        keep_sent_forms(&house.home, &house.path, std::slice::from_ref(&again)).unwrap();
        let forms = || sent_forms(&house.home, &house.path).unwrap();
        let in_force = [sent.clone(), own.clone(), double.clone(), again.clone()];
        assert_eq!(forms(), in_force);
        assert_eq!(house.open().sent_forms(None).unwrap(), in_force);
        assert_eq!(house.open().line_with_compactions(None).unwrap().trailing[0].1, with_forms);
        let undo = house.undo(Some(&id)).unwrap();
        assert_eq!(forms(), std::slice::from_ref(&sent));
        house.undo(Some(&undo)).unwrap();
        assert_eq!(forms(), in_force);
    }
}

#[test]
fn a_first_kept_entry_that_is_not_before_its_compaction_keeps_nothing() {
    let compaction = |first_kept: &str| {
        let line = format!(
            r#"{{"type":"compaction","id":"k","parentId":"c","timestamp":"2026-01-01T00:00:02.000Z","summary":"sum","firstKeptEntryId":"{first_kept}","tokensBefore":1}}"#
        );
        line + "\n" + &pi_line("after", "\"k\"", "after")
    };
    // Which is what a compaction says by naming itself.
    for (first_kept, problems) in [("nowhere", 1), ("after", 1), ("k", 0), ("l", 0), ("b", 0)] {
        let text = pi_tree() + &compaction(first_kept);
        let transcript = Transcript::from_bytes(text.into_bytes()).unwrap();
        let kept: &[&str] = if first_kept == "b" { &["two", "three"] } else { &[] };
        let expected = [&["sum"], kept, &["after"]].concat();
        assert_eq!(texts(&transcript, None), expected, "{first_kept}");
        let kinds: Vec<_> = transcript.problems().iter().map(|p| p.kind).collect();
        assert_eq!(kinds, vec![ProblemKind::BrokenCompaction; problems], "{first_kept}");
        // That an entry is on another branch takes a full look.
        let full = transcript.inspect().unwrap();
        let full = full.iter().filter(|p| p.kind == ProblemKind::BrokenCompaction);
        assert_eq!(full.count(), problems + usize::from(first_kept == "l"), "{first_kept}");
    }
}

/// An overlay's compaction as another program may have written it.
fn foreign_line(id: &str, parent: &str, first_kept: &str) -> String {
    format!(
        r#"{{"type":"compaction","id":"{id}","parentId":{parent},"summary":"sum","firstKeptEntryId":{first_kept},"tokensBefore":1}}"#
    )
}

#[test]
fn a_damaged_overlay_hides_nothing_and_says_so() {
    let house = House::new(pi_tree().as_bytes());
    let plain = snapshot(&house.open(), None);
    house.store(None, &compacted("sum", &"c".into())).unwrap();
    let sound = std::fs::read_to_string(house.overlay()).unwrap();
    let nothing_kept = ["sum".to_owned()];
    let header = sound.lines().next().unwrap();
    let cases: Vec<(String, Option<&[String]>)> = vec![
        ("nonsense".into(), None),
        ("{\"type\":\"compaction\"".into(), None),
        ("\0\0\0".into(), None),
        ("{}".into(), None),
        (foreign_line("x", "null", "\"c\""), None),
        (foreign_line("x", "\"gone\"", "\"c\""), None),
        (foreign_line("x", "\"x\"", "\"c\""), None),
        (foreign_line("c", "\"r2\"", "\"b\""), None),
        (foreign_line("x", "\"r2\"", "\"x\""), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "\"gone\""), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "7"), Some(&nothing_kept)),
        (foreign_line("x", "\"r2\"", "\"l\""), Some(&nothing_kept)),
        (r#"{"type":"custom","customType":"ctx.undo","id":"x","parentId":"r2","data":{"targetId":"gone"}}"#.into(), None),
        (r#"{"type":"custom","customType":"ctx.undo","id":"x","parentId":"r2"}"#.into(), None),
        (r#"{"type":"message","id":"x","parentId":"r2","message":{"role":"user","content":"no"}}"#.into(), None),
        (r#"{"type":"leaf","id":"x","parentId":"r2","targetId":"a"}"#.into(), None),
    ];
    for (line, expected) in cases {
        std::fs::write(house.overlay(), format!("{header}\n{line}\n")).unwrap();
        let transcript = house.open();
        assert_eq!(transcript.problems().len(), 1, "{line}: {:?}", transcript.problems());
        match expected {
            Some(expected) => assert_eq!(texts(&transcript, None), expected, "{line}"),
            None => assert_eq!(snapshot(&transcript, None), plain, "{line}"),
        }
        transcript.compaction_list(None).unwrap();
        transcript.line_with_compactions(None).unwrap();
    }
    // Cut anywhere, the transcript is there, with its compaction or without.
    for cut in 0..sound.len() - 1 {
        std::fs::write(house.overlay(), &sound[..cut]).unwrap();
        assert_eq!(snapshot(&house.open(), None), plain, "{cut}");
    }
    std::fs::write(house.overlay(), &sound).unwrap();
    assert_eq!(texts(&house.open(), None)[0], "sum");
    // Two lines of one id: the first.
    let line = sound.lines().nth(1).unwrap();
    std::fs::write(house.overlay(), format!("{sound}{line}\n")).unwrap();
    assert_eq!(house.open().compactions().unwrap(), 1);
    // An overlay that cannot be read at all.
    std::fs::remove_file(house.overlay()).unwrap();
    std::fs::create_dir(house.overlay()).unwrap();
    assert_eq!(snapshot(&house.open(), None), plain);
    assert_eq!(house.open().problems().len(), 1);
}

#[test]
fn a_compaction_of_a_file_that_was_rewritten_hides_nothing() {
    let chat = |messages: &[&str]| {
        let messages = messages.iter().map(|m| format!(r#"{{"role":"user","content":"{m}"}}"#));
        format!("[{}]", messages.collect::<Vec<_>>().join(","))
    };
    let long = "x".repeat(2_000);
    let house = House::new(chat(&[&long, "two", "three", "four"]).as_bytes());
    house.store(None, &compacted("sum", &"00000002".into())).unwrap();
    std::fs::write(&house.path, chat(&[&long, "two", "three", "four", "five"])).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "three", "four", "five"]);
    for rewritten in [&[&*long, "three", "four", "five"][..], &[&long, "other"]] {
        std::fs::write(&house.path, chat(rewritten)).unwrap();
        assert_eq!(texts(&house.open(), None), rewritten);
        assert_eq!(house.open().problems().len(), 1);
    }
}

#[test]
fn many_compactions_take_linear_time() {
    let house = House::ours(2);
    let lines: String = (0..20_000)
        .map(|n| {
            let parent = if n == 0 { "null".to_owned() } else { format!("\"{}\"", n - 1) };
            pi_line(&n.to_string(), &parent, "x")
        })
        .collect();
    std::fs::write(&house.path, format!("{PI_HEADER}{lines}")).unwrap();
    house.store(None, &compacted("sum", &"19999".into())).unwrap();
    let header = std::fs::read_to_string(house.overlay()).unwrap();
    let header = header.lines().next().unwrap();
    let many: String = (0..20_000)
        .map(|n| {
            let undo = format!(
                r#"{{"type":"custom","customType":"ctx.undo","id":"u{n}","parentId":"k{n}","data":{{"targetId":"k{n}"}}}}"#
            );
            foreign_line(&format!("k{n}"), "\"19999\"", "\"19000\"") + "\n" + &undo + "\n"
        })
        .collect();
    std::fs::write(house.overlay(), format!("{header}\n{many}")).unwrap();
    let transcript = house.open();
    assert_eq!(transcript.problems(), []);
    assert_eq!(transcript.context(None).unwrap().entries.len(), 20_000);
    assert_eq!(transcript.compaction_list(None).unwrap().len(), 20_000);
    assert_eq!(transcript.line_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(None), None);
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    assert_eq!(copy, std::fs::read(&house.path).unwrap());
}

#[test]
fn a_session_of_ours_is_rewritten_as_its_summary_and_what_it_kept() {
    let house = House::ours(6);
    assert_eq!(rewrite_compacted(&house.path).unwrap(), None);
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    let level = NewEntry::ThinkingLevelChange { thinking_level: "high".into() };
    let model = NewEntry::ModelChange { provider: "p".into(), model_id: "m".into() };
    for entry in [level, model, said(7), said(8)] {
        log.append(&entry, NOW).unwrap();
    }
    log.close().unwrap();
    let first = house.store(None, &compacted("first", &kept(&house.open(), 4))).unwrap();
    let (branch_from, first_kept) = (kept(&house.open(), 1), kept(&house.open(), 2));
    let second = house.store(None, &compacted("second", &first_kept)).unwrap();
    // A branch off a message that is kept, and what comes after.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.branch(Some(branch_from.clone())).unwrap();
    let side = log.append(&said(20), NOW).unwrap();
    log.branch(Some(second.clone())).unwrap();
    log.append(&said(9), NOW).unwrap();
    log.close().unwrap();

    let bytes = std::fs::read(&house.path).unwrap();
    let before = snapshot(&house.open(), None);
    assert_eq!(before[0], format!("high Some((\"p\", \"m\")) Some({second:?})"));
    std::fs::write(house.path.with_file_name("session.jsonl.archived-1"), "taken").unwrap();
    let log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    assert_eq!(rewrite_compacted(&house.path).unwrap_err().kind(), ErrorKind::Locked);
    log.close().unwrap();

    let rewritten = rewrite_compacted(&house.path).unwrap().unwrap();
    assert_eq!(rewritten.archived, house.path.with_file_name("session.jsonl.archived-2"));
    assert_eq!(std::fs::read(&rewritten.archived).unwrap(), bytes);
    assert_eq!(rewritten.compaction, second);
    let transcript = house.open();
    assert_eq!(transcript.problems(), []);
    assert_eq!(snapshot(&transcript, None), before);
    assert_eq!(texts(&transcript, Some(&side)), ["second", "m7", "m8", "m20"]);
    assert!(transcript.index_of(&first).is_none());
    assert_eq!(transcript.entries()[0].id(), &second);
    let list = transcript.compaction_list(None).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].archived.as_deref(), Some("session.jsonl.archived-2"));
    let error = undo_compaction(&house.home, &house.path, None, NOW).unwrap_err();
    assert!(error.hint_text().unwrap().contains("archived-2"), "{error}");
    // The archived session is a session.
    assert_eq!(snapshot(&Transcript::open(&rewritten.archived).unwrap(), None), before);

    // It goes on, and is rewritten again.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.append(&said(10), NOW).unwrap();
    log.close().unwrap();
    house.store(None, &compacted("third", &kept(&house.open(), 1))).unwrap();
    let before = snapshot(&house.open(), None);
    rewrite_compacted(&house.path).unwrap().unwrap();
    assert_eq!(snapshot(&house.open(), None), before);
    assert_eq!(texts(&house.open(), None), ["third", "m10"]);
}

#[test]
fn a_file_of_another_program_is_not_rewritten() {
    for text in [pi_tree(), r#"[{"role":"user","content":"x"}]"#.to_owned()] {
        let house = House::new(text.as_bytes());
        house.store(None, &compacted("sum", &kept(&house.open(), 1))).unwrap();
        let error = rewrite_compacted(&house.path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.hint_text().unwrap().contains("convert"), "{error}");
        assert_eq!(std::fs::read_to_string(&house.path).unwrap(), text);
    }
}

#[test]
fn ponybunny_gets_the_summary_as_compacted_history() {
    let options = ConvertOptions { compacted: true };
    let house = House::ours(6);
    let mut out = Vec::new();
    house.store(None, &compacted("first", &kept(&house.open(), 4))).unwrap();
    house.store(None, &compacted("second", &kept(&house.open(), 2))).unwrap();
    let transcript = house.open();
    let converted = transcript.convert_with(Format::PonyBunny, options, &mut out).unwrap();
    let at = NOW.0;
    let expected = format!(
        r#"{{"messages":[{{"role":"user","content":"m5"}},{{"role":"assistant","content":"m6"}}],"compactedHistory":[{{"role":"system","content":"second","compactedAt":{at},"originalMessageCount":4}}]}}"#
    );
    let written = String::from_utf8(out).unwrap();
    let untimed = written.replace(&format!(r#","timestamp":{at}"#), "");
    assert_eq!(untimed.trim_end(), expected);
    assert_eq!(converted.messages, 2);
    assert!(converted.left_out.iter().any(|s| s.contains("4 messages that a summary")));
    let again = Transcript::from_bytes(written.into_bytes()).unwrap();
    assert_eq!(again.format(), Format::PonyBunny);
    assert_eq!(texts(&again, None), texts(&transcript, None));
    let error = transcript.convert_with(Format::Pi, options, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // Its own summaries go where the new one says it all.
    let house = House::new(
        b"{messages: [{role: 'user', content: 'a'}, {role: 'user', content: 'b'}], compactedHistory: [{role: 'system', content: 's'}]}",
    );
    house.store(None, &compacted("new", &kept(&house.open(), 1))).unwrap();
    let mut out = Vec::new();
    house.open().convert_with(Format::PonyBunny, options, &mut out).unwrap();
    let again = Transcript::from_bytes(out).unwrap();
    assert_eq!(texts(&again, None), ["new", "b"]);
}
