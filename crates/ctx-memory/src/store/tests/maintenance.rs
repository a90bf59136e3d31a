//! Stores that are written, damaged, shared and forgotten.

use super::*;

#[test]
fn added_segments_are_found_at_once_and_after_a_restart() {
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
    // In two parts, and opened again.
    memory.add(&some(300..400)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "apple cloud 17");
    memory.settle().unwrap();
    assert_eq!(found(&memory, "apple cloud 17"), before);
    assert_eq!(found(&self::memory(folder.path()), "apple cloud 17"), before);
}

#[test]
fn the_index_is_written_automatically_after_many_additions() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..BATCH as i64)).unwrap();
    while memory.inner.is_indexing.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!(memory.stats().unwrap().stored_pieces, BATCH);
}

#[test]
fn a_deleted_or_damaged_index_is_rebuilt_and_reported_once() {
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
    // Damage while it is closed: missing, of another version, truncated, and not an index at all.
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
    for (damage, warnings) in damages.into_iter().zip([0, 1, 1, 1]) {
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
fn two_memories_on_one_store_lose_nothing_and_see_each_other() {
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
    // Both write the same segments.
    one.settle().unwrap();
    two.settle().unwrap();
    one.settle().unwrap();
    for memory in [&one, &two, &memory(folder.path())] {
        assert_eq!(memory.stats().unwrap().stored_pieces, 60);
        assert_eq!(found(memory, "note 25"), found(&one, "note 25"));
    }
}

#[test]
fn forgotten_text_is_removed_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.search.hash_weight = 0.5;
    let memory = Memory::open(folder.path(), settings);
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
fn the_oldest_segments_are_evicted_above_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.limits.max_segments = 10;
    for memory in [Memory::open(folder.path(), settings.clone()), Memory::in_memory(settings)] {
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
fn a_repeated_message_is_one_segment_and_a_huge_one_is_found() {
    let memory = Memory::in_memory(settings());
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
fn segments_that_cannot_be_written_are_kept_and_written_later() {
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
fn hits_can_be_read_while_the_archive_is_locked_and_after_a_rewrite() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = settings();
    limits.limits.max_segments = 300;
    let memory = Memory::open(folder.path(), limits);
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
fn hash_vectors_are_computed_only_if_they_have_a_weight() {
    let folder = tempfile::tempdir().unwrap();
    let mut without = settings();
    without.search.hash_weight = 0.0;
    let plain = Memory::open(folder.path().join("a"), without);
    plain.add(&some(0..10)).unwrap();
    plain.flush().unwrap();
    assert_eq!((plain.stats().unwrap().vectors, plain.stats().unwrap().vector_bytes), (0, 0));
    let mut with = settings();
    with.search = SearchSettings { hash_weight: 0.7, spread: 0.0, ..SearchSettings::default() };
    let at = folder.path().join("b");
    let memory = Memory::open(&at, with.clone());
    memory.add(&some(0..10)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "ember 4");
    let again = Memory::open(&at, with);
    assert_eq!(found(&again, "ember 4"), before);
    assert_eq!(again.stats().unwrap().vectors, 10);
}

/// A store with more segments than are read when it is opened, with its index.
fn large(folder: &Path) -> Vec<Segment> {
    let memory = memory(folder);
    let segments = some(0..4_200);
    memory.add(&segments).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    segments
}

#[test]
fn forgetting_nothing_keeps_index_vectors_and_archive_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path());
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let (before, index) = (bytes("segments.jsonl"), bytes("lexical/meta.json"));
    fs::write(folder.path().join("vectors.bin"), "of a model").unwrap();
    fs::write(folder.path().join("segments.jsonl.torn-1"), "what was torn").unwrap();
    let memory = memory(folder.path());
    assert_eq!(memory.forget(&HashSet::new()).unwrap(), 0);
    assert_eq!((bytes("segments.jsonl"), bytes("lexical/meta.json")), (before, index));
    assert_eq!(bytes("vectors.bin"), b"of a model");
    assert!(!folder.path().join("segments.jsonl.torn-1").exists(), "a run that was killed left it");
    let again = self::memory(folder.path());
    assert_eq!((again.wordless().unwrap(), found(&again, "apple").len()), (0, 50));
}

#[test]
fn index_data_of_removed_segments_is_deleted_even_if_no_id_is_given() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path());
    let limits = ArchiveLimits { eviction_days: 0, max_segments: 4_100 };
    let small = Memory::open(folder.path(), MemorySettings { limits, ..MemorySettings::default() });
    assert_eq!(small.stats().unwrap().segments, 4_100);
    small.forget(&HashSet::new()).unwrap();
    small.settle().unwrap();
    assert_eq!(small.stats().unwrap().stored_pieces, 4_100);
    let text = fs::read_to_string(folder.path().join("segments.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 4_100, "lines of what was let go are gone");
}

#[test]
fn a_large_store_can_be_searched_after_forgetting_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let segments = large(folder.path());
    let memory = memory(folder.path());
    assert_eq!(memory.forget(&[segments[7].id].into()).unwrap(), 1);
    memory.settle().unwrap();
    assert_eq!(found(&self::memory(folder.path()), "apple").len(), 50);
    // As if the process had been killed before.
    drop(memory);
    fs::remove_dir_all(folder.path().join("lexical")).unwrap();
    let again = self::memory(folder.path());
    assert_eq!(again.wordless().unwrap(), 4_199);
    assert!(found(&again, "apple").is_empty());
    assert!(again.take_warnings()[0].contains(
        "the lexical index is being rebuilt: older messages are not found until it is ready"
    ));
    while again.inner.is_indexing.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!((found(&again, "apple").len(), again.wordless().unwrap()), (50, 0));
}

#[test]
fn only_forgotten_vectors_of_an_unused_model_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let segments = some(0..3);
    let memory = memory(folder.path());
    memory.add(&segments).unwrap();
    memory.flush().unwrap();
    let of_model = || {
        let path = folder.path().join("vectors.bin");
        VectorFile::open(path, ctx_search::vectors::Embedding::new("model", 2)).unwrap()
    };
    let mut file = of_model();
    for segment in &segments {
        file.add(segment.id, &[1.0, 0.5]).unwrap();
    }
    file.commit().unwrap();
    memory.forget(&[segments[1].id].into()).unwrap();
    let left: Vec<_> = of_model().iter().map(|(id, _)| id).collect();
    assert_eq!(left, [segments[0].id, segments[2].id]);
}
