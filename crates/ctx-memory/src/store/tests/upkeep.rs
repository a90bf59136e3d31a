//! What becomes of a store: written, damaged, shared, forgotten.

use super::*;

#[test]
fn what_was_added_is_found_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("memory/context");
    let memory = memory(&at);
    assert!(found(&memory, "apple").is_empty());
    assert!(!at.exists(), "looking creates nothing");
    let segments = some(0..20);
    assert_eq!(memory.add(&segments).unwrap(), 20);
    assert_eq!(memory.add(&segments).unwrap(), 0);
    let before = found(&memory, "apple 7");
    assert!(before.len() > 3 && memory.get(&[segments[7].id]).unwrap()[0].is_some());
    assert_eq!(memory.stats().unwrap().pending, 20);
    memory.flush().unwrap();
    assert_eq!(memory.stats().unwrap().pending, 0);
    let again = self::memory(&at);
    assert_eq!(found(&again, "apple 7"), before);
    assert_eq!(again.get(&[segments[7].id]).unwrap()[0].as_ref(), Some(&segments[7]));
    let next = again.neighbours(segments[7].id).unwrap();
    assert_eq!(next, [segments[6].id, segments[8].id]);
    assert!(again.take_warnings().is_empty());
}

#[test]
fn scores_are_the_same_before_while_and_after_the_index_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..300)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "apple cloud 17");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| memory.settle());
        while !writer.is_finished() {
            assert_eq!(found(&memory, "apple cloud 17"), before);
        }
    });
    assert_eq!(found(&memory, "apple cloud 17"), before);
    let stats = memory.stats().unwrap();
    assert_eq!((stats.stored_pieces, stats.new_pieces), (300, 0));
    // In two parts, and read anew.
    memory.add(&some(300..400)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "apple cloud 17");
    memory.settle().unwrap();
    assert_eq!(found(&memory, "apple cloud 17"), before);
    assert_eq!(found(&self::memory(folder.path()), "apple cloud 17"), before);
}

#[test]
fn the_index_is_written_by_itself_when_much_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..BATCH as i64)).unwrap();
    while memory.inner.is_indexing.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!(memory.stats().unwrap().stored_pieces, BATCH);
}

#[test]
fn an_index_that_is_deleted_or_damaged_is_made_anew_and_that_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lexical");
    let memory = memory(folder.path());
    memory.add(&some(0..100)).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    let before = found(&memory, "ember 4");
    // While it is open.
    fs::remove_dir_all(&at).unwrap();
    assert_eq!(found(&memory, "ember 4"), before);
    memory.settle().unwrap();
    assert_eq!(found(&memory, "ember 4"), before);
    assert_eq!(memory.take_warnings().len(), 1);
    assert_eq!(memory.stats().unwrap().stored_pieces, 100);
    drop(memory);
    // While nobody looks: without it, of another version, cut, and not an index at all.
    let damages: [fn(&Path); 4] = [
        |at| fs::remove_dir_all(at).unwrap(),
        |at| {
            let meta = at.join("meta.json");
            let text = fs::read_to_string(&meta).unwrap();
            fs::write(&meta, text.replace("ctx-memory 1", "ctx-memory 0")).unwrap();
        },
        |at| {
            for file in fs::read_dir(at).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|e| e == "term") {
                    fs::write(file, "cut").unwrap();
                }
            }
        },
        |at| {
            fs::remove_dir_all(at).unwrap();
            fs::write(at, "a file").unwrap();
        },
    ];
    for (damage, warnings) in damages.into_iter().zip([0, 1, 1, 2]) {
        damage(&at);
        let memory = self::memory(folder.path());
        assert_eq!(found(&memory, "ember 4"), before);
        assert_eq!(memory.take_warnings().len(), warnings);
        if !at.is_file() {
            memory.settle().unwrap();
            assert_eq!(found(&memory, "ember 4"), before);
            assert_eq!(memory.stats().unwrap().stored_pieces, 100);
        }
    }
}

#[test]
fn two_on_one_store_lose_nothing_and_find_what_the_other_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (memory(folder.path()), memory(folder.path()));
    let segments = some(0..60);
    one.add(&segments[..30]).unwrap();
    two.add(&segments[20..]).unwrap();
    for memory in [&one, &two, &one] {
        memory.flush().unwrap();
    }
    let all = found(&memory(folder.path()), "note").len();
    assert_eq!((all, one.stats().unwrap().segments, two.stats().unwrap().segments), (50, 60, 60));
    // Both write what both have.
    one.settle().unwrap();
    two.settle().unwrap();
    one.settle().unwrap();
    for memory in [&one, &two, &memory(folder.path())] {
        assert_eq!(memory.stats().unwrap().stored_pieces, 60);
        assert_eq!(found(memory, "note 25"), found(&one, "note 25"));
    }
}

#[test]
fn nothing_of_what_is_forgotten_stays_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.search.hash_weight = 0.5;
    let memory = Memory::open(folder.path(), "main", settings);
    memory.add(&some(0..50)).unwrap();
    let secret = segment("s", 99, "the xylophone is under the stairs");
    memory.add(std::slice::from_ref(&secret)).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    assert!(on_disk(folder.path(), b"xylophon"));
    let ids = HashSet::from([secret.id, SegmentId::of("s", &Role::User, "nobody said this")]);
    assert_eq!(memory.forget(&ids).unwrap(), 1);
    memory.settle().unwrap();
    assert!(!on_disk(folder.path(), b"xylophon") && found(&memory, "xylophone").len() != 51);
    assert!(memory.get(&[secret.id]).unwrap()[0].is_none());
    let stats = memory.stats().unwrap();
    assert_eq!((stats.segments, stats.stored_pieces, stats.vectors), (50, 50, 50));
}

fn on_disk(folder: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return on_disk(&path, wanted);
        }
        fs::read(&path).unwrap().windows(wanted.len()).any(|window| window == wanted)
    })
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.limits.max_segments = 10;
    for memory in
        [Memory::open(folder.path(), "main", settings.clone()), Memory::in_memory("main", settings)]
    {
        let segments = some(0..25);
        memory.add(&segments).unwrap();
        memory.flush().unwrap();
        assert_eq!(memory.stats().unwrap().segments, 10);
        assert_eq!(found(&memory, "note").len(), 10);
        let [old, new] = [segments[3].id, segments[20].id].map(|id| memory.get(&[id]).unwrap());
        assert!(old[0].is_none() && new[0].is_some());
        assert!(memory.neighbours(segments[15].id).unwrap().len() == 1);
    }
}

#[test]
fn the_same_said_ten_thousand_times_is_one_segment_and_a_huge_one_is_found() {
    let memory = Memory::in_memory("main", settings());
    let same = vec![segment("s", 0, "again and again"); 10_000];
    assert_eq!(memory.add(&same).unwrap(), 1);
    let huge = segment("s", 1, &format!("{}\nneedle", "hay stack ".repeat(200_000)));
    memory.add(std::slice::from_ref(&huge)).unwrap();
    assert_eq!(found(&memory, "needle")[0].0, huge.id);
    assert_eq!(
        memory.add(&[segment("s", 2, "<recalled-context>x"), segment("s", 3, " ")]).unwrap(),
        0
    );
}

#[test]
fn what_cannot_be_written_is_kept_and_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("context");
    let memory = memory(&at);
    memory.add(&some(0..5)).unwrap();
    fs::write(&at, "a file in the way").unwrap();
    assert!(memory.flush().is_err());
    assert_eq!((found(&memory, "note").len(), memory.stats().unwrap().pending), (5, 5));
    fs::remove_file(&at).unwrap();
    memory.flush().unwrap();
    assert_eq!(found(&self::memory(&at), "note").len(), 5);
}

#[test]
fn what_is_found_can_be_read_while_another_holds_the_archive_and_after_it_was_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = settings();
    limits.limits.max_segments = 300;
    let memory = Memory::open(folder.path(), "main", limits);
    let segments = some(0..700);
    memory.add(&segments[..100]).unwrap();
    memory.flush().unwrap();
    let source = memory.inner.opened().unwrap();
    assert_eq!(memory.get(&[segments[7].id]).unwrap()[0].as_ref(), Some(&segments[7]));
    assert!(!found(&memory, "apple").is_empty());
    drop(source);
    memory.add(&segments[100..]).unwrap();
    memory.flush().unwrap();
    let last = &segments[500..];
    let ids: Vec<_> = last.iter().map(|segment| segment.id).collect();
    let read: Vec<_> = memory.get(&ids).unwrap().into_iter().flatten().collect();
    assert_eq!(read, last);
}

#[test]
fn hashes_are_made_where_they_count_and_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let plain = memory(&folder.path().join("a"));
    plain.add(&some(0..10)).unwrap();
    plain.flush().unwrap();
    assert_eq!((plain.stats().unwrap().vectors, plain.stats().unwrap().vector_bytes), (0, 0));
    let mut with = settings();
    with.search = SearchSettings { hash_weight: 0.7, spread: 0.0, ..SearchSettings::default() };
    let at = folder.path().join("b");
    let memory = Memory::open(&at, "main", with.clone());
    memory.add(&some(0..10)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "ember 4");
    let again = Memory::open(&at, "main", with);
    assert_eq!(found(&again, "ember 4"), before);
    assert_eq!(again.stats().unwrap().vectors, 10);
}
