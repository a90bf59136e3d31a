use std::fs;

use ctx_core::ErrorKind;
use ctx_memory::facts::{FactKind, FactSelector};

use super::{candidate, config, current, named, open};

fn disk(dir: &tempfile::TempDir) -> String {
    let files = fs::read_dir(dir.path()).unwrap();
    files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn facts_of_an_erased_entry_leave_the_disk_with_all_their_versions() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store
        .learn([
            config("Backup host Falcon is 10.1.2.3", 1),
            candidate(FactKind::Decision, "Use PostgreSQL for storage", 2),
        ])
        .unwrap();
    store.learn([config("Backup host Falcon is 10.1.2.3 behind the vault", 3)]).unwrap();
    let ids = named(&["e3"]);
    let erase = [FactSelector::Entries { session: "s", ids: &ids }];
    assert_eq!(store.would_forget(&erase).len(), 1);
    assert!(disk(&dir).contains("Falcon"), "a dry run erases nothing");
    let gone = store.forget(&erase).unwrap();
    assert_eq!(gone.len(), 1);
    let left = disk(&dir);
    assert!(!left.contains("Falcon") && left.contains("PostgreSQL"), "{left}");
    assert_eq!(current(&open(&dir)), ["Use PostgreSQL for storage"]);
}

#[test]
fn an_entry_of_the_same_id_in_another_session_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let mut other = config("Server port is 8080", 1);
    other.session_id = "t".into();
    store.learn([config("Server port is 3000", 1), other]).unwrap();
    store.forget(&[FactSelector::Entries { session: "t", ids: &named(&["e1"]) }]).unwrap();
    assert_eq!(current(&store), ["Server port is 3000"]);
    store.forget(&[FactSelector::Session("s")]).unwrap();
    assert_eq!(fs::read_to_string(store.path()).unwrap(), "");
    assert!(!disk(&dir).contains("port"));
}

#[test]
fn a_fact_superseded_by_an_erased_one_is_current_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store.learn([1, 2, 3].map(|n| config(&format!("Server port is {n}000"), n))).unwrap();
    store.forget(&[FactSelector::Entries { session: "s", ids: &named(&["e2"]) }]).unwrap();
    let ids: Vec<_> = store.facts().map(|fact| (fact.id, fact.superseded_by)).collect();
    assert_eq!(ids[0].1, Some(ids[1].0), "the first gave way to the third");
    store.forget(&[FactSelector::Entries { session: "s", ids: &named(&["e3"]) }]).unwrap();
    assert_eq!(current(&store), ["Server port is 1000"]);
    assert!(open(&dir).facts().eq(store.facts()));
}

#[test]
fn facts_matching_a_text_in_any_case_are_erased_and_an_empty_text_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    assert!(
        store.forget(&[FactSelector::Matching("x")]).unwrap().is_empty(),
        "no file, nothing to do"
    );
    let mut context = config("Worker timeout is 30s", 2);
    context.context = "as FALCON wants".into();
    store.learn([config("Backup host falcon is 10.1.2.3", 1), context]).unwrap();
    let error = store.forget(&[FactSelector::Matching("  ")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(store.forget(&[FactSelector::Matching("Falcon")]).unwrap().len(), 2);
    assert!(!disk(&dir).to_lowercase().contains("falcon"));
    store.learn([config("The red heron host is 10.1.2.4", 3)]).unwrap();
    assert_eq!(store.forget(&[FactSelector::Matching("Red\n  heron")]).unwrap().len(), 1);
}

#[test]
fn many_facts_are_forgotten_at_once_and_the_rest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let of = |session: &str, text: &str, n: i64| {
        let mut fact = config(text, n);
        fact.session_id = session.into();
        fact
    };
    let facts = [
        of("a", "Server port is 3000", 1),
        of("b", "Backup host is 10.1.2.3", 2),
        of("b", "Worker timeout is 30s", 3),
        of("c", "Cache size is 64 MB", 4),
        of("d", "Log level is debug", 5),
    ];
    store.learn(facts).unwrap();
    let ids = named(&["e2"]);
    let all = [
        FactSelector::Session("a"),
        FactSelector::Entries { session: "b", ids: &ids },
        FactSelector::Matching("cache SIZE"),
    ];
    assert_eq!(store.would_forget(&all).len(), 3);
    assert_eq!(store.forget(&all).unwrap().len(), 3);
    assert_eq!(current(&store), ["Log level is debug", "Worker timeout is 30s"]);
    assert!(open(&dir).facts().eq(store.facts()));
}
