//! The bare statement, run by pgbench.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use ctx_testkit::postgres::PostgresServer;

use crate::{Figures, Sizes};

/// The lines of an append, and the bytes of a line.
pub(crate) struct Shape {
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
}

/// How the statement is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sent {
    /// Alone. The connection has the tenant.
    Bare,
    /// As the store sends it: in a transaction of the tenant, in one round trip.
    Whole,
}

/// The leases and logs. A client has some of its own, so that it knows their ends.
const LOGS: &str = "
    insert into ctx.lease select 'TENANT', 'main', 'k' || n, 1, 'host'
        from generate_series(0, SESSIONS) as n;
    insert into ctx.log select 'TENANT', 'main', 's' || n, 1, 0 from generate_series(0, SESSIONS) as n";

/// What finds the log that is next, and its end.
const NEXT: &str = r"\set log :client_id + :clients * (:turn % :each)
\set at LINES * (:turn / :each)
\set turn :turn + 1
";

/// What the store sends before and after the statement.
const BEGIN: &str = r"\startpipeline
begin;
select set_config('ctx.tenant', 'TENANT', true), set_config('statement_timeout', '10s', true);";
const COMMIT: &str = r"commit;
\endpipeline
";

/// `APPEND` of ctx-store-postgres, with lines that it makes itself.
const APPEND: &str = "
with held as materialized (
    select from ctx.lease where tenant = 'TENANT' and agent = 'main' and key = 'k' || :log
        and epoch = 1 and holder is not null for share
), moved as (
    update ctx.log set lines = lines + LINES
    where tenant = 'TENANT' and agent = 'main' and file = 's' || :log and generation = 1
        and lines = :at and exists (select from held)
    returning lines
)
insert into ctx.line (tenant, agent, file, seq, id, epoch, body)
select 'TENANT', 'main', 's' || :log, :at + n, (:at + n)::text, 1, 'BODY'::bytea
from moved, generate_series(0, LINES - 1) as n returning seq;
";

/// Runs the statement with as many connections as all hosts have.
pub(crate) fn run(server: &PostgresServer, sizes: &Sizes, shape: &Shape, sent: Sent) -> Figures {
    let tenant = format!("pgbench-{sent:?}");
    let logs = LOGS.replace("SESSIONS", &sizes.of("sessions").to_string());
    server.sql(&logs.replace("TENANT", &tenant));
    let clients = sizes.of("hosts") * sizes.of("connections");
    let each = (sizes.of("sessions") / clients).max(1);
    let script = match sent {
        Sent::Bare => [NEXT, APPEND].concat(),
        Sent::Whole => [NEXT, BEGIN, APPEND, COMMIT].concat(),
    };
    let script = script.replace("TENANT", &tenant).replace("LINES", &shape.lines.to_string());
    let script = script.replace("BODY", &"x".repeat(shape.bytes));
    let mut pgbench = server
        .program("pgbench")
        .env("PGOPTIONS", format!("-c ctx.tenant={tenant}"))
        .args(["-n", "-M", "prepared", "-f", "-", "-D", "turn=0", "-l", "--log-prefix"])
        .arg(server.folder().join(&tenant))
        .args(["-D", &format!("clients={clients}"), "-D", &format!("each={each}")])
        .args(["-c", &clients.to_string(), "-j", "2", "-T", &sizes.of("seconds").to_string()])
        .arg(server.url("ctx"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pgbench can be run");
    let mut stdin = pgbench.stdin.take().expect("it is piped");
    stdin.write_all(script.as_bytes()).expect("pgbench reads its script");
    drop(stdin);
    let done = pgbench.wait_with_output().expect("pgbench ends");
    assert!(done.status.success(), "pgbench: {}", String::from_utf8_lossy(&done.stderr));
    let appended = server.sql(&format!("select sum(lines) from ctx.log where tenant = '{tenant}'"));
    let times = times(server, &tenant);
    assert_eq!(appended, (times.len() * shape.lines).to_string(), "each statement appends");
    Figures { times, seconds: sizes.time().as_secs_f64() }
}

/// Reads the times of all transactions: the third number of each line of the logs.
fn times(server: &PostgresServer, prefix: &str) -> Vec<Duration> {
    let files = std::fs::read_dir(server.folder()).expect("a folder").flatten();
    let logs = files.filter(|file| file.file_name().to_string_lossy().starts_with(prefix));
    let text: String =
        logs.map(|log| std::fs::read_to_string(log.path()).expect("a log")).collect();
    let micros = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok());
    micros.map(Duration::from_micros).collect()
}
