//! Tenants over shared connections: none sees or changes what another wrote.
//!
//! Each value carries the mark of the tenant that wrote it, so that a leak is seen in any answer.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use ctx_core::{ErrorKind, Result};
use ctx_store::{
    Acquired, Directory, Lease, Leases, Line, LogHead, LogName, SessionLogs, SessionName,
};
use ctx_store_postgres::{Options, PostgresStore};
use ctx_testkit::{Random, cases};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::{server, store, tenant};

/// The number of reads and writes.
const ALL: u32 = 100_000;

/// The number of tasks, which share two connections.
const TASKS: u64 = 4;

const TENANTS: [&str; 6] = [
    "acme",
    "ACME",
    "other",
    "' or '1'='1",
    "acme'; set ctx.tenant = 'other'; --",
    "$1\\\u{202e}%",
];

/// Tenants that have no rows, or cannot be.
const WRONG: [&str; 6] = ["", " ", "acme ", "acme\0", "%", "acme\0'; reset ctx.tenant; --"];

/// Names of all kinds. All tenants use the same.
const NAMES: [&str; 7] = [
    "main",
    "main2",
    "' or true; --",
    "x'); delete from ctx.line; select ('",
    "\\'; set role postgres; --",
    "{}$1\n\t\u{202e}",
    "a\0b",
];

/// All that a role can read.
const READ_ALL: &str = "select entry from ctx.session;
    select agent || id || convert_from(body, 'utf8') from ctx.line;
    select agent || coalesce(holder, '') from ctx.lease; select agent || file from ctx.log;
    select holder from ctx.host";

/// Statements of the program's role. What they read is `OWN`'s, or fails.
const READS: [&str; 15] = [
    "ALL",
    "set ctx.tenant = ''; ALL",
    "begin; set local ctx.tenant = OTHER; set local ctx.tenant = OWN; ALL",
    "begin; set local ctx.tenant = OTHER; reset ctx.tenant; ALL",
    "begin; set local ctx.tenant = OTHER; commit; ALL",
    "begin; set local ctx.tenant = OWN; savepoint a; set local ctx.tenant = OTHER; \
        rollback to a; ALL",
    "set ctx.tenant = OWN; set row_security = off; ALL",
    "set ctx.tenant = OWN; set role ctx_app; ALL",
    "set role postgres; ALL",
    "set session authorization postgres; ALL",
    "set ctx.tenant = OWN; update ctx.line set id = id where tenant = OTHER \
        returning convert_from(body, 'utf8')",
    "set ctx.tenant = OWN; delete from ctx.session where tenant = OTHER or entry = '' \
        returning entry",
    // A function that looks cheap is not called with rows of another tenant.
    "set ctx.tenant = OWN; create temp table seen (v text); \
        create function pg_temp.leak(v text) returns bool language plpgsql cost 0.0001 \
        as $$ begin insert into seen values (v); return true; end $$; \
        select count(*) from ctx.session where pg_temp.leak(entry); select v from seen",
    "select query from pg_stat_activity",
    "analyze ctx.session; select most_common_vals::text from pg_stats where schemaname = 'ctx'",
];

/// Statements that the program's role is refused.
const REFUSED: [&str; 16] = [
    "insert into ctx.session values (OTHER, 'main', 'forged', 1, '{}')",
    "insert into ctx.session values (OTHER, 'main', 'main', 1, '{}') on conflict do nothing",
    "insert into ctx.lease values (OTHER, 'main', 'forged', 9, 'x', now())",
    "insert into ctx.host values (OTHER, 'forged', 9, now())",
    "insert into ctx.log values (OTHER, 'main', 'forged', 1, 1)",
    "insert into ctx.line values (OTHER, 'main', 'forged', 1, 'x', 1, '')",
    "insert into ctx.session values (OWN, 'main', 'moved', 1, '{}'); \
        update ctx.session set tenant = OTHER",
    "alter table ctx.line disable row level security",
    "alter table ctx.line no force row level security",
    "drop policy tenant on ctx.session",
    "create policy every on ctx.session using (true)",
    "truncate ctx.line",
    "alter role ctx bypassrls",
    "grant postgres to ctx",
    "set local row_security = off; select from ctx.line",
    "create function ctx.own() returns int language sql as 'select 1'",
];

fn mark(tenant: usize) -> String {
    format!("<tenant {tenant}>")
}

/// Whether a text carries a mark that is not this tenant's.
fn is_leak(text: &str, own: usize) -> bool {
    text.match_indices("<tenant ").any(|(at, _)| !text[at..].starts_with(&mark(own)))
}

/// A task that acts for one tenant after the other.
struct Actor {
    stores: Vec<PostgresStore>,
    /// The newest leases of each tenant.
    leases: Arc<Mutex<Vec<Vec<Lease>>>>,
    raw: Client,
    random: Random,
}

/// What one step works with.
struct Names {
    session: SessionName,
    log: LogName,
    lines: Vec<Line>,
    json: String,
    holder: String,
}

impl Actor {
    fn names(&mut self, own: usize) -> Names {
        let mark = mark(own);
        let agent = match self.random.once_in(4) {
            true => format!("agent {mark}"),
            false => self.random.pick(&NAMES).to_owned(),
        };
        let [key, file] = [(); 2].map(|()| self.random.pick(&NAMES).to_owned());
        let line = |_| {
            let id = format!("{mark}{}{}", self.random.pick(&NAMES), self.random.next());
            Line { bytes: format!("{id} {mark}'; --").replace('\0', "").into(), id }
        };
        Names {
            lines: (0..2).map(line).collect(),
            log: LogName { agent: agent.clone(), file },
            session: SessionName { agent, key },
            json: format!("{{\"of\": \"{mark}', '{}\"}}", self.random.pick(&NAMES)),
            holder: format!("host {mark}{}", self.random.below(2)),
        }
    }

    /// Returns a lease of the tenant, or another's.
    fn lease(&mut self, own: usize) -> Option<Lease> {
        let of = if self.random.once_in(3) { self.random.below(TENANTS.len()) } else { own };
        let leases = self.leases.lock().unwrap();
        let at = self.random.below(leases[of].len());
        leases[of].get(at).cloned()
    }

    /// Does something for a tenant, and returns the answer as a text.
    async fn act(&mut self, own: usize) -> String {
        let (names, lease) = (self.names(own), self.lease(own));
        let (choice, store) = (self.random.below(12), self.stores[own].clone());
        let done = match (choice, lease) {
            (0..6, _) => directory(&store, choice, names).await,
            (6..10, _) => write(&store, &self.leases, own, choice, names).await,
            (10, Some(lease)) => {
                let lease = Lease { holder: names.holder, ..lease };
                store.renew(&[lease]).await.map(|kept| format!("{kept:?}"))
            }
            (_, Some(lease)) => {
                // A lease and a log of their own each: the lease may be another tenant's.
                let found = store.append(&lease, &names.log, LogHead::NEW, &names.lines).await;
                found.map(|head| format!("{head:?}"))
            }
            _ => Ok(String::new()),
        };
        done.unwrap_or_else(|error| format!("{error:?} {error}"))
    }

    /// Starts something for a tenant and drops it.
    async fn break_off(&mut self, own: usize) {
        let (most, mut polls) = (self.random.within(1..=6), 0);
        let mut act = pin!(self.act(own));
        let polled = poll_fn(|context| {
            polls += 1;
            match act.as_mut().poll(context) {
                Poll::Pending if polls < most => Poll::Pending,
                _ => Poll::Ready(()),
            }
        });
        polled.await;
    }

    /// Reads as a tenant that has no rows.
    async fn act_wrongly(&mut self, names: Names) {
        let wrong = self.random.pick(&WRONG);
        let store = match self.stores[0].of_tenant(wrong) {
            Ok(store) => store,
            Err(error) => return assert_eq!(error.kind(), ErrorKind::Config, "{error}"),
        };
        // The database stores no NUL in a text, and refuses it.
        let entry = store.get(&names.session).await.unwrap_or_default();
        let lines = store.read(&names.log, 0, 1).await.unwrap_or_default();
        assert!(entry.is_none() && lines.is_empty(), "{wrong:?}: {entry:?} {lines:?}");
    }

    /// Attacks the database with the program's role, and returns what it answered.
    async fn attack(&mut self, own: usize) -> String {
        let other = (own + self.random.within(1..=TENANTS.len() - 1)) % TENANTS.len();
        let quoted = |tenant: usize| format!("'{}'", TENANTS[tenant].replace('\'', "''"));
        let fill = |sql: &str| {
            let sql = sql.replace("OWN", &quoted(own)).replace("OTHER", &quoted(other));
            sql.replace("ALL", READ_ALL)
        };
        let is_read = self.random.once_in(2);
        let sql = match is_read {
            true => fill(self.random.pick(&READS)),
            false => fill(&format!("begin; set ctx.tenant = OWN; {}", self.random.pick(&REFUSED))),
        };
        let answer = self.raw.simple_query(&sql).await;
        self.raw.batch_execute("rollback").await.unwrap();
        self.raw.batch_execute("discard all").await.unwrap();
        assert!(is_read || answer.is_err(), "{sql}");
        let shown = |row: &SimpleQueryMessage| match row {
            SimpleQueryMessage::Row(row) => row.get(0).unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        answer.map_or_else(|error| format!("{error:?}"), |rows| rows.iter().map(shown).collect())
    }

    async fn run(mut self, steps: u32) {
        for step in 0..steps {
            let own = self.random.below(TENANTS.len());
            match self.random.below(20) {
                0..14 => {
                    let answer = self.act(own).await;
                    assert!(!is_leak(&answer, own), "step {step}: {answer}");
                }
                14..17 => {
                    let answer = self.attack(own).await;
                    assert!(!is_leak(&answer, own), "step {step}: {answer}");
                }
                17..19 => self.break_off(own).await,
                _ => {
                    let names = self.names(own);
                    self.act_wrongly(names).await;
                }
            }
        }
    }
}

/// Uses the directory, or reads a log.
async fn directory(store: &PostgresStore, choice: usize, names: Names) -> Result<String> {
    let Names { session, log, json, .. } = names;
    Ok(match choice {
        0 => format!("{:?}", store.get(&session).await?),
        1 => {
            let seen = store.get(&session).await?.map(|entry| entry.version);
            format!("{:?}", store.compare_and_put(&session, seen, &json).await?)
        }
        2 => format!("{:?}", store.list(&session.agent, None, 100).await?),
        3 => format!("{:?}", store.agents().await?),
        4 => match store.get(&session).await? {
            Some(entry) => format!("{:?}", store.retire(&session, entry.version).await?),
            None => String::new(),
        },
        _ => {
            let lines = store.read(&log, 0, 1 << 20).await?;
            let texts = lines.iter().map(|line| String::from_utf8_lossy(&line.bytes));
            format!("{lines:?} {:?}", texts.collect::<Vec<_>>())
        }
    })
}

/// Writes a log under a lease.
async fn write(
    store: &PostgresStore,
    leases: &Mutex<Vec<Vec<Lease>>>,
    own: usize,
    choice: usize,
    names: Names,
) -> Result<String> {
    let Names { session, log, lines, holder, .. } = names;
    let lease = match store.acquire(&session, &holder, Duration::from_millis(200)).await? {
        Acquired::Granted(lease) => lease,
        held => return Ok(format!("{held:?}")),
    };
    let head = store.head(&log).await?.unwrap_or(LogHead::NEW);
    let done = match choice {
        6 | 7 => store.append(&lease, &log, head, &lines).await.map(|head| format!("{head:?}")),
        8 => store.replace(&lease, &log, head, &lines).await.map(|head| format!("{head:?}")),
        _ => store.remove(&lease, &log).await.map(|()| String::new()),
    };
    match own % 2 {
        0 => store.release(&lease).await?,
        _ => {
            let mut leases = leases.lock().unwrap();
            leases[own].push(lease);
            let excess = leases[own].len().saturating_sub(20);
            leases[own].drain(..excess);
        }
    }
    done
}

/// Returns the tenant and the text of each row, for a role that sees all.
async fn rows(client: &Client) -> Vec<(String, String)> {
    let sql = "select tenant, entry from ctx.session union all
        select tenant, id || convert_from(body, 'utf8') from ctx.line union all
        select tenant, holder from ctx.lease where holder is not null union all
        select tenant, holder from ctx.host";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn raw(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaks_over_shared_connections() {
    let Some(server) = server().await else { return };
    let options = Options { connections: 2, ..tenant(TENANTS[0]) };
    let first = PostgresStore::open(&server.url("ctx"), options).await.unwrap();
    let stores: Vec<_> = TENANTS.iter().map(|name| first.of_tenant(name).unwrap()).collect();
    let leases = Arc::new(Mutex::new(vec![Vec::new(); TENANTS.len()]));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (stores, leases) = (stores.clone(), leases.clone());
        let (raw, random) = (raw(&server.url("ctx")).await, Random::seeded(task));
        let actor = Actor { stores, leases, raw, random };
        tasks.spawn(actor.run(cases(ALL) / TASKS as u32));
    }
    tasks.join_all().await;
    let owner = raw(&server.url("postgres")).await;
    let rows = rows(&owner).await;
    for (own, name) in TENANTS.iter().enumerate() {
        let mut own_rows = rows.iter().filter(|(tenant, _)| tenant == name);
        assert!(own_rows.clone().count() > 10, "{name} wrote nothing");
        assert!(own_rows.all(|(_, text)| text.contains(&mark(own)) && !is_leak(text, own)));
    }
    // A leak is seen.
    assert!(rows.iter().any(|(_, text)| is_leak(text, 0)));
    // Calls that were broken off have left no transaction open: both connections answer.
    let session = SessionName { agent: "main".into(), key: "main".into() };
    let (one, two) = tokio::join!(stores[0].get(&session), stores[1].get(&session));
    assert!(one.is_ok() && two.is_ok());
    let open = "select count(*) from pg_stat_activity
        where usename = 'ctx' and state like 'idle in transaction%'";
    assert_eq!(server.sql(open), "0");
}

#[tokio::test]
async fn a_tenant_is_erased_alone() {
    let Some(server) = server().await else { return };
    let stores = [store(&server, "acme").await, store(&server, "other").await];
    let session = SessionName { agent: "main".into(), key: "k".into() };
    let log = LogName { agent: "main".into(), file: "s".into() };
    let lines = [Line { id: "a".into(), bytes: b"{}".into() }];
    let mut leases = Vec::new();
    for store in &stores {
        let granted = store.acquire(&session, "host", Duration::from_secs(60)).await.unwrap();
        let Acquired::Granted(lease) = granted else { panic!("tenants share a lease") };
        store.append(&lease, &log, LogHead::NEW, &lines).await.unwrap();
        store.compare_and_put(&session, None, "{}").await.unwrap();
        leases.push(lease);
    }
    let tables = "select table_name from information_schema.tables
        where table_schema = 'ctx' and table_name <> 'schema_version'";
    let tables: Vec<String> = server.sql(tables).lines().map(str::to_owned).collect();
    let count = |tenant: &str| -> Vec<String> {
        let count = |table| format!("select count(*) from ctx.{table} where tenant = '{tenant}'");
        tables.iter().map(|table| server.sql(&count(table))).collect()
    };
    let before = count("other");
    assert_eq!(stores[0].erase_tenant().await.unwrap(), 5);
    assert_eq!(stores[0].erase_tenant().await.unwrap(), 0);
    assert_eq!(count("other"), before);
    let left = count("acme");
    let left = tables.iter().zip(&left).filter(|(_, rows)| *rows != "0");
    let mut left: Vec<_> = left.map(|(table, rows)| format!("{table} {rows}")).collect();
    left.sort();
    assert_eq!(left, ["log 1", "record 1", "stream 1"]);
    // The lease that a host still has is worth nothing, even when the session is leased again.
    let again = stores[0].acquire(&session, "another host", Duration::from_secs(60)).await;
    assert!(matches!(again.unwrap(), Acquired::Granted(_)));
    let refused = stores[0].append(&leases[0], &log, LogHead::NEW, &lines).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Locked);
    stores[1].append(&leases[1], &log, LogHead { generation: 1, lines: 1 }, &[]).await.unwrap();
    stores[0].drop_tenant().await.unwrap();
    assert!(count("acme").iter().all(|rows| rows == "0"));
    assert_eq!(count("other"), before);
}
