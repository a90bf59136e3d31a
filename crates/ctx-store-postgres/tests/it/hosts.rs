//! Hosts and their leases: one renewed row for each host, takeovers, notifications.

use std::time::Duration;

use ctx_store::{
    Acquired, Change, Changes, Health, Lease, Leases, Line, LogHead, LogName, RecordKind,
    RecordLogs, Renewal, SessionLogs, SessionName,
};
use ctx_store_postgres::{PostgresStore, migrate};
use ctx_testkit::postgres::PostgresServer;

use crate::{server, store};

const LONG: Duration = Duration::from_secs(600);

/// A lease that can be taken over at once.
const SHORT: Duration = Duration::from_millis(1);

const KEPT: Renewal = Renewal::Kept { is_wanted: false };

const WANTED: Renewal = Renewal::Kept { is_wanted: true };

fn session(key: &str) -> SessionName {
    SessionName { agent: "main".into(), key: key.into() }
}

async fn granted(store: &PostgresStore, key: &str, holder: &str, ttl: Duration) -> Lease {
    loop {
        if let Acquired::Granted(lease) = store.acquire(&session(key), holder, ttl).await.unwrap() {
            return lease;
        }
    }
}

async fn is_held(store: &PostgresStore, key: &str, holder: &str) -> bool {
    let asked = store.acquire(&session(key), holder, LONG).await.unwrap();
    matches!(asked, Acquired::Held { .. })
}

/// Returns the number of rows that were written to a table.
fn written(server: &PostgresServer, table: &str) -> u64 {
    let sql = format!(
        "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables
         where schemaname = 'ctx' and relname = '{table}'"
    );
    server.sql(&sql).parse().unwrap()
}

#[tokio::test]
async fn a_renewal_writes_one_row() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    let mut leases = Vec::new();
    for number in 0..50 {
        leases.push(granted(&store, &number.to_string(), "one", LONG).await);
    }
    assert_eq!(store.renew(&leases).await.unwrap(), vec![KEPT; 50]);
    // The backend writes its counters when it ends.
    drop(store);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while written(&server, "host") < 2 || written(&server, "lease") < 50 {
        assert!(std::time::Instant::now() < until, "the counters are not written");
    }
    assert_eq!((written(&server, "host"), written(&server, "lease")), (2, 50));
}

#[tokio::test]
async fn a_host_that_comes_back_knows_what_it_lost() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    let mut leases = Vec::new();
    for key in ["a", "b", "c"] {
        leases.push(granted(&store, key, "one", LONG).await);
    }
    assert_eq!(store.renew(&leases).await.unwrap(), [KEPT, KEPT, KEPT]);
    assert!(is_held(&store, "b", "two").await);
    assert_eq!(store.renew(&leases).await.unwrap(), [KEPT, WANTED, KEPT]);
    // Its row is valid for a millisecond from now on.
    let short: Vec<_> = leases.iter().map(|lease| Lease { ttl: SHORT, ..lease.clone() }).collect();
    store.renew(&short).await.unwrap();
    let taken = granted(&store, "b", "two", LONG).await;
    assert!(taken.epoch > leases[1].epoch);
    // Nothing is compared again after the first answer, whichever renewal gets it.
    for _ in 0..2 {
        assert_eq!(store.renew(&leases).await.unwrap(), [KEPT, Renewal::Lost, KEPT]);
    }
    assert!(is_held(&store, "a", "two").await && !is_held(&store, "b", "two").await);
    // The answer of the first renewal after the time had passed is lost with its process.
    store.renew(&short).await.unwrap();
    granted(&store, "a", "two", LONG).await;
    let again = crate::store(&server, "acme").await;
    again.renew(&leases).await.unwrap();
    assert_eq!(store.renew(&leases).await.unwrap(), [Renewal::Lost, Renewal::Lost, KEPT]);
    // A lease of a holder whose row was removed can be taken over, too.
    server.sql("delete from ctx.host where holder = 'one'");
    granted(&store, "c", "two", LONG).await;
    assert_eq!(store.renew(&leases).await.unwrap(), vec![Renewal::Lost; 3]);
}

#[tokio::test]
async fn a_lease_without_a_successor_stays_in_force() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    let (lease, log) = (
        granted(&store, "k", "one", SHORT).await,
        LogName { agent: "main".into(), file: "s".into() },
    );
    while server.sql("select held_until > clock_timestamp() from ctx.host") == "t" {}
    let line = |id: &str| [Line { id: id.into(), bytes: b"{}".into() }];
    let head = store.append(&lease, &log, LogHead::NEW, &line("a")).await.unwrap();
    granted(&store, "k", "two", LONG).await;
    let refused = store.append(&lease, &log, head, &line("b")).await.unwrap_err();
    assert!(refused.to_string().contains("two"), "{refused}");
}

#[tokio::test]
async fn a_lease_that_nothing_uses_is_given_back_to_those_who_wait() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    let used = granted(&store, "used", "one", LONG).await;
    // The host forgot it: its turn was broken off, for example.
    granted(&store, "unused", "one", LONG).await;
    let short = [Lease { ttl: Duration::from_millis(30), ..used.clone() }];
    let until = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        // The row stays valid meanwhile: the lease is given back, and not taken over.
        assert!(std::time::Instant::now() < until, "the lease is not given back");
        let asked = store.acquire(&session("unused"), "two", LONG).await.unwrap();
        store.renew(&short).await.unwrap();
        store.renew(std::slice::from_ref(&used)).await.unwrap();
        if let Acquired::Granted(lease) = asked {
            assert_eq!(server.sql("select count(*) from ctx.lease where holder = 'one'"), "1");
            assert_eq!(lease.holder, "two");
            break;
        }
    }
}

#[tokio::test]
async fn the_status_shows_the_leases_of_hosts_that_live() {
    let Some(server) = server().await else { return };
    let store = store(&server, "acme").await;
    granted(&store, "a", "gateway-1/17-abc", LONG).await;
    granted(&store, "b", "dead", SHORT).await;
    assert!(is_held(&store, "a", "two").await);
    while server.sql("select count(*) from ctx.host where held_until > clock_timestamp()") != "2" {}
    let leases = store.status().await.unwrap().leases;
    let [lease] = &*leases else { panic!("{leases:?}") };
    assert_eq!((&*lease.key, &*lease.holder, lease.is_wanted), ("a", "gateway-1/17-abc", true));
    assert!(lease.seconds > 0.0 && lease.seconds <= LONG.as_secs_f64());
}

#[tokio::test]
async fn leases_of_the_first_schema_can_be_taken_over() {
    let Some(server) = PostgresServer::start() else { return };
    server.sql(include_str!("../../src/schema/1.sql"));
    server.sql("insert into ctx.schema_version (version) values (1)");
    let lease = "insert into ctx.lease (tenant, agent, key, epoch, holder, held_until)
        values ('acme', 'main', 'k', 7, 'old', now() + interval '1 hour')";
    server.sql(lease);
    server.sql("create role ctx login in role ctx_app");
    migrate(&server.url("postgres")).await.unwrap();
    let store = store(&server, "acme").await;
    assert_eq!(granted(&store, "k", "new", LONG).await.epoch, 8);
}

/// Waits until the process listens.
async fn listening(store: &PostgresStore) {
    let listens = async {
        while !store.health().unwrap().is_listening {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), listens).await.expect("it does not listen");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_wait_are_notified() {
    let Some(mut server) = server().await else { return };
    let (one, two) = (store(&server, "acme").await, store(&server, "acme").await);
    let other = two.of_tenant("other").unwrap();
    for round in 0..2 {
        let never = [
            other.changed(Change::Released(&session("k"))),
            other.changed(Change::Records("main")),
            two.changed(Change::Released(&session("k2"))),
            two.changed(Change::Wanted("two")),
        ];
        let (wanted, released, records) = (
            one.changed(Change::Wanted("one")),
            two.changed(Change::Released(&session("k"))),
            two.changed(Change::Records("main")),
        );
        listening(&one).await;
        listening(&two).await;
        let soon = |change| tokio::time::timeout(Duration::from_secs(60), change);
        let lease = granted(&one, "k", "one", LONG).await;
        assert!(is_held(&two, "k", "two").await);
        soon(wanted).await.expect("the holder is not notified");
        one.release(&lease).await.unwrap();
        soon(released).await.expect("the host that waits is not notified");
        one.put("main", RecordKind::Fact, &[]).await.unwrap();
        let record = ctx_store::Record { id: format!("{round}"), bytes: b"{}".into() };
        one.put("main", RecordKind::Fact, &[record]).await.unwrap();
        soon(records).await.expect("the records are not notified");
        for change in never {
            let now = tokio::time::timeout(Duration::ZERO, change).await;
            assert!(now.is_err(), "another change is notified");
        }
        // Both connect again.
        server.crash();
        let ended = async {
            while one.health().unwrap().is_listening || two.health().unwrap().is_listening {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it listens to nothing");
        server.restart();
    }
}
