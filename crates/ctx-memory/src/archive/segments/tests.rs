use std::fs::File;
use std::io::Write;

use ctx_core::{Counter, Entry, Message, Role};

use super::super::maintenance::DAY;
use super::*;
use crate::archive::{AddOutcome, SegmentMaker};
use ctx_search::Metadata;

mod kept;
mod killed;

const NOW: Timestamp = Timestamp(1_770_000_000_000);

impl Segments {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&mut self, segment: &Segment) -> Result<bool> {
        Ok(self.insert(segment)? == AddOutcome::New)
    }
}

struct House {
    dir: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("memory/context/segments.jsonl")
    }

    fn open(&self) -> Segments {
        self.open_with(ArchiveLimits::default())
    }

    fn open_with(&self, limits: ArchiveLimits) -> Segments {
        Segments::open(self.path(), limits, NOW).unwrap()
    }

    fn write(&self, bytes: &[u8]) {
        File::options().append(true).open(self.path()).unwrap().write_all(bytes).unwrap();
    }

    fn beside(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.path().parent().unwrap()).unwrap();
        let mut names: Vec<_> =
            folder.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn segment(nth: i64, content: &str) -> Segment {
    Segment {
        id: SegmentId::of("s", &Role::User, content),
        agent_id: "main".into(),
        session_id: "s".into(),
        timestamp: Timestamp(NOW.0 - 1_000_000 + nth),
        archived_at: None,
        role: Role::User,
        name: None,
        content: content.into(),
        tokens: 1,
        metadata: Metadata::default(),
        entry_id: None,
    }
}

fn store(segments: &mut Segments, contents: impl IntoIterator<Item = String>) -> Changes {
    for (nth, content) in contents.into_iter().enumerate() {
        segments.add(&segment(nth as i64, &content)).unwrap();
    }
    segments.commit(NOW).unwrap()
}

fn contents(segments: &mut Segments) -> Vec<String> {
    segments.refresh().unwrap();
    let ids: Vec<_> = segments.rows().map(|row| row.id).collect();
    let one = |id| segments.get(&[id]).unwrap().remove(0).unwrap().content;
    let all: Vec<_> = ids.iter().copied().map(one).collect();
    let got = segments.get(&ids).unwrap();
    let got: Vec<_> = got.into_iter().map(|segment| segment.unwrap().content).collect();
    assert_eq!(got, all, "one by one as in a row");
    all
}

fn numbers(range: std::ops::Range<i64>) -> impl Iterator<Item = String> {
    range.map(|nth| format!("said {nth}"))
}

#[test]
fn opening_creates_no_file_and_finds_committed_segments() {
    let house = House::new();
    let mut segments = house.open();
    assert!(!house.path().exists() && segments.is_empty());
    assert!(segments.add(&segment(0, "a")).unwrap());
    assert!(!house.path().exists(), "nothing is written before a commit");
    let changes = segments.commit(NOW).unwrap();
    assert_eq!((changes.added.len(), segments.len()), (1, 1));
    assert_eq!(segments.commit(NOW).unwrap(), Changes::default());
    store(&mut segments, numbers(0..5));
    let mut again = house.open();
    assert_eq!(again.len(), 6);
    assert_eq!(contents(&mut again), contents(&mut segments));
    assert_eq!(again.rows().find(|row| row.id == segment(0, "a").id).unwrap().session, "s");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |p: &std::path::Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&house.path()), mode(house.path().parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn a_segment_is_stored_once_and_recalled_text_never() {
    let house = House::new();
    let mut segments = house.open();
    for _ in 0..10_000 {
        segments.add(&segment(0, "again")).unwrap();
    }
    assert_eq!(segments.pending.len(), 1);
    assert!(!segments.add(&segment(0, "x <recalled-context source=\"m\"> y")).unwrap());
    assert!(!segments.add(&segment(0, " \n")).unwrap());
    segments.commit(NOW).unwrap();
    assert!(!segments.add(&segment(0, "again")).unwrap());
    let line = std::fs::read(house.path()).unwrap();
    house.write(&line);
    let again = house.open();
    assert_eq!((again.len(), again.damage.duplicates), (1, 1));
}

#[test]
fn two_writers_of_one_archive_find_all_segments() {
    let house = House::new();
    let (mut one, mut two) = (house.open(), house.open());
    store(&mut one, numbers(0..3));
    let changes = store(&mut two, numbers(2..5));
    assert_eq!(changes.added.len(), 5, "what the other wrote is told of as well");
    assert_eq!(one.refresh().unwrap().added.len(), 2);
    assert_eq!(contents(&mut one), numbers(0..5).collect::<Vec<_>>());
    assert_eq!(contents(&mut two), contents(&mut one));
}

#[test]
fn many_threads_writing_at_once_lose_nothing() {
    let house = House::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let house = &house;
            scope.spawn(move || {
                let mut segments =
                    house.open_with(ArchiveLimits { max_segments: 1_000, eviction_days: 0 });
                for round in 0..20 {
                    store(&mut segments, [format!("{writer} {round}"), format!("shared {round}")]);
                }
            });
        }
    });
    let mut segments = house.open();
    assert_eq!(segments.len(), 100);
    assert_eq!(segments.damage, Damage::default());
    assert_eq!(contents(&mut segments).len(), 100);
}

#[test]
fn a_torn_last_line_is_moved_and_the_next_line_is_complete() {
    let house = House::new();
    let mut segments = house.open();
    store(&mut segments, numbers(0..2));
    house.write(br#"{"id":"torn"#);
    assert_eq!(house.open().len(), 2, "who only reads leaves it: somebody may be writing it");
    store(&mut segments, numbers(2..3));
    assert_eq!(contents(&mut segments), numbers(0..3).collect::<Vec<_>>());
    let torn = &segments.damage.torn[0];
    assert_eq!(std::fs::read(torn).unwrap(), br#"{"id":"torn"#);
    assert_eq!(house.open().damage, Damage::default());
}

#[test]
fn a_complete_last_line_without_a_line_break_counts() {
    let house = House::new();
    let mut segments = house.open();
    store(&mut segments, numbers(0..1));
    house.write(&serde_json::to_vec(&segment(1, "said 1")).unwrap());
    store(&mut segments, numbers(2..3));
    assert_eq!(contents(&mut segments), numbers(0..3).collect::<Vec<_>>());
    assert_eq!(contents(&mut house.open()), numbers(0..3).collect::<Vec<_>>());
}

#[test]
fn lines_that_cannot_be_read_are_skipped_counted_and_kept() {
    let house = House::new();
    let mut segments = house.open();
    store(&mut segments, numbers(0..2));
    house.write(b"{\"id\":3}\n\n\xff\xfe\n[]\n");
    store(&mut segments, numbers(2..3));
    let mut again = house.open_with(ArchiveLimits { max_segments: 2, eviction_days: 0 });
    assert_eq!((again.len(), again.damage.unreadable), (2, 3));
    // More dead lines than allowed: the file is rewritten.
    store(&mut again, numbers(10..400));
    assert_eq!((again.len(), contents(&mut again).len()), (2, 2));
    let kept = std::fs::read(again.file.unreadable()).unwrap();
    assert_eq!(kept, b"{\"id\":3}\n\xff\xfe\n[]\n", "but for the empty one");
}

#[test]
fn the_oldest_segments_are_evicted_without_a_rewrite_for_each() {
    let house = House::new();
    let mut segments = house.open_with(ArchiveLimits { max_segments: 10, eviction_days: 0 });
    let changes = store(&mut segments, numbers(0..15));
    assert_eq!((changes.removed.len(), segments.len()), (5, 10));
    assert_eq!(contents(&mut segments), numbers(5..15).collect::<Vec<_>>());
    assert_eq!(std::fs::read_to_string(house.path()).unwrap().lines().count(), 15);
    assert_eq!(house.open_with(ArchiveLimits { max_segments: 10, eviction_days: 0 }).len(), 10);
    // One that is older than all others is evicted first, wherever its line is.
    segments.add(&segment(-100, "late to come")).unwrap();
    let changes = segments.commit(NOW).unwrap();
    assert_eq!(changes.removed, [segment(0, "late to come").id]);
    for nth in 0..300 {
        segments.add(&segment(1_000 + nth, &format!("more {nth}"))).unwrap();
        segments.commit(NOW).unwrap();
    }
    let lines = std::fs::read_to_string(house.path()).unwrap().lines().count();
    assert!((10..10 + SLACK).contains(&lines), "{lines}");
    assert_eq!(contents(&mut segments).len(), 10);
}

#[test]
fn segments_beyond_the_age_limit_are_evicted() {
    let house = House::new();
    let mut segments = house.open();
    store(&mut segments, numbers(0..3));
    let later = Timestamp(NOW.0 + 91 * DAY);
    assert_eq!(segments.commit(later).unwrap().removed.len(), 3);
    let forever = ArchiveLimits { eviction_days: 0, ..ArchiveLimits::default() };
    assert_eq!(Segments::open(house.path(), forever, later).unwrap().len(), 3);
}

#[test]
fn the_age_of_an_old_message_counts_from_its_archiving() {
    let house = House::new();
    let maker = SegmentMaker::new("main", "s", Counter::default());
    let said = |days: i64| {
        let mut message = Message::text(Role::User, format!("said {days} days ago"));
        message.meta.timestamp = Some(Timestamp(NOW.0 - days * DAY));
        maker.of_entry(&Entry::in_memory(days.to_string(), message), NOW).unwrap().unwrap()
    };
    let mut segments = house.open();
    for days in [0, 60, 365] {
        segments.add(&said(days)).unwrap();
    }
    let changes = segments.commit(NOW).unwrap();
    assert_eq!((changes.removed.len(), segments.len()), (0, 3));
    assert_eq!(said(0).archived_at, None, "most are archived on the day they are said");
    let then = |days: i64| {
        Segments::open(house.path(), ArchiveLimits::default(), Timestamp(NOW.0 + days * DAY))
            .unwrap()
    };
    assert_eq!((then(89).len(), then(91).len()), (3, 0));
}

#[test]
fn forgotten_segments_are_removed_from_the_disk() {
    let house = House::new();
    let (mut segments, mut other) = (house.open(), house.open());
    store(&mut segments, numbers(0..4));
    other.refresh().unwrap();
    house.write(b"said 2, damaged\n{\"said 2, torn");
    let ids = HashSet::from([segment(0, "said 2").id, segment(0, "never said").id]);
    assert_eq!(segments.forget(&ids).unwrap(), 1);
    assert_eq!(contents(&mut segments), ["said 0", "said 1", "said 3"]);
    for name in house.beside() {
        let text = std::fs::read_to_string(house.path().with_file_name(&name)).unwrap();
        assert!(!text.contains("said 2"), "{name}");
    }
    let files = ["segments.jsonl", "segments.jsonl.forgotten", "segments.jsonl.lock"];
    assert_eq!(house.beside(), files);
    // A process that has the file open finds the new offsets.
    assert_eq!(
        other.get(&[segment(0, "said 3").id]).unwrap()[0].as_ref().unwrap().content,
        "said 3"
    );
    assert_eq!(other.refresh().unwrap().removed, [segment(0, "said 2").id]);
    store(&mut other, numbers(7..8));
    assert_eq!(contents(&mut segments), ["said 0", "said 1", "said 3", "said 7"]);
}

#[test]
fn no_process_adds_a_forgotten_segment_again() {
    let house = House::new();
    let (mut segments, mut other) = (house.open(), house.open());
    store(&mut segments, numbers(0..3));
    other.refresh().unwrap();
    // It waits in another process while it is forgotten.
    assert!(other.add(&segment(5, "said 5")).unwrap());
    let ids = ["said 1", "said 5"].map(|text| segment(0, text).id);
    segments.forget(&HashSet::from(ids)).unwrap();
    assert_eq!(segments.insert(&segment(1, "said 1")).unwrap(), AddOutcome::Forgotten);
    assert!(other.commit(NOW).unwrap().removed.contains(&ids[1]));
    assert_eq!(contents(&mut other), ["said 0", "said 2"]);
    // A crash tore the last id. The ids before it and the ids added next count.
    let noted = house.path().with_file_name("segments.jsonl.forgotten");
    let text = std::fs::read_to_string(&noted).unwrap();
    assert!(!text.contains("said") && text.lines().count() == 2, "{text}");
    File::options().append(true).open(&noted).unwrap().write_all(b"0ec39323-").unwrap();
    let mut again = house.open();
    assert_eq!(again.forget(&HashSet::from([segment(0, "said 0").id])).unwrap(), 1);
    let mut again = house.open();
    for text in ["said 0", "said 1", "said 5"] {
        assert!(!again.add(&segment(0, text)).unwrap(), "{text}");
    }
    assert_eq!(again.insert(&segment(2, "said 2")).unwrap(), AddOutcome::Duplicate);
    assert_eq!(again.insert(&segment(6, "said 6")).unwrap(), AddOutcome::New);
    assert_eq!(again.insert(&segment(6, " ")).unwrap(), AddOutcome::Empty);
}

#[test]
fn the_oldest_of_segments_archived_together_is_evicted_first() {
    let house = House::new();
    let mut segments = house.open_with(ArchiveLimits { max_segments: 2, eviction_days: 0 });
    for (nth, text) in [(3, "newest"), (1, "oldest"), (2, "middle")] {
        segments.add(&Segment { archived_at: Some(NOW), ..segment(nth, text) }).unwrap();
    }
    segments.commit(NOW).unwrap();
    assert_eq!(contents(&mut segments), ["newest", "middle"]);
}

#[test]
fn a_file_that_was_edited_or_deleted_is_read_again() {
    let house = House::new();
    let mut segments = house.open();
    store(&mut segments, numbers(0..3));
    let text = std::fs::read_to_string(house.path()).unwrap();
    let rest: Vec<_> = text.lines().skip(1).collect();
    std::fs::write(house.path(), format!("{}\n", rest.join("\n"))).unwrap();
    let ids = [segment(0, "said 0").id, segment(0, "said 1").id];
    let found = segments.get(&ids).unwrap();
    assert_eq!(found[0], None);
    assert_eq!(found[1].as_ref().unwrap().content, "said 1");
    std::fs::remove_file(house.path()).unwrap();
    assert_eq!(segments.refresh().unwrap().removed.len(), 3);
    store(&mut segments, numbers(0..1));
    assert_eq!(contents(&mut house.open()), ["said 0"]);
}

#[test]
fn segments_that_could_not_be_written_wait_for_the_next_commit() {
    let house = House::new();
    let mut segments = house.open();
    std::fs::create_dir_all(house.path()).unwrap();
    segments.add(&segment(0, "patient")).unwrap();
    let error = segments.commit(NOW).unwrap_err();
    assert!(error.to_string().contains("segments.jsonl") && error.hint_text().is_some(), "{error}");
    assert_eq!(segments.pending.len(), 1);
    std::fs::remove_dir(house.path()).unwrap();
    assert_eq!(segments.commit(NOW).unwrap().added.len(), 1);
    assert_eq!(contents(&mut house.open()), ["patient"]);
}

#[test]
fn a_segment_of_fifty_megabytes_is_stored_as_it_is() {
    let house = House::new();
    let mut segments = house.open();
    let long = "0123456789".repeat(5 << 20);
    store(&mut segments, [long.clone(), "short".to_owned()]);
    assert_eq!(contents(&mut house.open()), [long, "short".to_owned()]);
}
