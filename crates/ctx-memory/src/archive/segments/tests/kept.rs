//! The rows that are kept for the next start.

use super::*;
use crate::disk;

const MANY: i64 = 9_000;

impl House {
    fn rows(&self) -> PathBuf {
        disk::beside(&self.path(), ".rows")
    }

    /// An archive with unreadable and repeated lines, whose rows are kept.
    fn kept() -> Self {
        let house = Self::new();
        store(&mut house.open(), numbers(0..MANY));
        let line = serde_json::to_string(&segment(3, "said 3")).unwrap();
        house.write(format!("not a segment\n{line}\n").as_bytes());
        let named = Segment {
            name: Some("Ann".into()),
            session_id: "other".into(),
            role: Role::ToolResult,
            metadata: Metadata { call: Some("read a.rs".into()) },
            ..segment(MANY, "by a tool")
        };
        let mut segments = house.open();
        segments.add(&named).unwrap();
        segments.commit(NOW).unwrap();
        let mut segments = house.open();
        assert_eq!((segments.kept, house.rows().exists()), (0, false));
        segments.keep_rows().unwrap();
        assert_eq!(segments.kept, MANY as usize + 1);
        house
    }
}

fn shown(segments: &Segments) -> Vec<String> {
    segments.rows().map(|row| format!("{row:?}")).collect()
}

#[test]
fn kept_rows_are_those_of_the_archive() {
    let house = House::kept();
    let mut kept = house.open();
    std::fs::remove_file(house.rows()).unwrap();
    let mut read = house.open();
    assert_eq!((kept.kept, read.kept), (MANY as usize + 1, 0));
    assert_eq!((shown(&kept), &kept.damage), (shown(&read), &read.damage));
    assert_eq!((kept.dead, &kept.unreadable), (read.dead, &read.unreadable));
    assert_eq!((kept.damage.unreadable, kept.damage.duplicates), (1, 1));
    assert_eq!(contents(&mut kept), contents(&mut read));
    assert_eq!(kept.ages.into_sorted_vec(), read.ages.into_sorted_vec());
}

#[test]
fn newer_lines_are_read_and_rows_are_kept_again_when_there_are_many() {
    let house = House::kept();
    store(&mut house.open(), numbers(MANY..MANY + 10));
    let mut segments = house.open();
    assert_eq!((segments.kept, segments.len()), (MANY as usize + 1, MANY as usize + 11));
    segments.keep_rows().unwrap();
    assert_eq!(segments.kept, MANY as usize + 1, "ten are few");
    store(&mut segments, numbers(MANY + 10..2 * MANY));
    let mut segments = house.open();
    segments.keep_rows().unwrap();
    assert_eq!(house.open().kept, 2 * MANY as usize + 1);
    let limits = ArchiveLimits { max_segments: 100, ..ArchiveLimits::default() };
    assert_eq!(house.open_with(limits).len(), 100);
}

#[test]
fn damaged_rows_are_not_used() {
    let house = House::kept();
    let sound = std::fs::read(house.rows()).unwrap();
    let expected = shown(&house.open());
    let flipped = [0, 8, 13, 40, sound.len() / 2, sound.len() - 1].map(|at| {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        bytes
    });
    let cut = [0, 7, 15, 100, sound.len() - 1].map(|end| sound[..end].to_vec());
    for (n, bytes) in flipped.into_iter().chain(cut).enumerate() {
        std::fs::write(house.rows(), bytes).unwrap();
        let segments = house.open();
        assert_eq!((segments.kept, shown(&segments)), (0, expected.clone()), "{n}");
    }
}

#[test]
fn rows_of_an_archive_that_was_rewritten_are_deleted_or_not_used() {
    let house = House::kept();
    let old = std::fs::read(house.rows()).unwrap();
    let mut segments = house.open();
    assert_eq!(segments.forget(&HashSet::from([segment(5, "said 5").id])).unwrap(), 1);
    assert!(!house.rows().exists());
    std::fs::write(house.rows(), old).unwrap();
    let reopened = house.open();
    assert_eq!((reopened.kept, shown(&reopened)), (0, shown(&segments)));
}
