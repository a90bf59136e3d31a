//! Rewritten sessions, and PonyBunny's compacted history.

use ctx_core::{ErrorKind, RawJson};
use ctx_session::{
    Format, LogOptions, NewEntry, SessionLog, Transcript, rewrite_compacted, store_compaction,
    undo_compaction,
};

use super::house::{self, *};

#[test]
fn a_rewritten_session_contains_its_summary_and_the_kept_messages() {
    let house = House::ours(6);
    let error = rewrite_compacted(&house.path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.hint_text().unwrap().contains("`ctx compact "), "{error}");
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
    // A branch from a kept message, and later entries.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.branch(Some(branch_from)).unwrap();
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

    let rewritten = rewrite_compacted(&house.path).unwrap();
    assert_eq!(rewritten.archived, house.path.with_file_name("session.jsonl.archived-2"));
    assert_eq!(std::fs::read(&rewritten.archived).unwrap(), bytes);
    assert_eq!(rewritten.compaction, second);
    let transcript = house.open();
    assert_eq!(transcript.problems, []);
    assert_eq!(snapshot(&transcript, None), before);
    assert_eq!(texts(&transcript, Some(&side)), ["second", "m7", "m8", "m20"]);
    assert!(transcript.index_of(&first).is_none());
    assert_eq!(transcript.entries[0].id, second);
    let list = transcript.compaction_list(None).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].archived.as_deref(), Some("session.jsonl.archived-2"));
    let error = undo_compaction(&house.home, &house.path, None, NOW).unwrap_err();
    assert!(error.hint_text().unwrap().contains("archived-2"), "{error}");
    let error = rewrite_compacted(&house.path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("already"), "{error}");
    // The archived session is a valid session.
    assert_eq!(snapshot(&Transcript::open(&rewritten.archived).unwrap(), None), before);

    // The session can be continued and rewritten again.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.append(&said(10), NOW).unwrap();
    log.close().unwrap();
    house.store(None, &compacted("third", &kept(&house.open(), 1))).unwrap();
    let before = snapshot(&house.open(), None);
    rewrite_compacted(&house.path).unwrap();
    assert_eq!(snapshot(&house.open(), None), before);
    assert_eq!(texts(&house.open(), None), ["third", "m10"]);
}

#[test]
fn messages_left_in_place_before_the_cut_survive_a_rewrite() {
    let house = House::ours(8);
    let ids: Vec<_> = house.open().entries.iter().map(|entry| entry.id.clone()).collect();
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.branch(Some(ids[2].clone())).unwrap();
    let side = log.append(&said(20), NOW).unwrap();
    log.branch(Some(ids[7].clone())).unwrap();
    let replacement = Some(RawJson::from_text(r#"{"content":"m5, edited"}"#));
    let edit = NewEntry::ContextEdit { target_id: ids[4].clone(), replacement };
    log.append(&edit, NOW).unwrap();
    let first_kept = log.append(&said(9), NOW).unwrap();
    log.close().unwrap();
    let staying = vec![ids[2].clone(), ids[4].clone()];
    let compacted = ctx_core::Compacted { staying, ..compacted("sum", &first_kept) };
    house.store(None, &compacted).unwrap();
    let seen = texts(&house.open(), None);
    assert_eq!(seen, ["sum", "m3", "m5, edited", "m9"]);
    let before = snapshot(&house.open(), None);
    rewrite_compacted(&house.path).unwrap();
    assert_eq!(snapshot(&house.open(), None), before);
    assert!(house.open().index_of(&side).is_none(), "a branch that begins at a staying message");

    // The staying messages are ordinary ones now: the next compaction may remove them.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    let last = log.append(&said(10), NOW).unwrap();
    log.close().unwrap();
    let staying = vec![ids[4].clone()];
    let next = ctx_core::Compacted { staying, ..house::compacted("next", &last) };
    house.store(None, &next).unwrap();
    let before = snapshot(&house.open(), None);
    rewrite_compacted(&house.path).unwrap();
    assert_eq!(snapshot(&house.open(), None), before);
    assert_eq!(texts(&house.open(), None), ["next", "m5, edited", "m10"]);
}

#[test]
fn entries_appended_during_a_rewrite_are_kept() {
    for round in 0..10 {
        let house = House::ours(6);
        house.store(None, &compacted("sum", &kept(&house.open(), 2))).unwrap();
        let both = std::sync::Barrier::new(2);
        let appended = std::thread::scope(|scope| {
            let rewriting = scope.spawn(|| {
                both.wait();
                rewrite_compacted(&house.path).unwrap();
            });
            both.wait();
            let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
            let appended = log.append(&said(7), NOW).unwrap();
            log.close().unwrap();
            rewriting.join().unwrap();
            appended
        });
        assert!(house.open().index_of(&appended).is_some(), "round {round}");
    }
}

#[test]
fn the_next_rewrite_removes_leftovers_of_a_killed_one() {
    let house = House::ours(6);
    let beside = |suffix: &str| house.path.with_file_name(format!("session.jsonl{suffix}"));
    let id = "0123456789abcdef0123456789abcdef";
    // Killed after archiving, once with hard links and once without.
    let bytes = std::fs::read(&house.path).unwrap();
    std::fs::hard_link(&house.path, beside(".archived-1")).unwrap();
    std::fs::write(beside(".archived-2"), &bytes[..bytes.len() / 2]).unwrap();
    // Killed before the new file was moved into place.
    std::fs::write(beside(&format!(".{id}.tmp")), "half").unwrap();
    // And files with similar names.
    let others = [
        ".archived-3",
        ".archived-1.gz",
        ".archived-x",
        ".notes.tmp",
        &format!(".{id}.tmp.bak"),
        &format!("-{id}.tmp"),
    ];
    for other in others {
        std::fs::write(beside(other), "theirs").unwrap();
    }
    std::fs::create_dir(beside(&format!(".{}.tmp", id.replace('0', "f")))).unwrap();
    let elsewhere = house.path.with_file_name(format!("other.jsonl.{id}.tmp"));
    std::fs::write(&elsewhere, "of another session").unwrap();

    house.store(None, &compacted("sum", &kept(&house.open(), 2))).unwrap();
    let bytes = std::fs::read(&house.path).unwrap();
    let before = snapshot(&house.open(), None);
    let rewritten = rewrite_compacted(&house.path).unwrap();
    assert_eq!(rewritten.archived, beside(".archived-1"));
    assert_eq!(std::fs::read(&rewritten.archived).unwrap(), bytes);
    assert!(!beside(".archived-2").exists() && !beside(&format!(".{id}.tmp")).exists());
    for other in others {
        assert_eq!(std::fs::read_to_string(beside(other)).unwrap(), "theirs", "{other}");
    }
    assert!(elsewhere.exists() && beside(&format!(".{}.tmp", id.replace('0', "f"))).exists());
    assert_eq!(snapshot(&house.open(), None), before);

    // A complete archive stays.
    house.store(None, &compacted("again", &kept(&house.open(), 1))).unwrap();
    assert_eq!(rewrite_compacted(&house.path).unwrap().archived, beside(".archived-2"));
    assert_eq!(std::fs::read(beside(".archived-1")).unwrap(), bytes);
}

/// A folder has the name of the temporary file.
#[test]
fn a_rewrite_that_fails_leaves_no_archive() {
    let house = House::ours(4);
    let path = &house.path;
    let first_kept = kept(&Transcript::open(path).unwrap(), 1);
    store_compaction(&house.home, path, None, &compacted("sum", &first_kept), NOW).unwrap();
    let bytes = std::fs::read(path).unwrap();
    std::fs::create_dir(format!("{}.tmp", path.display())).unwrap();
    for _ in 0..2 {
        assert_eq!(rewrite_compacted(path).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
        let archived: Vec<_> = names.filter(|name| name.contains("archived")).collect();
        assert_eq!(archived, Vec::<String>::new());
    }
}

#[test]
fn a_file_of_another_program_is_not_rewritten() {
    let cases = [
        (pi_tree(), "--to ctx --output NEW"),
        (r#"[{"role":"user","content":"x"}]"#.to_owned(), "--to ctx --output NEW"),
        ("{messages: [{role: 'user', content: 'x'}]}".to_owned(), "--to ponybunny --compacted"),
    ];
    for (text, command) in cases {
        let house = House::new(text.as_bytes());
        house.store(None, &compacted("sum", &kept(&house.open(), 1))).unwrap();
        let error = rewrite_compacted(&house.path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let command = format!("`ctx convert {} {command}", house.path.display());
        assert!(error.hint_text().unwrap().contains(&command), "{error}");
        assert_eq!(std::fs::read_to_string(&house.path).unwrap(), text);
    }
    let house = House::new(b"no transcript");
    let error = rewrite_compacted(&house.path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
    let gone = house.path.with_file_name("gone");
    assert_eq!(rewrite_compacted(&gone).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn ponybunny_gets_the_summary_as_compacted_history() {
    let house = House::ours(6);
    let mut out = Vec::new();
    house.store(None, &compacted("first", &kept(&house.open(), 4))).unwrap();
    house.store(None, &compacted("second", &kept(&house.open(), 2))).unwrap();
    let transcript = house.open();
    let converted = transcript.convert_with(Format::PONYBUNNY, true, &mut out).unwrap();
    let at = NOW.0;
    let expected = format!(
        r#"{{"messages":[{{"role":"user","content":"m5"}},{{"role":"assistant","content":"m6"}}],"compactedHistory":[{{"role":"system","content":"second","compactedAt":{at},"originalMessageCount":4}}]}}"#
    );
    let written = String::from_utf8(out).unwrap();
    let untimed = written.replace(&format!(r#","timestamp":{at}"#), "");
    assert_eq!(untimed.trim_end(), expected);
    assert_eq!(converted.messages, 2);
    assert!(converted.left_out.iter().any(|s| s.contains("4 messages replaced by a summary")));
    let again = Transcript::from_bytes(written.into_bytes()).unwrap();
    assert_eq!(again.format, Format::PONYBUNNY);
    assert_eq!(texts(&again, None), texts(&transcript, None));
    let error = transcript.convert_with(Format::PI, true, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    // Its own summaries are dropped if the new one covers everything.
    let house = House::new(
        b"{messages: [{role: 'user', content: 'a'}, {role: 'user', content: 'b'}], compactedHistory: [{role: 'system', content: 's'}]}",
    );
    house.store(None, &compacted("new", &kept(&house.open(), 1))).unwrap();
    let mut out = Vec::new();
    house.open().convert_with(Format::PONYBUNNY, true, &mut out).unwrap();
    let again = Transcript::from_bytes(out).unwrap();
    assert_eq!(texts(&again, None), ["new", "b"]);
}
