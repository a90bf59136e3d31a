//! Rows and vectors that are kept for the next start.

use super::*;

const MANY: i64 = 9_000;

/// Long segments: for short ones, vectors of hashed words do not count.
fn long(range: std::ops::Range<i64>) -> Vec<Segment> {
    let text = |n: i64| format!("{} {}", some(n..n + 1)[0].content, "and so on, ".repeat(60));
    range.map(|n| segment("s", n, &text(n))).collect()
}

fn settings_of_many() -> MemorySettings {
    let mut settings = settings();
    settings.limits.max_segments = 100_000;
    settings
}

fn files(folder: &Path) -> [bool; 2] {
    ["segments.jsonl.rows", "vectors.bin.near"].map(|name| folder.join(name).exists())
}

#[test]
fn a_start_with_kept_rows_and_vectors_finds_what_another_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Memory::open(folder.path(), settings_of_many());
    let first = open();
    first.add(&long(0..MANY)).unwrap();
    first.flush().unwrap();
    first.settle().unwrap();
    assert_eq!(files(folder.path()), [false; 2]);
    drop(first);
    let reads_all = open();
    let expected = found(&reads_all, "apple note 17 ember");
    assert!(expected.len() > 20);
    assert_eq!(files(folder.path()), [true; 2]);
    let check = |memory: Memory| {
        assert_eq!(found(&memory, "apple note 17 ember"), expected);
        assert_eq!(memory.stats().unwrap().vectors, MANY as usize);
        assert_eq!(memory.take_warnings(), Vec::<String>::new());
    };
    check(open());
    check(Memory::open(folder.path(), MemorySettings { read_only: true, ..settings_of_many() }));
    for name in ["segments.jsonl.rows", "vectors.bin.near"] {
        let path = folder.path().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        check(open());
        assert_eq!(fs::read(&path).unwrap().len(), bytes.len(), "it is kept again");
    }
    // Newer ones are read from the archive and its vectors.
    let memory = open();
    memory.add(&long(MANY..MANY + 5)).unwrap();
    memory.flush().unwrap();
    let memory = open();
    assert_eq!(memory.stats().unwrap().vectors, MANY as usize + 5);
    let gone: HashSet<_> = long(3..4).iter().map(|segment| segment.id).collect();
    assert_eq!(memory.forget(&gone).unwrap(), 1);
    assert_eq!(files(folder.path()), [false; 2], "what is forgotten is not kept");
    assert_eq!(open().stats().unwrap().vectors, MANY as usize + 4);
}
