//! A synchronous standby, which takes over when the primary ends.

use std::time::{Duration, Instant};

use ctx_store::{Acquired, Directory, Leases, Line, LogHead, LogName, SessionLogs, SessionName};
use ctx_store_postgres::{Options, PostgresStore};

use crate::{server, store, tenant};

/// After a crash, the primary shows commits that no standby has: they are not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_call_is_acknowledged_once_the_standby_has_it() {
    let Some(mut server) = server().await else { return };
    server.sql("alter system set synchronous_standby_names = '*'");
    server.sql("select pg_reload_conf()");
    let standby = server.standby(server.port());
    let (statement_timeout, patience) = (Duration::from_millis(500), Duration::ZERO);
    let options = Options { statement_timeout, patience, ..tenant("acme") };
    let hasty = PostgresStore::open(&server.url("ctx"), options).await.unwrap();
    let session = SessionName { agent: "main".into(), key: "agent:main:main".into() };
    let acquired = hasty.acquire(&session, "one", Duration::from_secs(2)).await.unwrap();
    let Acquired::Granted(lease) = acquired else { panic!("{acquired:?}") };
    let log = LogName { agent: "main".into(), file: "log".into() };
    let lines = [Line { id: "1".into(), bytes: b"first".to_vec() }];
    drop(standby);
    assert!(hasty.append(&lease, &log, LogHead::NEW, &lines).await.is_err());
    assert!(hasty.compare_and_put(&session, None, "{}").await.is_err());
    server.crash();
    server.restart();
    assert_eq!(server.sql("select count(*) from ctx.line"), "1");
    let until = Instant::now() + Duration::from_secs(60);
    while server.sql("select held_until > clock_timestamp() from ctx.lease") == "t" {
        assert!(Instant::now() < until, "the lease does not expire");
    }
    let store = store(&server, "acme").await;
    assert!(hasty.append(&lease, &log, LogHead::NEW, &lines).await.is_err());
    assert!(hasty.compare_and_put(&session, None, "{}").await.is_err());
    let _standby = server.standby(server.port());
    let head = store.append(&lease, &log, LogHead::NEW, &lines).await.unwrap();
    assert_eq!(head, LogHead { generation: 1, lines: 1 });
    assert_eq!(store.compare_and_put(&session, None, "{}").await.unwrap(), 1);
}
