use std::fs;
use std::path::Path;

use ctx_core::ErrorKind;

use super::*;
use crate::lexical::{Bm25, Delta, Postings, QueryTerm, score};

const TEXTS: [&str; 4] =
    ["cat dog", "dog dog bird fish", "bird: src/main.rs", "the dog sleeps in the garden"];

fn write(index: &DiskIndex, seen: u64, rows: std::ops::Range<usize>) -> WriteOutcome {
    let written = index.write(Batch::Small, seen, |sink| {
        for row in rows {
            Piece::each(row as u64, "", TEXTS[row], sink)?;
        }
        Ok(())
    });
    written.unwrap()
}

fn snapshot(index: &DiskIndex) -> Snapshot {
    index.snapshot(|key| Some(key as u32)).unwrap()
}

fn scores(sources: &[&dyn Postings]) -> [f32; 4] {
    let query = ["dog", "bird", "src/main.rs"];
    let query = query.map(|text| QueryTerm { text: text.to_owned(), weight: 1.0 });
    let mut scores = [0.0; 4];
    score(&query, sources, Bm25 { k1: 1.2, b: 0.4 }, &mut scores);
    scores
}

fn in_memory(rows: std::ops::Range<usize>) -> Delta {
    let mut delta = Delta::default();
    rows.for_each(|row| delta.add(row as u32, "", TEXTS[row]));
    delta
}

fn kind_of(folder: &Path) -> Option<ErrorKind> {
    DiskIndex::open(folder).err().map(|error| error.kind())
}

#[test]
fn a_segment_has_the_same_score_on_disk_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(folder.path()).unwrap();
    let expected = scores(&[&in_memory(0..4)]);
    assert!(expected.iter().all(|score| *score > 0.0));
    assert_eq!(scores(&[&snapshot(&index), &in_memory(0..4)]), expected);
    assert_eq!(write(&index, snapshot(&index).version(), 0..2), WriteOutcome::Committed);
    assert_eq!(scores(&[&snapshot(&index), &in_memory(2..4)]), expected);
    // In a second tantivy segment, after opening again.
    assert_eq!(write(&index, snapshot(&index).version(), 2..4), WriteOutcome::Committed);
    assert_eq!(scores(&[&snapshot(&index)]), expected);
    let again = DiskIndex::open(folder.path()).unwrap();
    assert_eq!(scores(&[&snapshot(&again)]), expected);
    assert_eq!(snapshot(&again).keys().len(), 4);
}

#[test]
fn a_term_in_more_pieces_than_a_block_has_is_found_in_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(folder.path()).unwrap();
    index
        .write(Batch::Large, snapshot(&index).version(), |sink| {
            (0..300).try_for_each(|key| Piece::each(key, "", "same", sink))
        })
        .unwrap();
    let snapshot = snapshot(&index);
    let mut found = Vec::new();
    snapshot.each_block("same", &mut |block| found.extend(block.iter().map(|p| p.piece)));
    assert_eq!(found, (0..300).collect::<Vec<_>>());
    assert_eq!((snapshot.frequency("same"), snapshot.frequency("other")), (300, 0));
}

#[test]
fn removed_segments_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(folder.path()).unwrap();
    write(&index, snapshot(&index).version(), 0..4);
    let some = index.snapshot(|key| (key != 1).then_some(key as u32)).unwrap();
    assert_eq!(some.pieces(), (4, 1));
    assert_eq!(scores(&[&some])[1], 0.0);
}

#[test]
fn two_concurrent_writers_write_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let one = DiskIndex::open(folder.path()).unwrap();
    let two = DiskIndex::open(folder.path()).unwrap();
    let (seen_by_one, seen_by_two) = (snapshot(&one).version(), snapshot(&two).version());
    let busy = one.write(Batch::Small, seen_by_one, |_| {
        assert_eq!(write(&two, seen_by_two, 0..2), WriteOutcome::Busy);
        Ok(())
    });
    assert_eq!(busy.unwrap(), WriteOutcome::Committed);
    assert_eq!(write(&one, seen_by_one, 2..4), WriteOutcome::Committed);
    assert_eq!(write(&two, seen_by_two, 0..2), WriteOutcome::Stale);
    assert_eq!(write(&two, snapshot(&two).version(), 0..2), WriteOutcome::Committed);
    assert_eq!(snapshot(&one).pieces(), (4, 0));
}

#[test]
fn a_write_that_fails_half_way_is_not_in_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let index = DiskIndex::open(folder.path()).unwrap();
    let failed = index.write(Batch::Small, snapshot(&index).version(), |sink| {
        Piece::each(0, "", "dog", sink)?;
        Err(ctx_core::Error::new(ErrorKind::Cancelled, "enough"))
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(snapshot(&index).pieces(), (0, 0));
    assert_eq!(write(&index, snapshot(&index).version(), 0..4), WriteOutcome::Committed);
}

#[test]
fn damaged_foreign_and_missing_indexes_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("made/on/demand");
    assert_eq!(kind_of(&at), None);
    let index = DiskIndex::open(&at).unwrap();
    write(&index, snapshot(&index).version(), 0..4);
    drop(index);
    let files = || fs::read_dir(&at).unwrap().map(|file| file.unwrap().path());
    let postings = files().find(|file| file.extension().is_some_and(|e| e == "idx")).unwrap();
    let good = fs::read(&postings).unwrap();
    let mut bad = good.clone();
    bad[0] ^= 0xff;
    for bytes in [&bad[..], &good[..good.len() / 2], b""] {
        fs::write(&postings, bytes).unwrap();
        assert_eq!(kind_of(&at), Some(ErrorKind::Corrupt));
    }
    fs::write(&postings, &good).unwrap();
    assert_eq!(kind_of(&at), None);
    let meta = at.join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    for meta_text in [text.replace("ctx-memory 1", "ctx-memory 0"), "{".into(), "{}".into()] {
        fs::write(&meta, meta_text).unwrap();
        assert_eq!(kind_of(&at), Some(ErrorKind::Corrupt));
    }
    assert_eq!(snapshot(&DiskIndex::create(&at).unwrap()).pieces(), (0, 0));
}

#[test]
fn a_snapshot_outlives_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("index");
    let index = DiskIndex::open(&at).unwrap();
    write(&index, snapshot(&index).version(), 0..4);
    let snapshot = snapshot(&index);
    let before = scores(&[&snapshot]);
    fs::remove_dir_all(&at).unwrap();
    assert_eq!(scores(&[&snapshot]), before);
    assert!(!snapshot.is_damaged());
    let seen = snapshot.version();
    let lost = index.write(Batch::Small, seen, |sink| Piece::each(9, "", "dog", sink));
    assert!(lost.is_err(), "{lost:?}");
}
