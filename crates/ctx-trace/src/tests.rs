//! Records, in memory and on disk.

use std::collections::BTreeMap;

use ctx_core::{NodeState, Timestamp, Tokens};

use super::*;

fn record(session: &str, number: u64) -> Record {
    let entry = EntryRecord {
        entry: "00000000".into(),
        role: "user".to_owned(),
        state: NodeState::Kept,
        before: Tokens(9),
        tokens: Tokens(9),
        layer: None,
        reason: None,
        begins: "hello".to_owned().into(),
    };
    Record {
        session: session.to_owned(),
        number,
        at: Timestamp(number as i64),
        protocol: "chat".into(),
        model: Some("m".to_owned()),
        window: Tokens(16_000),
        reserve: Tokens(4_000),
        limit: Tokens(12_000),
        raw_tokens: Tokens(20_000),
        sent_tokens: Tokens(9_000),
        cached_tokens: None,
        prompt_tokens: Some(9_100),
        cost_usd: None,
        fits: true,
        unchanged_prefix: Tokens(8_000),
        prefix_break: None,
        status: Some(200),
        outcome: RequestOutcome::Ok,
        attempts: 1,
        compaction: None,
        actions: BTreeMap::new(),
        millis: 0.5,
        components: Vec::new(),
        entries: vec![entry],
    }
}

fn info(id: &str) -> SessionInfo {
    SessionInfo { id: id.to_owned(), title: "a title".to_owned(), ..SessionInfo::default() }
}

#[test]
fn records_survive_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let trace = Trace::at(home.path().join("traces"), TraceLimits::default()).unwrap();
    trace.session(info("a-0"));
    (0..3).for_each(|number| trace.add(record("a-0", number)));
    let first = trace.record("a-0", 1).unwrap().unwrap();
    drop(trace);
    let again = Trace::at(home.path().join("traces"), TraceLimits::default()).unwrap();
    let second = again.record("a-0", 1).unwrap().unwrap();
    assert_eq!(first, second);
    assert_eq!(second.entries[0].begins.text(), "hello");
    let sessions = again.sessions();
    assert_eq!((sessions.len(), sessions[0].requests.len()), (1, 3));
    assert_eq!(sessions[0].info.title, "a title");
    assert!(sessions[0].requests[0].entries.is_empty());
    assert!(again.record("a-0", 3).unwrap().is_none());
    assert!(again.record("../a-0", 0).unwrap().is_none());
}

#[test]
fn too_many_records_evict_the_least_recently_used_conversation() {
    let home = tempfile::tempdir().unwrap();
    let limits = TraceLimits { records: 4, ..TraceLimits::default() };
    let trace = Trace::at(home.path(), limits).unwrap();
    let mut events = trace.subscribe();
    for (session, number) in [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("c", 0)] {
        trace.add(record(session, number));
    }
    assert!(trace.of_session("a").is_none());
    let left = |id| trace.of_session(id).map(|session| session.requests.len());
    assert_eq!((left("b"), left("c")), (Some(2), Some(1)));
    (1..9).for_each(|number| trace.add(record("c", number)));
    assert_eq!((left("b"), left("c")), (None, Some(4)));
    let mut gone = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let TraceEvent::Gone(sessions) = event {
            gone.extend(sessions);
        }
    }
    assert_eq!(gone, ["a", "b"]);
}

#[test]
fn files_stay_within_their_size_limit() {
    let home = tempfile::tempdir().unwrap();
    let limits = TraceLimits { bytes: 8_000, ..TraceLimits::default() };
    let trace = Trace::at(home.path(), limits).unwrap();
    for session in 0..20 {
        (0..2).for_each(|number| trace.add(record(&format!("s{session}"), number)));
    }
    assert_eq!(trace.record("s19", 1).unwrap().unwrap().number, 1);
    let sizes = std::fs::read_dir(home.path()).unwrap();
    let bytes: u64 = sizes.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= 8_000, "{bytes}");
}

#[test]
fn an_undone_compaction_stays_undone_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let trace = Trace::at(home.path(), TraceLimits::default()).unwrap();
    let compaction = |entry: &str| CompactionRecord {
        request: 0,
        entry_id: Some(entry.into()),
        first_kept_entry_id: "b".into(),
        tokens_before: Tokens(100),
        tokens_after: Some(Tokens(60)),
        summary: "sum".to_owned(),
        details: None,
        summarised: None,
        undone: false,
    };
    for (number, entry) in [(0, "s"), (1, "t")] {
        trace.add(Record { compaction: Some(compaction(entry)), ..record("a-0", number) });
    }
    trace.undone("a-0", "s");
    trace.settle();
    let again = Trace::at(home.path(), TraceLimits::default()).unwrap();
    again.settle();
    let undone = |record: &Record| record.compaction.as_ref().map(|known| known.undone);
    let session = again.of_session("a-0").unwrap();
    let all: Vec<_> = session.requests.iter().map(|record| undone(record)).collect();
    assert_eq!(all, [Some(true), Some(false)]);
    assert_eq!(undone(&again.record("a-0", 0).unwrap().unwrap()), Some(true));
}

#[test]
fn settled_records_are_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let trace = Trace::at(home.path(), TraceLimits::default()).unwrap();
    (0..9).for_each(|number| trace.add(record("a-0", number)));
    trace.settle();
    let text = std::fs::read_to_string(home.path().join("a-0.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 9);
}

#[test]
fn entries_that_the_last_record_has_too_are_written_once_and_read_again() {
    let home = tempfile::tempdir().unwrap();
    let trace = Trace::at(home.path(), TraceLimits::default()).unwrap();
    let entry = |id: usize, begins: &str| EntryRecord {
        entry: format!("{id:08}").into(),
        begins: begins.repeat(10).into(),
        ..record("a", 0).entries.remove(0)
    };
    let mut entries = Vec::new();
    let mut written = Vec::new();
    for number in 0..100u64 {
        match number % 10 {
            // A compaction, a changed entry, nothing new.
            7 => drop(entries.drain(..entries.len() / 2)),
            8 => entries[number as usize / 20] = entry(number as usize, "changed"),
            9 => {}
            _ => entries.extend((0..4).map(|n| entry(1_000 + 4 * number as usize + n, "new"))),
        }
        let record = Record { entries: entries.clone(), ..record("a", number) };
        written.push(record.clone());
        trace.add(record);
        trace.settle();
    }
    for record in &written {
        let read = trace.record("a", record.number).unwrap().unwrap();
        assert_eq!(read.entries, record.entries, "{}", record.number);
    }
    let whole: usize = written.iter().map(|r| serde_json::to_vec(r).unwrap().len()).sum();
    let bytes = std::fs::metadata(home.path().join("a.jsonl")).unwrap().len();
    assert!(bytes < whole as u64 / 2, "{bytes} of {whole} bytes");
    drop(trace);
    let again = Trace::at(home.path(), TraceLimits::default()).unwrap();
    again.settle();
    assert_eq!(again.record("a", 99).unwrap().unwrap().entries, written[99].entries);
}

#[test]
fn a_record_that_refers_to_a_later_line_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    let record = serde_json::to_value(record("a", 0)).unwrap();
    let base = serde_json::json!({ "offset": 0, "length": 9_999 });
    let line = serde_json::json!({ "next": { "base": base, "same": 1, "record": record } });
    std::fs::write(&path, format!("{line}\n")).unwrap();
    let trace = Trace::at(home.path(), TraceLimits::default()).unwrap();
    trace.settle();
    let error = trace.record("a", 0).unwrap_err();
    assert_eq!(error.kind(), ctx_core::ErrorKind::Corrupt);
}
