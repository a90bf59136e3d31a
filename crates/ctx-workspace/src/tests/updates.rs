//! Index updates: by one process and by several, within turns and without limits.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ctx_core::{Counter, CounterKind, ErrorKind};

use super::*;

#[test]
fn a_stopped_update_keeps_its_work_and_the_next_one_continues() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana"), ("c.md", "cherry")]);
    let workspace = room.open();
    let mut files = 0;
    let report = workspace
        .update(|_| {
            files += 1;
            if files > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((counts(&report), report.left), ([2, 0, 0, 0], 1));
    assert_eq!(paths(&workspace, "apple banana cherry").len(), 2);
    assert_eq!(counts(&update(&workspace)), [1, 0, 2, 0]);
    assert_eq!(paths(&workspace, "apple banana cherry").len(), 3);
}

#[test]
fn a_turn_does_not_wait_for_a_large_folder() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana split")]);
    let workspace = room.open();
    assert_eq!(workspace.refresh(5, LONG).unwrap().left, 1);
    assert_eq!(paths(&workspace, "apple banana"), ["a.md"]);
    assert_eq!(workspace.refresh(1 << 20, LONG).unwrap().left, 0);
    assert_eq!(paths(&workspace, "banana"), ["b.md"]);
}

#[test]
fn updates_are_visible_to_other_processes_and_never_overlap() {
    let room = Room::with(&[("a.md", "apple")]);
    let (one, two) = (room.open(), room.open());
    assert!(paths(&two, "apple").is_empty());
    update(&one);
    assert_eq!(paths(&two, "apple"), ["a.md"]);
    let result = one.update(|_| {
        let error = two.refresh(1 << 20, LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        ControlFlow::Continue(())
    });
    assert_eq!(counts(&result.unwrap()), [0, 0, 1, 0]);
    let threads: Vec<_> = (0..4)
        .map(|n| {
            room.write(&format!("{n}.md"), format!("fruit {n}"));
            let workspace = room.open();
            std::thread::spawn(move || update(&workspace).files)
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() >= 2));
    assert_eq!(paths(&one, "fruit").len(), 4);
}

#[test]
fn each_chunk_length_and_each_folder_has_its_own_index() {
    let long: String = (0..200).map(|n| format!("apple number {n}\n")).collect();
    let room = Room::with(&[("a.md", &long)]);
    let many = update(&room.open()).chunks;
    let settings =
        WorkspaceSettings { chunk: ctx_core::Tokens(64), ..WorkspaceSettings::default() };
    let index = room.dir.path().join("i");
    let fine = Workspace::open(&index, &room.folder(), settings).unwrap();
    assert!(update(&fine).chunks > many * 4);
    assert!(fine.search("apple", 10, None).unwrap().snippets.iter().all(|s| s.text.len() < 300));
    assert_ne!(folder_of(&index, Path::new("/a")), folder_of(&index, Path::new("/b")));
    let error = Workspace::open(&index, &room.folder().join("none"), WorkspaceSettings::default());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    let error = Workspace::open(&index, &room.folder().join("a.md"), WorkspaceSettings::default());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_word_is_found_on_its_line_after_other_chunk_lengths() {
    let lines = (0..400).map(|n| match n {
        399 => "the zebra crosses here\n".to_owned(),
        n => format!("line {n} says nothing\n"),
    });
    let room = Room::with(&[("a.md", &lines.collect::<String>())]);
    update(&room.open());
    // In the same folder, like an index of another version.
    for tokens in [64, 32, 512] {
        let settings =
            WorkspaceSettings { chunk: ctx_core::Tokens(tokens), ..WorkspaceSettings::default() };
        let mut cut = Workspace::open(&room.index(), &room.folder(), settings).unwrap();
        cut.store = room.open().store().to_owned();
        update(&cut);
        let found = cut.search("zebra", 10, None).unwrap().snippets;
        assert_eq!(found.len(), 1, "{tokens}: {found:?}");
        assert!(found[0].text.contains("zebra"), "{tokens}: {found:?}");
    }
}

#[test]
fn hosts_with_other_chunk_lengths_do_not_interfere() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana")]);
    update(&room.open());
    let settings = WorkspaceSettings {
        counter: Counter::new(CounterKind::Cjk),
        ..WorkspaceSettings::default()
    };
    let other = Workspace::open(&room.index(), &room.folder(), settings).unwrap();
    assert_eq!(counts(&update(&other)), [2, 0, 0, 0]);
    assert_eq!(counts(&update(&room.open())), [0, 0, 2, 0]);
    assert_eq!(counts(&update(&other)), [0, 0, 2, 0]);
    assert_eq!(paths(&other, "apple"), ["a.md"]);
}

#[test]
fn a_turn_deletes_only_what_it_can_rebuild() {
    let room = Room::with(&[("kept.md", "apple"), ("a.md", "one"), ("b.md", "two")]);
    let workspace = room.open();
    update(&workspace);
    for n in 0..5 {
        room.write("a.md", format!("cherry {n}"));
        room.write("b.md", format!("banana {n}"));
        // A limit of one byte is enough for no file.
        workspace.refresh(1, LONG).unwrap();
        assert_eq!(paths(&workspace, "apple"), ["kept.md"], "{n}");
        let report = workspace.refresh(1 << 20, LONG).unwrap();
        assert_eq!((counts(&report), report.left), ([0, 2, 1, 0], 0), "{n}");
    }
}

#[test]
fn words_of_removed_files_are_deleted_in_small_folders_too() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana"), ("c.md", "cherry")]);
    let workspace = room.open();
    update(&workspace);
    let pieces = || {
        let rows = rows::Rows::new(Vec::new(), workspace.settings.cut());
        let (_, snapshot) = workspace.opened(&rows).unwrap().unwrap();
        snapshot.pieces().0
    };
    for gone in ["a.md", "b.md"] {
        fs::remove_file(room.folder().join(gone)).unwrap();
    }
    assert_eq!(counts(&update(&workspace)), [0, 0, 1, 2]);
    assert_eq!(pieces(), 1);
    assert_eq!(paths(&workspace, "cherry"), ["c.md"]);
}

#[test]
fn a_walk_past_its_deadline_ends_and_treats_no_file_as_removed() {
    let room = Room::with(&[]);
    (0..600).for_each(|n| room.write(&format!("{n:03}.md"), format!("number n{n}")));
    let workspace = room.open();
    let report = workspace.refresh(1 << 20, Duration::ZERO).unwrap();
    assert!(report.cut_short && (1..600).contains(&report.files), "{report:?}");
    assert!(paths(&workspace, "n599").is_empty());
    assert_eq!(update(&workspace).files, 600);
    let report = workspace.refresh(1 << 20, Duration::ZERO).unwrap();
    assert!(report.cut_short && report.removed == 0, "{report:?}");
    assert_eq!(paths(&workspace, "n599"), ["599.md"]);
}

#[test]
fn an_unreadable_file_is_read_again_when_it_changes() {
    let room = Room::with(&[("a.md", "apple")]);
    // The walk finds a file that no longer exists when it is read.
    let workspace = room.open();
    update(&workspace);
    let row = fs::read_to_string(workspace.list()).unwrap();
    let row = row.replace("\"chunks\":[[1,1]]", "\"kind\":\"unreadable\",\"chunks\":[]");
    fs::write(workspace.list(), row).unwrap();
    let report = update(&workspace);
    assert_eq!((report.files, report.skipped.unreadable), (1, 0));
    assert_eq!(paths(&workspace, "apple"), ["a.md"]);
}

#[cfg(unix)]
#[test]
fn future_and_unreadable_files_do_not_open_the_index() {
    use std::time::SystemTime;
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana")]);
    let later = SystemTime::now() + Duration::from_secs(1 << 30);
    let file = fs::File::options().write(true).open(room.folder().join("a.md")).unwrap();
    file.set_modified(later).unwrap();
    let workspace = room.open();
    update(&workspace);
    // Opening the index would find it missing and rebuild it.
    fs::remove_dir_all(workspace.lexical()).unwrap();
    let report = workspace.refresh(1 << 20, LONG).unwrap();
    assert_eq!(counts(&report), [0, 0, 2, 0]);
    assert!(!workspace.lexical().exists());
}

#[test]
fn an_index_is_removed_with_its_lock_held_and_the_lock_stays() {
    let room = Room::with(&[("a.md", "apple")]);
    let (one, two) = (room.open(), room.open());
    assert!(!one.forget().unwrap(), "there is none");
    update(&one);
    let coarse =
        WorkspaceSettings { chunk: ctx_core::Tokens(1_024), ..WorkspaceSettings::default() };
    update(&Workspace::open(&room.index(), &room.folder(), coarse).unwrap());
    let removal = one
        .update(|_| {
            let removal = std::thread::scope(|scope| {
                scope.spawn(|| two.forget_within(Duration::ZERO).unwrap_err().kind()).join()
            });
            assert_eq!(removal.unwrap(), ErrorKind::Locked);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(removal.files, 1);
    assert!(one.forget().unwrap());
    let left = |store: &Path| -> Vec<_> {
        fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(fs::read_dir(one.stores()).unwrap().count(), 2, "one for each way to cut");
    assert_eq!(left(one.store()), ["files.jsonl.lock"]);
    assert!(paths(&one, "apple").is_empty() && !two.forget().unwrap());
    assert!(room.folder().join("a.md").is_file());
}
