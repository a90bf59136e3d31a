use std::fs;
use std::io::Write;

use ctx_core::Timestamp;
use ctx_memory::facts::{
    FactKind, FactQuery, FactSelector, FactStore, Proposal, ProposedOperation, RejectionReason,
    Scope,
};

use super::{candidate, config, current, named, open};

#[test]
fn learned_facts_are_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let first = store.learn([config("Server port is 3000", 1)]).unwrap();
    let second = store.learn([config("Server port is now 8080", 2)]).unwrap();
    assert_eq!((first.added.len(), second.superseded), (1, first.added.clone()));
    let again = open(&dir);
    assert_eq!(current(&again), ["Server port is now 8080"]);
    assert!(again.facts().eq(store.facts()));
    let old = again.get(first.added[0]).unwrap();
    assert_eq!((old.superseded_by, old.valid_to), (Some(second.added[0]), Some(Timestamp(2))));
}

#[test]
fn learning_the_same_again_changes_nothing_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let all = [config("Server port is 3000", 1), config("Server port is 8080", 2)];
    store.learn(all.clone()).unwrap();
    let before = fs::read(store.path()).unwrap();
    let again = store.learn(all).unwrap();
    assert!(again.is_nothing() && again.known == 2, "{again:?}");
    assert_eq!(fs::read(store.path()).unwrap(), before);
}

#[test]
fn the_later_statement_holds_in_any_reading_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store.learn([config("Server port is 8080", 9)]).unwrap();
    store.learn([config("Server port is 3000", 1)]).unwrap();
    assert_eq!(current(&store), ["Server port is 8080"]);
    let then = FactQuery { at: Some(Timestamp(5)), ..FactQuery::new("server port") };
    assert_eq!(store.search(&then)[0].fact.content, "Server port is 3000");
}

#[test]
fn questions_find_current_and_past_facts() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store
        .learn([
            candidate(FactKind::Decision, "Use PostgreSQL for storage", 1),
            candidate(FactKind::Decision, "Use SQLite for storage", 5),
            config("数据库使用 PostgreSQL，端口是5432", 6),
            config("Worker timeout is 30s", 7),
        ])
        .unwrap();
    let ask = |text, at| {
        let query = FactQuery { at, ..FactQuery::new(text) };
        store.search(&query).iter().map(|hit| hit.fact.content.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ask("what do we use for storage?", None), ["Use SQLite for storage"]);
    let then = ask("what do we use for storage?", Some(Timestamp(2)));
    assert_eq!(then, ["Use PostgreSQL for storage"]);
    assert_eq!(ask("数据库的端口是多少", None), ["数据库使用 PostgreSQL，端口是5432"]);
    assert_eq!(ask("worker memory", None), [] as [&str; 0]);
    assert_eq!(ask("", None), [] as [&str; 0]);
}

#[test]
fn a_session_neither_sees_nor_supersedes_facts_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let mut other = config("Server port is 8080", 2);
    other.session_id = "t".into();
    store.learn([config("Server port is 3000", 1), other.clone()]).unwrap();
    assert_eq!(current(&store).len(), 2);
    let query = FactQuery { session: Some("s"), ..FactQuery::new("server port") };
    let hits = store.search(&query);
    assert_eq!(hits.iter().map(|hit| &*hit.fact.session_id).collect::<Vec<_>>(), ["s"]);
    let dir = tempfile::tempdir().unwrap();
    let mut shared = FactStore::open(dir.path().join("k.jsonl"), Scope::Agent).unwrap();
    shared.learn([config("Server port is 3000", 1), other]).unwrap();
    assert_eq!(current(&shared), ["Server port is 8080"]);
}

#[test]
fn a_torn_or_damaged_line_affects_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store.learn([config("Server port is 3000", 1)]).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(store.path()).unwrap();
    file.write_all(b"\xff\xfe not json\n[1,2]\n{\"v\":9,\"type\":\"preference\"}\n").unwrap();
    file.write_all("{\"long\":\"".as_bytes()).unwrap();
    file.write_all(&vec![b'x'; 3_000_000]).unwrap();
    file.write_all(b"\"}\n{\"id\":\"torn").unwrap();
    let mut again = open(&dir);
    assert_eq!(current(&again), ["Server port is 3000"]);
    again.learn([config("Worker timeout is 30s", 2)]).unwrap();
    store.refresh().unwrap();
    for store in [&store, &again, &open(&dir)] {
        assert_eq!(current(store), ["Server port is 3000", "Worker timeout is 30s"]);
    }
    // A rewrite preserves lines of another version, and drops broken ones.
    again.forget(&[FactSelector::Entries { session: "s", ids: &named(&["e2"]) }]).unwrap();
    let text = fs::read_to_string(again.path()).unwrap();
    assert!(text.contains("preference") && !text.contains("torn"));
}

#[test]
fn two_stores_on_one_file_learn_from_each_other() {
    let dir = tempfile::tempdir().unwrap();
    open(&dir);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let dir = &dir;
            scope.spawn(move || {
                let mut store = open(dir);
                for n in 0..25 {
                    let name = format!("Service{worker} limit{n} is {n}");
                    store.learn([config(&name, n)]).unwrap();
                    store.learn([config("Shared port is 3000", 7)]).unwrap();
                }
            });
        }
    });
    let store = open(&dir);
    assert_eq!((store.facts().len(), store.damaged()), (101, 0));
}

#[test]
fn the_file_stays_short_and_private_after_many_repetitions() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let mut content = String::from("Deploy target host");
    let mut other = open(&dir);
    for n in 0..600 {
        if content.len() > 200 {
            content.truncate(18);
        }
        content.push_str(&format!(" n{n}"));
        store.learn([config(&content, n)]).unwrap();
    }
    other.refresh().unwrap();
    assert!(other.facts().eq(store.facts()), "a rewrite is noticed");
    let lines = fs::read_to_string(store.path()).unwrap().lines().count();
    assert!(lines <= store.facts().len() * 2 + 257, "{lines} of {}", store.facts().len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(store.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
}

#[test]
fn ten_thousand_facts_are_learned_found_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let all = (0..10_000)
        .map(|n| config(&format!("Service{n} of region{} listens at host{n}.internal", n % 7), n));
    store.learn(all).unwrap();
    assert_eq!(store.facts().len(), 10_000);
    let hits = store.search(&FactQuery::new("where is host4711.internal"));
    assert!(hits[0].fact.content.contains("host4711"), "{hits:?}");
    assert!(open(&dir).facts().eq(store.facts()));
}

#[test]
fn a_fact_repeated_ten_thousand_times_is_one_fact() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let learned = store.learn((0..10_000).map(|n| config("Server port is 3000", n))).unwrap();
    assert_eq!((learned.added.len(), learned.known), (1, 9_999));
}

#[test]
fn proposals_of_a_model_are_checked_by_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let known = store
        .learn([
            config("Server port is 3000", 1),
            candidate(FactKind::Decision, "Use PostgreSQL for user accounts", 1),
        ])
        .unwrap();
    let (port, database) = (known.added[0].to_string(), known.added[1].to_string());
    let propose = |operation, id: Option<&str>, candidate| Proposal {
        operation,
        id: id.map(str::to_owned),
        candidate,
    };
    let new = || Some(config("Server port is 8080", 2));
    let (learned, refused) = store
        .accept(vec![
            propose(ProposedOperation::Delete, Some(&port), None),
            propose(ProposedOperation::Delete, Some("*"), None),
            propose(ProposedOperation::Supersede, Some("no-such-id"), new()),
            propose(ProposedOperation::Supersede, Some(&database), new()),
            propose(ProposedOperation::Supersede, Some(&port), None),
            propose(ProposedOperation::Update, Some(&port), new()),
        ])
        .unwrap();
    let reasons: Vec<_> = refused.iter().map(|refusal| refusal.reason).collect();
    use RejectionReason::{Deletion, Empty, OtherSubject, UnknownId};
    assert_eq!(reasons, [Deletion, Deletion, UnknownId, OtherSubject, Empty]);
    // A contradiction supersedes even if an update was requested: the old value stays readable.
    assert_eq!(learned.superseded, [known.added[0]]);
    assert_eq!(current(&store), ["Server port is 8080", "Use PostgreSQL for user accounts"]);
}

#[test]
fn a_known_sentence_supersedes_the_fact_that_a_model_names() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    store
        .learn([
            candidate(FactKind::Implementation, "The webhook of Stripe runs in Dublin", 1),
            candidate(FactKind::Decision, "Paul owns the Stripe webhook", 2),
        ])
        .unwrap();
    let old = store.facts().next().unwrap().id;
    let proposal = Proposal {
        operation: ProposedOperation::Supersede,
        id: Some(old.to_string()),
        candidate: Some(candidate(FactKind::Decision, "Paul owns the Stripe webhook", 3)),
    };
    let (learned, refused) = store.accept(vec![proposal]).unwrap();
    assert_eq!((learned.known, learned.superseded, refused.len()), (1, vec![old], 0));
    drop(store);
    assert_eq!(current(&open(&dir)), ["Paul owns the Stripe webhook"]);
}

#[test]
fn one_answer_cannot_supersede_all_facts() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let names: Vec<String> = (0..200).map(|n| format!("Host{n} port is {n}")).collect();
    let learned = store.learn(names.iter().map(|name| config(name, 1))).unwrap();
    let all = learned.added.iter().enumerate().map(|(n, id)| Proposal {
        operation: ProposedOperation::Supersede,
        id: Some(id.to_string()),
        candidate: Some(config(&format!("Host{n} port is 99999"), 2)),
    });
    let (learned, refused) = store.accept(all.collect()).unwrap();
    assert_eq!(learned.superseded.len(), 10);
    assert_eq!(refused.len(), 190);
    assert!(refused.iter().all(|refusal| refusal.reason == RejectionReason::TooMany));
}

#[test]
fn a_failed_write_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A folder with the file's name cannot be written to by any user.
    let path = dir.path().join("knowledge.jsonl");
    let mut store = FactStore::open(&path, Scope::Session).unwrap();
    fs::create_dir(&path).unwrap();
    let error = store.learn([config("Server port is 3000", 1)]).unwrap_err();
    assert!(error.to_string().contains("knowledge.jsonl"), "{error}");
    fs::remove_dir(&path).unwrap();
    store.refresh().unwrap();
    assert_eq!(store.facts().len(), 0);
    assert_eq!(store.learn([config("Server port is 3000", 1)]).unwrap().added.len(), 1);
}

#[test]
fn an_older_wording_does_not_move_the_end_of_what_its_fact_superseded() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    for (content, at) in
        [("Server port is 3000", 2), ("Server port is 8080", 9), ("Use 8080 for Server port", 1)]
    {
        store.learn([candidate(FactKind::Config, content, at)]).unwrap();
    }
    let old = store.facts().find(|fact| fact.superseded_by.is_some()).unwrap();
    let new = store.get(old.superseded_by.unwrap()).unwrap();
    assert_eq!((old.valid_to, new.valid_from), (Some(new.valid_from), Timestamp(9)));
}
