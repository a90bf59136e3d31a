//! Permissions and ordering of store and undo.

use ctx_core::{EntryId, ErrorKind, Tokens};
use ctx_disk::FileLock;
use ctx_session::{CompactionAuthor, LogOptions, ProblemKind, SessionLog, undo_compaction};

use super::house::*;

#[test]
fn the_agents_own_compactions_are_listed_and_undone_by_name_only() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"k1","sessionId":"s","compactMetadata":{"preTokens":155301}}"#;
    let summary = r#"{"type":"user","uuid":"k2","isCompactSummary":true,"sessionId":"s","message":{"role":"user","content":"their summary"}}"#;
    let end = claude("u9", "user", r#"{"role":"user","content":"end"}"#);
    let text = format!("{}{boundary}\n{summary}\n{end}", claude_lines().concat());
    let house = House::new(text.as_bytes());
    let list = house.open().compaction_list(None).unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(
        (list[0].by, list[0].tokens_before),
        (CompactionAuthor::Agent, Some(Tokens(155_301)))
    );
    assert_eq!((list[0].summary.as_str(), &list[0].first_kept_entry_id), ("their summary", &None));
    assert_eq!((list[0].covered.messages, list[0].covered.last.as_deref()), (6, Some("r2")));
    assert_eq!(house.open().messages_with_compactions(None).unwrap().trailing.len(), 0);
    assert_eq!(house.undo(None), None);
    assert!(!house.home.root.exists(), "nothing to undo, nothing written");

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
fn nested_compactions_are_undone_one_by_one() {
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
        assert_eq!(messages[1..], [1, 1], "a covered message is counted once");
        for (state, id) in states.into_iter().rev() {
            let undone = undo_compaction(&house.home, &house.path, None, NOW).unwrap().unwrap();
            assert_eq!((&undone.target, undone.redone), (&id, false));
            assert_eq!(snapshot(&house.open(), None), state);
        }
        assert_eq!(house.open().compactions().unwrap(), 0);
    }
}

#[test]
fn a_ctx_session_continues_after_its_compactions() {
    let house = House::ours(6);
    let first_kept = kept(&house.open(), 2);
    let planned = house.open().leaf().cloned();
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.append(&said(7), NOW).unwrap();
    let error = house.store(None, &compacted("sum", &first_kept)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.hint_text().is_some_and(|hint| hint.contains("wait")), "{error}");
    log.close().unwrap();
    // Entries added after planning are kept.
    let id = house.store(planned.as_ref(), &compacted("sum", &first_kept)).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "m5", "m6", "m7"]);
    assert!(!house.home.root.exists(), "everything is in the session");
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    assert_eq!(log.leaf(), Some(&id));
    log.append(&said(8), NOW).unwrap();
    log.close().unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "m5", "m6", "m7", "m8"]);
    // A plan from before the compaction is outdated; an invalid plan is refused.
    let error = house.store(planned.as_ref(), &compacted("late", &first_kept)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let error = house.store(None, &compacted("lost", &"nowhere".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    house.undo(None).unwrap();
    let all: Vec<_> = (1..=8).map(|n| format!("m{n}")).collect();
    assert_eq!(texts(&house.open(), None), all);
    assert_eq!(house.open().problems, []);
}

#[test]
fn two_writers_of_an_overlay_exclude_each_other() {
    let house = House::new(pi_tree().as_bytes());
    let overlay = house.overlay();
    std::fs::create_dir_all(overlay.parent().unwrap()).unwrap();
    let header = r#"{"type":"overlay","version":1,"source":"/"}"#;
    let undo = r#"{"type":"custom","id":"other","parentId":"r2","customType":"ctx.undo","data":{"targetId":"x"}}"#;
    std::fs::write(&overlay, format!("{header}\n{undo}\n")).unwrap();
    let other = FileLock::with_default_timeout(&overlay).unwrap();
    let error = house.store(None, &compacted("sum", &"c".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(other);
    // A plan made without the overlay names the file's own leaf.
    house.store(Some(&"r2".into()), &compacted("sum", &"c".into())).unwrap();
    let error = house.store(Some(&"r2".into()), &compacted("sum", &"c".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let problems = house.open().problems.to_vec();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::DamagedOverlay);
    assert!(house.open().index_of("other").is_some());
}

#[test]
fn concurrent_stores_wait_for_each_other() {
    for house in [House::new(pi_tree().as_bytes()), House::ours(6)] {
        let first_kept = kept(&house.open(), 1);
        std::thread::scope(|scope| {
            let store = || house.store(None, &compacted("sum", &first_kept));
            let stored: Vec<_> = (0..8).map(|_| scope.spawn(store)).collect();
            for one in stored {
                one.join().unwrap().unwrap();
            }
        });
        assert_eq!(house.open().compaction_list(None).unwrap().len(), 8);
        assert_eq!(house.open().problems, []);
    }
}

#[test]
fn an_overlay_refuses_outdated_plans_and_an_undo_can_be_undone() {
    let house = House::new(pi_tree().as_bytes());
    let before = snapshot(&house.open(), None);
    let undo =
        |which: Option<&EntryId>| undo_compaction(&house.home, &house.path, which, NOW).unwrap();
    let id = house.store(None, &compacted("sum", &"c".into())).unwrap();
    assert_eq!(texts(&house.open(), None), ["sum", "three", "right", "right again"]);
    // A plan from before the compaction is outdated.
    let late = house.store(Some(&"r2".into()), &compacted("late", &"r".into()));
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Conflict);
    let undone = undo(None).unwrap();
    assert_eq!((&undone.target, undone.redone), (&id, false));
    assert_eq!(snapshot(&house.open(), None), before);
    assert_eq!(undo(None), None);
    let redone = undo(Some(&undone.id)).unwrap();
    assert!(redone.redone);
    // If many threads plan at one entry, exactly one succeeds.
    let at = house.open().leaf().cloned();
    let stored = std::thread::scope(|scope| {
        let plan = || house.store(at.as_ref(), &compacted("new", &"r".into()));
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(plan)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).filter(|s| s.is_ok()).count()
    });
    assert_eq!(stored, 1);
    house.store(None, &compacted("other", &"r2".into())).unwrap();
    let error = house.store(None, &compacted("again", &"nowhere".into()));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_plan_that_is_refused_creates_nothing() {
    let chat = r#"[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]"#;
    for text in [pi_tree(), chat.to_owned()] {
        let house = House::new(text.as_bytes());
        let refused =
            [(None, "nowhere", ErrorKind::InvalidInput), (Some("gone"), "a", ErrorKind::NotFound)];
        for (at, first_kept, kind) in refused {
            let (at, plan) = (at.map(EntryId::from), compacted("sum", &first_kept.into()));
            let error = house.store(at.as_ref(), &plan).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(undo_compaction(&house.home, &house.path, None, NOW).unwrap(), None);
        }
        assert!(!house.home.root.exists(), "not even the folder");
    }
}
