//! Erased messages, and content derived from them.

use std::collections::HashSet;

use ctx_core::{
    Compacted, EntryId, ErrorKind, Message, Projected, Projection, ProjectionKey, Role,
};
use ctx_session::{
    EraseCriteria, Erased, Format, LogOptions, NewEntry, SessionLog, Transcript, erase_in_overlay,
    erase_in_session, rewrite_compacted, save_projections, undo_compaction,
};

use super::house::*;

fn erase(house: &House, ids: &[&EntryId], dry_run: bool) -> Option<Vec<Erased>> {
    let entries: HashSet<EntryId> = ids.iter().map(|id| (*id).clone()).collect();
    let never = |_: &str| false;
    let criteria = EraseCriteria { entries: &entries, all: false, derived: &never, holds: &never };
    erase_in_session(&house.path, &criteria, dry_run).unwrap()
}

fn forget(house: &House, ids: &[&EntryId], marker: &str) -> Option<Erased> {
    let entries: HashSet<EntryId> = ids.iter().map(|id| (*id).clone()).collect();
    let says = |text: &str| text.contains(marker);
    let criteria = EraseCriteria { entries: &entries, all: false, derived: &says, holds: &says };
    erase_in_overlay(&house.home, &house.path, &criteria, NOW, false).unwrap()
}

fn ids(house: &House) -> Vec<EntryId> {
    house.open().entries.iter().map(|entry| entry.id.clone()).collect()
}

fn form(entry: &EntryId, text: &str) -> Projection {
    let message = Message::text(Role::User, text);
    let hash = ctx_core::ContentHash::of(&message);
    let form = Projected::Replaced(std::sync::Arc::new(message));
    let key = ProjectionKey { entry: entry.clone(), hash };
    Projection { key, layer: "pruning".into(), form, reason: "old".into(), points_to: Vec::new() }
}

/// Whether any file of the folder contains the text.
fn is_on_disk(house: &House, text: &str) -> bool {
    let mut folders = vec![house.path.parent().unwrap().to_owned()];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text) {
                return true;
            }
        }
    }
    false
}

#[test]
fn an_erased_message_leaves_session_and_summary_and_undo_does_not_restore_it() {
    let house = House::ours(6);
    let all = ids(&house);
    let summary = format!("## Done\n- m2 was said [e:{}]\n- m1 was said [e:{}]", all[1], all[0]);
    let compacted = Compacted {
        projections: vec![form(&all[3], "m4 short"), form(&all[4], "m5 short")],
        staying: vec![all[1].clone()],
        ..compacted(&summary, &all[3])
    };
    let compaction = house.store(None, &compacted).unwrap();
    let points_to = vec![form(&all[1], "m2").key];
    let pointer = Projection { points_to, ..form(&all[5], "lines of another") };
    save_projections(&house.home, &house.path, &[form(&all[1], "m2 short"), pointer]).unwrap();
    let before = std::fs::read(&house.path).unwrap();
    let dry = erase(&house, &[&all[1], &all[3]], true).unwrap();
    assert_eq!(std::fs::read(&house.path).unwrap(), before, "a dry run writes nothing");
    let erased = erase(&house, &[&all[1], &all[3]], false).unwrap();
    assert_eq!(erased, dry);
    let [found] = &erased[..] else { panic!("{erased:?}") };
    assert_eq!((found.messages, found.summary_lines, found.forms, found.others), (2, 1, 3, 0));
    assert_eq!(found.undo_ended, [compaction]);

    let transcript = house.open();
    assert_eq!(transcript.problems, []);
    let left = format!("## Done\n- m1 was said [e:{}]", all[0]);
    assert_eq!(texts(&transcript, None), [left.as_str(), "m5", "m6"]);
    assert!(!is_on_disk(&house, "m2") && !is_on_disk(&house, "m4"));
    assert_eq!(transcript.projections(None).unwrap(), [form(&all[4], "m5 short")]);
    assert!(house.undo(None).is_some());
    assert_eq!(texts(&house.open(), None), ["m1", "m3", "m5", "m6"]);
    assert!(erase(&house, &[&all[1]], false).unwrap().is_empty(), "a second run has nothing to do");
    // The session can be continued.
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.append(&said(7), NOW).unwrap();
    log.close().unwrap();
    assert_eq!(texts(&house.open(), None), ["m1", "m3", "m5", "m6", "m7"]);
}

#[test]
fn an_erased_message_is_removed_from_archived_sessions_too() {
    let house = House::ours(6);
    let all = ids(&house);
    house.store(None, &compacted("- of m2\n- of others", &all[4])).unwrap();
    let archived = rewrite_compacted(&house.path).unwrap().archived;
    let entries = [all[1].clone(), all[5].clone()].into_iter().collect();
    let says = |text: &str| text.contains("m2");
    let never = |_: &str| false;
    let criteria = EraseCriteria { entries: &entries, all: false, derived: &says, holds: &never };
    let erased = erase_in_session(&house.path, &criteria, false).unwrap().unwrap();
    let of: Vec<_> = erased.iter().map(|e| (e.path.clone(), e.messages, e.summary_lines)).collect();
    assert_eq!(of, [(house.path.clone(), 1, 1), (archived.clone(), 2, 1)]);
    assert_eq!(texts(&house.open(), None), ["- of others", "m5"]);
    assert_eq!(Transcript::open(&archived).unwrap().all_messages().len(), 4);
    assert!(!is_on_disk(&house, "m2") && !is_on_disk(&house, "m6"));

    // Everything: the archives are removed.
    let criteria =
        EraseCriteria { entries: &HashSet::new(), all: true, derived: &never, holds: &never };
    erase_in_session(&house.path, &criteria, false).unwrap();
    assert!(!archived.exists());
    assert_eq!(house.open().entries.len(), 0);
    assert!(house.open().is_ctx_session() && !is_on_disk(&house, "m5"));
}

#[test]
fn erasing_covers_branches_labels_edits_and_leaf_entries() {
    let house = House::ours(3);
    let all = ids(&house);
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    log.branch(Some(all[1].clone())).unwrap();
    let side = log.append(&said(20), NOW).unwrap();
    log.branch(Some(all[2].clone())).unwrap();
    let label =
        |id: &EntryId| NewEntry::Label { target_id: id.clone(), label: Some("a mark".into()) };
    let replacement = Some(ctx_core::RawJson::from_text(r#"{"content":"m2, edited"}"#));
    let edit = NewEntry::ContextEdit { target_id: all[1].clone(), replacement };
    for entry in [label(&all[1]), label(&all[0]), edit] {
        log.append(&entry, NOW).unwrap();
    }
    log.append(&NewEntry::Leaf { target_id: Some(all[1].clone()) }, NOW).unwrap();
    log.close().unwrap();
    let erased = erase(&house, &[&all[1]], false).unwrap();
    assert_eq!((erased[0].messages, erased[0].others), (1, 2));
    let transcript = house.open();
    assert_eq!(transcript.problems, []);
    assert_eq!(texts(&transcript, None), ["m1"]);
    assert_eq!(texts(&transcript, Some(&side)), ["m1", "m20"]);
    assert_eq!(transcript.labels.len(), 1);
    assert!(!is_on_disk(&house, "m2, edited"));
}

#[test]
fn a_session_in_use_and_a_file_of_another_program_are_not_written() {
    let house = House::ours(2);
    let all = ids(&house);
    let log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    let entries = [all[0].clone()].into_iter().collect();
    let never = |_: &str| false;
    let criteria = EraseCriteria { entries: &entries, all: false, derived: &never, holds: &never };
    let error = erase_in_session(&house.path, &criteria, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    log.close().unwrap();
    let theirs = House::new(pi_tree().as_bytes());
    assert_eq!(erase_in_session(&theirs.path, &criteria, false).unwrap(), None);
    assert_eq!(std::fs::read_to_string(&theirs.path).unwrap(), pi_tree());
}

#[test]
fn a_message_of_another_program_is_hidden_and_erased_from_the_overlay() {
    let house = House::new(claude_lines().concat().as_bytes());
    let bytes = std::fs::read(&house.path).unwrap();
    let [u2, a2, r1]: [EntryId; 3] = ["u2", "a2", "r1"].map(EntryId::from);
    let first_kept = Compacted {
        projections: vec![form(&r1, "short r1")],
        ..compacted("- u2 asked [e:u2]\n- u1 asked [e:u1]", &a2)
    };
    house.store(None, &first_kept).unwrap();
    save_projections(&house.home, &house.path, &[form(&u2, "short u2")]).unwrap();
    let erased = forget(&house, &[&u2, &r1], "no marker").unwrap();
    assert_eq!((erased.hidden, erased.summary_lines, erased.forms), (2, 1, 2));
    assert_eq!(std::fs::read(&house.path).unwrap(), bytes);
    let overlay = std::fs::read_to_string(house.overlay()).unwrap();
    assert!(!overlay.contains("u2 asked") && !overlay.contains("short"), "{overlay}");
    let transcript = house.open();
    assert_eq!(transcript.problems, []);
    assert_eq!(texts(&transcript, None)[0], "- u1 asked [e:u1]");
    assert_eq!(transcript.context(None).unwrap().entries.len(), 3);
    undo_compaction(&house.home, &house.path, None, NOW).unwrap().unwrap();
    let (transcript, hidden) = (house.open(), ["u2", "r1"]);
    for all in [transcript.context(None).unwrap().entries, transcript.all_messages()] {
        assert_eq!(all.len(), 4);
        assert!(!all.iter().any(|entry| hidden.contains(&&**entry.id())));
    }
    assert!(transcript.model().is_ok() && transcript.compaction_list(None).is_ok());
    assert!(forget(&house, &[&u2, &r1], "no marker").is_none(), "a second run has nothing to do");

    // An answer that spans several lines is erased as a whole.
    assert_eq!(forget(&house, &[&a2], "no marker").unwrap().hidden, 1);
    assert_eq!(house.open().all_messages().len(), 3);
    let mut copy = Vec::new();
    house.open().convert(Format::PI, &mut copy).unwrap();
    assert!(!String::from_utf8_lossy(&copy).contains("let me see"));
}

#[test]
fn a_message_is_hidden_even_if_a_full_disk_left_an_empty_overlay() {
    let house = House::new(claude_lines().concat().as_bytes());
    let overlay = house.overlay();
    std::fs::create_dir_all(overlay.parent().unwrap()).unwrap();
    std::fs::write(&overlay, "").unwrap();
    let u2 = EntryId::from("u2");
    assert_eq!(forget(&house, &[&u2], "no marker").unwrap().hidden, 1);
    assert!(!house.open().all_messages().iter().any(|entry| *entry.id() == u2));
}

#[test]
fn a_foreign_summary_that_mentions_the_message_is_hidden_but_still_cuts_history() {
    let line = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","timestamp":"2026-01-01T00:00:01.000Z","summary":"the heron, and more","firstKeptEntryId":"b","tokensBefore":9}}"#
        ) + "\n"
    };
    let file = [
        PI_HEADER.to_owned(),
        pi_line("a", "null", "the heron"),
        pi_line("b", "\"a\"", "two"),
        line("c", "b"),
        pi_line("d", "\"c\"", "three"),
    ];
    let house = House::new(file.concat().as_bytes());
    let holding = house.open().messages_containing(&|text| text.contains("heron")).unwrap();
    assert_eq!(holding, ["a".into()]);
    assert_eq!(forget(&house, &[&holding[0]], "heron").unwrap().hidden, 2);
    assert_eq!(texts(&house.open(), None), ["two", "three"]);
    assert_eq!(house.open().compaction_list(None).unwrap()[0].summary, "");
    let mut copy = Vec::new();
    house.open().convert(Format::CTX, &mut copy).unwrap();
    let text = String::from_utf8(copy).unwrap();
    assert!(!text.contains("and more"), "{text}");

    // After a rewrite of the file, the same id may name a different message.
    let other = file.concat().replace("the heron\"", "something else\"");
    std::fs::write(&house.path, other).unwrap();
    let all = house.open().all_messages();
    assert_eq!(&**all[0].id(), "a");
}

#[test]
fn an_unreadable_line_with_erased_content_is_removed() {
    let house = House::ours(2);
    house.grow("{\"type\":\"message\",\"id\":\"torn\",\"message\":{\"content\":\"the heron");
    let says = |text: &str| text.contains("heron");
    let criteria =
        EraseCriteria { entries: &HashSet::new(), all: false, derived: &says, holds: &says };
    let erased = erase_in_session(&house.path, &criteria, false).unwrap().unwrap();
    assert_eq!(erased.len(), 1);
    assert!(!is_on_disk(&house, "heron"));
    assert_eq!(texts(&house.open(), None), ["m1", "m2"]);
}
