use std::time::Duration;

use ctx_store::{Acquired, Directory, Leases, Line, LogHead, LogName, SessionLogs, SessionName};

use crate::{server, store};

/// Texts that are SQL, if they are not passed as values.
const HOSTILE: [&str; 6] = [
    "acme'; drop table ctx.line; --",
    "' or '1'='1",
    "acme\0",
    "acme\\",
    "$1",
    "\u{202e}emca; set ctx.tenant = 'acme'",
];

fn session(key: &str) -> SessionName {
    SessionName { agent: "main".into(), key: key.into() }
}

#[tokio::test]
async fn a_tenant_sees_and_changes_nothing_of_another() {
    let Some(server) = server().await else { return };
    let (one, two) = (store(&server, "acme").await, store(&server, "other").await);
    let log = LogName { agent: "main".into(), file: "s".into() };
    let ttl = Duration::from_secs(60);
    for (store, text) in [(&one, "secret of acme"), (&two, "of other")] {
        let granted = store.acquire(&session("k"), "host", ttl).await.unwrap();
        let Acquired::Granted(lease) = granted else { panic!("tenants share a lease") };
        let lines = [Line { id: "a".into(), bytes: text.into() }];
        store.append(&lease, &log, LogHead::NEW, &lines).await.unwrap();
        store.compare_and_put(&session("k"), None, "{}").await.unwrap();
    }
    let read = two.read(&log, 0, 1 << 20).await.unwrap();
    assert_eq!(read[0].bytes, b"of other");
    // The role of the program alone, as an injected statement would run.
    let count = |tenant: &str| {
        let begin = match tenant {
            "" => String::new(),
            tenant => format!("set local ctx.tenant = '{tenant}';"),
        };
        server.sql(&format!(
            "begin; set local role ctx; {begin} select count(*) from ctx.line; commit"
        ))
    };
    assert_eq!(count("acme"), "1");
    assert_eq!(count("nobody"), "0");
    let without = std::panic::catch_unwind(|| count(""));
    assert!(without.is_err_and(|_| true), "a statement without a tenant is refused");
    let changed = server.sql(
        "begin; set local role ctx; set local ctx.tenant = 'other'; \
         with gone as (delete from ctx.line returning 1) select count(*) from gone; rollback",
    );
    assert_eq!(changed, "1");
    let forged = "do $$ begin set local role ctx; set local ctx.tenant = 'other'; \
        insert into ctx.session values ('acme', 'main', 'x', 1, '{}'); \
        raise exception 'written'; exception when insufficient_privilege then null; end $$";
    server.sql(forged);
}

#[tokio::test]
async fn text_of_any_kind_is_a_value() {
    let Some(server) = server().await else { return };
    let acme = store(&server, "acme").await;
    acme.compare_and_put(&session("own"), None, "{}").await.unwrap();
    for text in HOSTILE {
        let tenant = store(&server, text.replace('\0', "0").as_str()).await;
        assert!(tenant.get(&session("own")).await.unwrap().is_none(), "{text:?}");
        let odd = acme.compare_and_put(&session(text), None, "{}").await;
        // The database stores no NUL in a text.
        assert_eq!(odd.is_ok(), !text.contains('\0'), "{text:?}: {odd:?}");
        let log = LogName { agent: text.into(), file: text.into() };
        let read = acme.read(&log, 0, 1).await;
        assert!(read.is_err() || read.unwrap().is_empty());
    }
    assert_eq!(acme.list("main", None, 100).await.unwrap().len(), HOSTILE.len());
    assert_eq!(server.sql("select count(*) from ctx.lease"), "0");
}
