use std::time::Duration;

use ctx_core::ErrorKind;
use ctx_store::{
    Acquired, Leases, Line, LogHead, LogName, Record, RecordKind, RecordLogs, SessionLogs,
    SessionName,
};
use ctx_store_postgres::{PostgresStore, VacuumReport};

use crate::{server, store};

const TTL: Duration = Duration::from_secs(60);

fn record(id: &str) -> Record {
    Record { id: id.into(), bytes: format!("text of {id}").into() }
}

fn log(agent: &str) -> LogName {
    LogName { agent: agent.into(), file: "s".into() }
}

/// Appends a line to the log of an agent, whose lease is released.
async fn append(store: &PostgresStore, agent: &str, at: LogHead) -> ctx_core::Result<LogHead> {
    let session = SessionName { agent: agent.into(), key: "k".into() };
    let granted = store.acquire(&session, "host", TTL).await?;
    let Acquired::Granted(lease) = granted else { panic!("it is held") };
    let lines = [Line { id: "a".into(), bytes: b"{}".into() }];
    let appended = store.append(&lease, &log(agent), at, &lines).await;
    store.release(&lease).await?;
    appended
}

#[tokio::test]
async fn an_erased_tenant_is_followed_by_number_until_it_is_vacuumed() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    for agent in ["one", "two"] {
        append(&store, agent, LogHead::NEW).await.unwrap();
        store.put(agent, RecordKind::Fact, &[record("a"), record("b")]).await.unwrap();
        store.put(agent, RecordKind::Segment, &[record("c")]).await.unwrap();
    }
    store.forget("one", RecordKind::Fact, &["a".into()]).await.unwrap();
    let before = store.since("one", RecordKind::Fact, 0, 9).await.unwrap();
    store.erase_tenant().await.unwrap();
    for agent in ["one", "two"] {
        let all = store.since(agent, RecordKind::Fact, 0, 9).await.unwrap();
        assert!(all.records.is_empty() && all.forgotten == ["a", "b"], "{agent}: {all:?}");
        let segments = store.since(agent, RecordKind::Segment, 0, 9).await.unwrap();
        assert_eq!(segments.forgotten, ["c"]);
        let told = store.since(agent, RecordKind::Erasure, 0, 9).await.unwrap();
        assert_eq!(told.records, [Record { id: "s".into(), bytes: b"2".into() }]);
        let removed = LogHead { generation: 2, lines: 0 };
        assert_eq!(store.head(&log(agent)).await.unwrap(), Some(removed));
        let old = append(&store, agent, LogHead { generation: 1, lines: 1 }).await;
        assert_eq!(old.unwrap_err().kind(), ErrorKind::Conflict);
    }
    // A host that has read all gets only what is new.
    let since = store.since("one", RecordKind::Fact, before.next, 9).await.unwrap();
    assert_eq!(since.forgotten, ["b"]);
    store.put("one", RecordKind::Fact, &[record("b"), record("d")]).await.unwrap();
    let added = store.since("one", RecordKind::Fact, since.next, 9).await.unwrap();
    assert_eq!((added.records, added.forgotten), (vec![record("d")], Vec::new()));
    append(&store, "two", LogHead { generation: 2, lines: 0 }).await.unwrap();

    // Leases that were given back are not needed, however new they are.
    let released = VacuumReport { leases: 2, ..VacuumReport::default() };
    assert_eq!(store.vacuum(TTL).await.unwrap(), released);
    let done = store.vacuum(Duration::ZERO).await.unwrap();
    let old = VacuumReport { logs: 1, forgotten: 6, erasures: 2, ..VacuumReport::default() };
    assert_eq!(VacuumReport { hosts: 0, ..done }, old);
    assert_eq!(store.vacuum(Duration::ZERO).await.unwrap(), VacuumReport::default());
    assert_eq!(store.head(&log("one")).await.unwrap(), None);
    // Numbers and epochs do not begin again.
    store.put("one", RecordKind::Fact, &[record("e")]).await.unwrap();
    let next = store.since("one", RecordKind::Fact, added.next, 9).await.unwrap();
    assert_eq!(next.records, [record("e")]);
}
