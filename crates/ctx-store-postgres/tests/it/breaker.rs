//! A database that cannot be reached for long.

use std::time::Duration;

use ctx_core::ErrorKind;
use ctx_store::{Directory, Health, SessionName};
use ctx_store_postgres::{Options, PostgresStore};

use crate::{server, tenant};

fn session() -> SessionName {
    SessionName { agent: "main".into(), key: "agent:main:main".into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_fail_at_once_after_one_has_waited() {
    let Some(mut server) = server().await else { return };
    let (patience, pause) = (Duration::from_millis(100), Duration::from_secs(3_600));
    let options = Options { patience, pause, ..tenant("acme") };
    let store = PostgresStore::open(&server.url("ctx"), options.clone()).await.unwrap();
    let (clone, other) = (store.clone(), store.of_tenant("other").unwrap());
    assert!(store.get(&session()).await.unwrap().is_none());
    assert!(other.health().unwrap().is_reachable);
    server.crash();
    store.get(&session()).await.unwrap_err();
    let seen = store.health().unwrap();
    assert!(seen.retries > 0 && seen.failures == 1 && seen.last_error.is_some(), "{seen:?}");
    server.restart();
    // None of these calls is made: the database could answer.
    for store in [&store, &clone, &other] {
        let error = store.get(&session()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Upstream, "{error}");
        assert!(error.is_retryable() && error.to_string().contains("next attempt"), "{error}");
        let seen = store.health().unwrap();
        assert!(!seen.is_reachable && seen.unreachable_seconds.is_some(), "{seen:?}");
    }
    // Another store knows nothing of it.
    PostgresStore::open(&server.url("ctx"), options).await.unwrap().get(&session()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_made_again_when_the_database_answers() {
    let Some(mut server) = server().await else { return };
    let (patience, pause) = (Duration::from_millis(100), Duration::from_millis(10));
    let options = Options { patience, pause, ..tenant("acme") };
    let store = PostgresStore::open(&server.url("ctx"), options).await.unwrap();
    server.crash();
    store.get(&session()).await.unwrap_err();
    assert!(!store.health().unwrap().is_reachable);
    server.restart();
    let answered = async { while store.get(&session()).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(60), answered).await.expect("no call is made again");
    let seen = store.health().unwrap();
    assert!(seen.is_reachable && seen.connections == 1 && seen.in_use == 0, "{seen:?}");
}
