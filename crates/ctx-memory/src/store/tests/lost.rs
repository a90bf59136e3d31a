//! Lost, leftover or unordered files, and their repair.

use super::*;
use ctx_search::vectors::Embedding;

fn settled(memory: &Memory) {
    while memory.inner.is_indexing.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

fn vectors_in(folder: &Path) -> VectorFile {
    let embedding = Embedding::new("hash", HashEmbedder.vector("").len());
    VectorFile::open(folder.join("vectors.bin"), embedding).unwrap()
}

#[test]
fn few_missing_hash_vectors_are_computed_at_once_and_many_by_a_thread() {
    let without = || {
        let mut settings = settings();
        settings.search.hash_weight = 0.0;
        settings
    };
    for count in [20, 600] {
        let folder = tempfile::tempdir().unwrap();
        let plain = Memory::open(folder.path(), without());
        plain.add(&some(0..count)).unwrap();
        plain.flush().unwrap();
        assert_eq!(plain.stats().unwrap().vectors, 0);
        let check = |damage: &str| {
            let memory = memory(folder.path());
            found(&memory, "apple");
            settled(&memory);
            assert_eq!(memory.stats().unwrap().vectors, count as usize, "{damage}");
            memory.flush().unwrap();
            assert_eq!(vectors_in(folder.path()).ids().len(), count as usize, "{damage}");
        };
        check("made without");
        let path = folder.path().join("vectors.bin");
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        check("deleted");
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        check("torn");
        fs::write(&path, "something else").unwrap();
        check("foreign");
    }
    let memory = Memory::in_memory(settings());
    memory.add(&some(0..10)).unwrap();
    memory.forget(&[some(3..4)[0].id].into()).unwrap();
    assert_eq!(memory.stats().unwrap().vectors, 9, "those of what stays are there");
}

#[test]
fn a_rebuild_computes_missing_hash_vectors() {
    let folder = tempfile::tempdir().unwrap();
    memory(folder.path()).add(&some(0..1)).unwrap();
    let first = memory(folder.path());
    first.add(&some(0..600)).unwrap();
    first.flush().unwrap();
    drop(first);
    fs::remove_file(folder.path().join("vectors.bin")).unwrap();
    let again = memory(folder.path());
    again.rebuild().unwrap();
    assert_eq!(vectors_in(folder.path()).ids().len(), 600);
}

#[test]
fn uncommitted_segments_keep_order_and_vectors_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..5)).unwrap();
    memory.flush().unwrap();
    let pending = some(5..45);
    memory.add(&pending).unwrap();
    memory.inner.indexer().reload(&memory.inner).unwrap();
    let ids = memory.inner.live().index.ids()[5..].to_vec();
    assert_eq!(ids, pending.iter().map(|segment| segment.id).collect::<Vec<_>>());
    let stats = memory.stats().unwrap();
    assert_eq!((stats.pending, stats.vectors), (40, 45));
    assert_eq!(memory.neighbours(pending[7].id).unwrap(), [pending[6].id, pending[8].id]);
}

#[test]
fn vectors_of_evicted_segments_are_removed_by_rewrites_and_by_forgetting() {
    let folder = tempfile::tempdir().unwrap();
    memory(folder.path()).flush().unwrap();
    let all = memory(folder.path());
    all.add(&some(0..700)).unwrap();
    all.flush().unwrap();
    drop(all);
    let mut settings = settings();
    settings.limits.max_segments = 300;
    let small = Memory::open(folder.path(), settings);
    small.add(&some(700..701)).unwrap();
    small.flush().unwrap();
    assert_eq!(vectors_in(folder.path()).ids().len(), 300);
    // A few more: too few for a rewrite, but removed when something is forgotten.
    small.add(&some(701..721)).unwrap();
    small.flush().unwrap();
    assert_eq!(vectors_in(folder.path()).ids().len(), 320);
    small.forget(&[some(710..711)[0].id].into()).unwrap();
    assert_eq!(vectors_in(folder.path()).ids().len(), 299);
    small.add(&some(721..731)).unwrap();
    small.flush().unwrap();
    small.forget(&HashSet::new()).unwrap();
    assert_eq!(vectors_in(folder.path()).ids().len(), 300);
}

#[test]
fn a_line_that_only_looks_like_a_segment_is_reported_once_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let first = memory(folder.path());
    let segments = some(0..20);
    first.add(&segments).unwrap();
    first.flush().unwrap();
    drop(first);
    let path = folder.path().join("segments.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let bad = serde_json::to_string(&segments[7].content).unwrap();
    fs::write(&path, text.replace(&format!("\"content\":{bad}"), "\"content\":5")).unwrap();
    let memory = memory(folder.path());
    assert_eq!(memory.stats().unwrap().segments, 19);
    assert!(memory.get(&[segments[7].id]).unwrap()[0].is_none());
    let told = memory.take_warnings();
    assert!(told.len() == 1 && told[0].contains("1 line "), "{told:?}");
    // It is not read again, so the file may be moved away.
    fs::rename(&path, folder.path().join("away")).unwrap();
    assert!(memory.get(&[segments[7].id]).unwrap()[0].is_none());
    assert!(!memory.neighbours(segments[6].id).unwrap().contains(&segments[7].id));
    fs::rename(folder.path().join("away"), &path).unwrap();
    assert_eq!(
        memory.add(std::slice::from_ref(&segments[7])).unwrap(),
        1,
        "said again, it is there"
    );
    memory.flush().unwrap();
    assert_eq!(memory.get(&[segments[7].id]).unwrap()[0].as_ref(), Some(&segments[7]));
    assert_eq!(self::memory(folder.path()).stats().unwrap().segments, 20);
}

#[test]
fn a_rebuilt_index_contains_segments_of_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (memory(folder.path()), memory(folder.path()));
    one.add(&some(0..50)).unwrap();
    one.flush().unwrap();
    two.add(&some(50..90)).unwrap();
    two.flush().unwrap();
    one.add(&some(90..100)).unwrap();
    one.flush().unwrap();
    // `two` does not know the last ten.
    two.rebuild().unwrap();
    let three = memory(folder.path());
    assert_eq!(three.stats().unwrap().stored_pieces, 100);
    assert_eq!(two.stats().unwrap().segments, 100);
}

#[test]
fn a_new_thread_starts_after_a_panic() {
    let is_indexing = AtomicBool::new(true);
    let panicked = std::panic::catch_unwind(|| {
        let _over = Over(&is_indexing);
        panic!("an index that is broken");
    });
    assert!(panicked.is_err() && !is_indexing.load(Ordering::Acquire));
}

/// Returns every file of a folder with its content.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn a_read_only_memory_changes_no_file_even_if_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let first = memory(folder.path());
    first.add(&some(0..4_200)).unwrap();
    first.flush().unwrap();
    first.settle().unwrap();
    settled(&first);
    drop(first);
    let (index, vectors) = (folder.path().join("lexical"), folder.path().join("vectors.bin"));
    let damages: [fn(&Path, &Path); 4] = [
        |_, _| {},
        |_, vectors| fs::remove_file(vectors).unwrap(),
        |index, _| fs::write(index.join("meta.json"), "damaged").unwrap(),
        |index, _| fs::remove_dir_all(index).unwrap(),
    ];
    for damage in damages {
        damage(&index, &vectors);
        let before = files(folder.path());
        let settings = MemorySettings { read_only: true, ..settings() };
        let memory = Memory::open(folder.path(), settings);
        assert_eq!(found(&memory, "apple").len(), 50);
        settled(&memory);
        memory.settle().unwrap();
        memory.flush().unwrap();
        assert_eq!(found(&memory, "apple").len(), 50);
        assert_eq!(memory.stats().unwrap().vectors, 4_200);
        assert_eq!(memory.add(&some(5_000..5_001)).unwrap(), 1);
        assert!(memory.flush().is_err() && memory.forget(&HashSet::new()).is_err());
        memory.rebuild().unwrap();
        assert_eq!(memory.stats().unwrap().segments, 4_201);
        drop(memory);
        assert_eq!(files(folder.path()), before);
    }
}

#[test]
fn foreign_files_in_place_of_the_index_stay_and_words_stay_in_memory() {
    let strange: [fn(&Path); 2] = [
        |at| fs::write(at, "precious").unwrap(),
        |at| {
            fs::create_dir(at).unwrap();
            fs::write(at.join("precious.txt"), "precious").unwrap();
        },
    ];
    for (strange, told) in
        strange.into_iter().zip(["remove ", "move files that are not of ctx out of "])
    {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("lexical");
        let memory = memory(folder.path());
        memory.add(&some(0..50)).unwrap();
        memory.flush().unwrap();
        memory.settle().unwrap();
        let before = found(&memory, "ember 4");
        drop(memory);
        fs::remove_dir_all(&at).unwrap();
        strange(&at);
        let memory = self::memory(folder.path());
        assert_eq!(found(&memory, "ember 4"), before);
        memory.settle().unwrap();
        assert_eq!(found(&memory, "ember 4"), before);
        let warnings = memory.take_warnings();
        assert!(warnings.len() == 1 && warnings[0].contains(told), "{warnings:?}");
        let error = memory.rebuild().unwrap_err();
        assert!(error.hint_text().is_some_and(|hint| hint.contains(told)), "{error}");
        // Forgetting still works.
        assert_eq!(memory.forget(&[before[0].0].into()).unwrap(), 1);
        assert!(found(&memory, "ember 4").iter().all(|(id, ..)| *id != before[0].0));
        let precious = if at.is_file() { at.clone() } else { at.join("precious.txt") };
        assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
        // Moved away, it does not interfere.
        fs::rename(&at, folder.path().join("elsewhere")).unwrap();
        memory.rebuild().unwrap();
        assert_eq!(memory.stats().unwrap().stored_pieces, 49);
    }
}

#[test]
fn rebuilding_an_index_keeps_the_files_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lexical");
    let memory = memory(folder.path());
    memory.add(&some(0..50)).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    fs::write(at.join("precious.txt"), "precious").unwrap();
    fs::write(at.join("0123456789abcdef0123456789abcdef.term"), "left over").unwrap();
    memory.rebuild().unwrap();
    assert_eq!(memory.stats().unwrap().stored_pieces, 50);
    assert_eq!(fs::read_to_string(at.join("precious.txt")).unwrap(), "precious");
    assert!(!at.join("0123456789abcdef0123456789abcdef.term").exists());
}
