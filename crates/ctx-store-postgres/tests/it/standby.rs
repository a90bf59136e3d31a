//! A synchronous standby, which takes over when the primary ends.

use std::time::Duration;

use ctx_store::{Acquired, Directory, Leases, Line, LogHead, LogName, SessionLogs, SessionName};
use ctx_store_postgres::{Options, PostgresStore};
use ctx_testkit::postgres::PostgresServer;

use crate::{server, store, tenant};

/// A server with a synchronous standby, and a store that gives a call up after one attempt.
async fn with_standby() -> Option<(PostgresServer, PostgresServer, PostgresStore)> {
    let server = server().await?;
    server.sql("alter system set synchronous_standby_names = '*'");
    server.sql("select pg_reload_conf()");
    let standby = server.standby(server.port());
    let (statement_timeout, patience) = (Duration::from_millis(500), Duration::ZERO);
    let options = Options { statement_timeout, patience, pause: patience, ..tenant("acme") };
    let hasty = PostgresStore::open(&server.url("ctx"), options).await.unwrap();
    Some((server, standby, hasty))
}

fn session() -> SessionName {
    SessionName { agent: "main".into(), key: "agent:main:main".into() }
}

/// After a crash, the primary shows commits that no standby has: they are not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_call_is_acknowledged_once_the_standby_has_it() {
    let Some((mut server, standby, hasty)) = with_standby().await else { return };
    let acquired = hasty.acquire(&session(), "one", Duration::from_secs(2)).await.unwrap();
    let Acquired::Granted(lease) = acquired else { panic!("{acquired:?}") };
    let log = LogName { agent: "main".into(), file: "log".into() };
    let lines = [Line { id: "1".into(), bytes: b"first".to_vec() }];
    drop(standby);
    assert!(hasty.append(&lease, &log, LogHead::NEW, &lines).await.is_err());
    assert!(hasty.compare_and_put(&session(), None, "{}").await.is_err());
    server.crash();
    server.restart();
    assert_eq!(server.sql("select count(*) from ctx.line"), "1");
    let store = store(&server, "acme").await;
    assert!(hasty.append(&lease, &log, LogHead::NEW, &lines).await.is_err());
    assert!(hasty.compare_and_put(&session(), None, "{}").await.is_err());
    let _standby = server.standby(server.port());
    let head = store.append(&lease, &log, LogHead::NEW, &lines).await.unwrap();
    assert_eq!(head, LogHead { generation: 1, lines: 1 });
    let version = store.compare_and_put(&session(), None, "{}").await.unwrap();
    assert_eq!(store.get(&session()).await.unwrap().unwrap().version, version);
}

/// The same for a removal: a failover to a standby that lacks it would undo it.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_removal_is_acknowledged_once_the_standby_has_it() {
    let Some((mut server, standby, hasty)) = with_standby().await else { return };
    let version = hasty.compare_and_put(&session(), None, "{}").await.unwrap();
    drop(standby);
    assert!(hasty.retire(&session(), version).await.is_err());
    server.crash();
    server.restart();
    assert_eq!(server.sql("select count(*) from ctx.session"), "0");
    assert!(hasty.retire(&session(), version).await.is_err());
    let _standby = server.standby(server.port());
    let store = store(&server, "acme").await;
    store.retire(&session(), version).await.unwrap();
    // An entry that is made again is not removed by a repetition.
    let next = store.compare_and_put(&session(), None, "{}").await.unwrap();
    assert!(store.retire(&session(), version).await.is_err());
    assert_eq!(store.get(&session()).await.unwrap().unwrap().version, next);
}
