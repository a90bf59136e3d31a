use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use ctx_store::{Acquired, Leases, Line, LogHead, LogName, SessionLogs, SessionName};
use ctx_store_postgres::{Options, PostgresStore, VERSION, migrate};
use ctx_testkit::postgres::PostgresServer;

use crate::{server, store, tenant};

fn shown(error: &Error, kind: ErrorKind, words: &str, hint: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = format!("{error} {}", error.hint_text().unwrap_or_default());
    assert!(text.contains(words) && text.contains(hint), "{text}");
}

async fn refused(url: &str) -> Error {
    let options = Options { patience: Duration::ZERO, ..tenant("acme") };
    PostgresStore::open(url, options).await.unwrap_err()
}

#[tokio::test]
async fn what_cannot_be_opened_says_what_to_do() {
    let Some(server) = PostgresServer::start() else { return };
    let config = ErrorKind::Config;
    let url = server.url("postgres");
    shown(&refused("postgres:/nothing").await, config, "invalid URL", "postgres://USER");
    shown(&refused(&url).await, config, "no schema", "ctx store migrate");
    let nobody = refused(&server.url("nobody")).await;
    shown(&nobody, config, "refuses the login", "user and password");
    let other = refused(&url.replace("/postgres?", "/other?")).await;
    shown(&other, config, "does not exist", "create the database");
    let closed = "postgres://ctx@127.0.0.1:1/postgres";
    shown(&refused(closed).await, ErrorKind::Upstream, "cannot be reached", "start the database");
    assert_eq!(migrate(&url).await.unwrap(), (0, VERSION));
    assert_eq!(migrate(&url).await.unwrap(), (VERSION, VERSION));
    shown(&refused(&url).await, config, "bypass", "in role ctx_app");
    server.sql("create role stranger login");
    shown(&refused(&server.url("stranger")).await, config, "privilege", "grant ctx_app");
    server.sql("create role ctx login in role ctx_app");
    let unnamed = Options { tenant: " ".into(), ..tenant("") };
    let error = PostgresStore::open(&server.url("ctx"), unnamed).await.unwrap_err();
    shown(&error, config, "no name", "leave the key out");
    server.sql("insert into ctx.schema_version (version) values (99)");
    for error in [refused(&server.url("ctx")).await, migrate(&url).await.unwrap_err()] {
        shown(&error, config, "newer", "newest ctx");
    }
}

#[tokio::test]
async fn a_crash_of_the_server_is_waited_for() {
    let Some(mut server) = server().await else { return };
    let store = store(&server, "acme").await;
    let session = SessionName { agent: "main".into(), key: "agent:main:main".into() };
    let log = LogName { agent: "main".into(), file: "s".into() };
    let ttl = Duration::from_secs(60);
    let Acquired::Granted(lease) = store.acquire(&session, "one", ttl).await.unwrap() else {
        panic!("nobody else is there");
    };
    let lines = [Line { id: "a".into(), bytes: b"{}".into() }];
    server.crash();
    let append = store.append(&lease, &log, LogHead::NEW, &lines);
    let restarted = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    let (appended, server) = tokio::join!(append, restarted);
    assert_eq!(appended.unwrap(), LogHead { generation: 1, lines: 1 });
    assert_eq!(server.unwrap().sql("select count(*) from ctx.line"), "1");
}
