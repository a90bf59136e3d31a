use std::sync::Arc;

use super::*;
use crate::values::TransientStore;

/// Polls a future that is ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("a file operation was pending"),
    }
}

fn get(store: &dyn Store, key: &str) -> Option<Vec<u8>> {
    now(store.get(key)).unwrap()
}

fn put(store: &dyn Store, key: &str, value: &[u8]) {
    now(store.put(key, value)).unwrap();
}

fn list(store: &dyn Store, prefix: &str) -> Vec<String> {
    now(store.list(prefix)).unwrap()
}

#[test]
fn values_outlive_the_store_and_each_owner_has_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let store = FileStore::at(&root);
    assert_eq!((get(&store, "engines/a/x"), list(&store, "engines/a/")), (None, vec![]));
    assert!(!root.exists(), "reading creates nothing");
    for (key, value) in [
        ("engines/a/x", &b"one\ntwo"[..]),
        ("engines/a/\u{1f600} ..\\../\"/", b""),
        ("engines/b/x", b"other"),
        ("engines/a/x", b"newer\n"),
    ] {
        put(&store, key, value);
    }
    let again = FileStore::at(&root);
    assert_eq!(get(&again, "engines/a/x").as_deref(), Some(&b"newer\n"[..]));
    assert_eq!(get(&again, "engines/b/x").as_deref(), Some(&b"other"[..]));
    assert_eq!(list(&again, "engines/a/"), ["engines/a/x", "engines/a/\u{1f600} ..\\../\"/"]);
    assert_eq!(list(&again, "engines/a/x"), ["engines/a/x"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |p: &Path| p.metadata().unwrap().permissions().mode() & 0o777;
        let file = values_in(&root.join("engines/a")).unwrap().remove(0);
        assert_eq!((mode(&root.join("engines/a")), mode(&file)), (0o700, 0o600));
    }
}

#[test]
fn a_key_cannot_leave_its_owners_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::at(dir.path().join("store"));
    let long = format!("engines/a/{}", "x".repeat(MAX_KEY));
    for key in ["", "x", "a/b", "../../x", "engines/../x", "/etc/passwd", "engines//x", &long] {
        let put = now(store.put(key, b"1")).unwrap_err();
        assert_eq!(put.kind(), ErrorKind::InvalidInput, "{key}");
        assert!(now(store.get(key)).is_err());
    }
    put(&store, "engines/a/../../../../x", b"1");
    assert_eq!(get(&store, "engines/a/../../../../x").as_deref(), Some(&b"1"[..]));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_damaged_value_is_an_error_until_it_is_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::at(dir.path());
    put(&store, "engines/a/x", b"value");
    let path = values_in(&dir.path().join("engines/a")).unwrap().remove(0);
    for damaged in [&b""[..], b"\"engines/a/x\"", b"\"engines/a/y\"\nvalue", b"\xff\n", b"\n\n"] {
        std::fs::write(&path, damaged).unwrap();
        let error = now(store.get("engines/a/x")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.hint_text().is_some());
        assert!(list(&store, "engines/a/x").is_empty());
        put(&store, "engines/a/x", b"value");
        assert_eq!(get(&store, "engines/a/x").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn an_owner_cannot_exceed_its_limits_and_keeps_its_values() {
    let dir = tempfile::tempdir().unwrap();
    let limits = StoreLimits { value: 10, bytes: 80, keys: 3 };
    let store = FileStore::at(dir.path()).with_limits(limits);
    assert!(now(store.put("engines/a/x", &[0; 11])).is_err());
    for key in ["engines/a/1", "engines/a/2", "engines/a/3"] {
        put(&store, key, b"0123456789");
    }
    for store in [store, FileStore::at(dir.path()).with_limits(limits)] {
        let error = now(store.put("engines/a/4", b"")).unwrap_err();
        assert!(error.hint_text().is_some(), "{error}");
        put(&store, "engines/a/1", b"x");
        put(&store, "engines/a/1", b"0123456789");
        put(&store, "engines/b/1", b"0123456789");
    }
    let narrow = StoreLimits { bytes: 40, ..limits };
    let store = FileStore::at(dir.path()).with_limits(narrow);
    assert!(now(store.put("engines/b/2", b"0123456789")).is_err());
    assert_eq!(list(&store, "engines/a/").len(), 3);
}

#[test]
fn a_dry_run_reads_stored_values_and_stores_none() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Arc::new(FileStore::at(dir.path()));
    put(&*kept, "engines/a/old", b"1");
    let passing = TransientStore::over(kept.clone());
    put(&passing, "engines/a/new", b"2");
    put(&passing, "engines/a/old", b"3");
    assert_eq!(get(&passing, "engines/a/old").as_deref(), Some(&b"3"[..]));
    assert_eq!(list(&passing, "engines/a/"), ["engines/a/new", "engines/a/old"]);
    assert_eq!(list(&*kept, "engines/a/"), ["engines/a/old"]);
    assert_eq!(get(&*kept, "engines/a/old").as_deref(), Some(&b"1"[..]));
    assert!(now(passing.put("engines/a/much", &vec![0; 257 << 20])).is_err());
    let alone = TransientStore::default();
    put(&alone, "anything", b"4");
    assert_eq!(list(&alone, ""), ["anything"]);
}
