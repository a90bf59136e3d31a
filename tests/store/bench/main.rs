//! The shared store at scale: several hosts, whose sessions are on one PostgreSQL, against the bare
//! statement and against one host on files.
//!
//! `cargo bench -p ctx-tests --bench store` takes some minutes; `-- --seconds 2 --sessions 100
//! --tenants 10` less than one. The arguments and their defaults are [`DEFAULTS`]; `--standby 1` adds
//! a synchronous standby. PostgreSQL with `pgbench` must be installed. All processes are on one
//! machine, and share its processors and disk.
//!
//! - *pgbench*: the statement of an append, with the same number of connections, lines and bytes as
//!   the hosts': alone, and in the transaction that the store sends. The server syncs each commit to
//!   its disk.
//! - *appends*: host processes that call the store directly.
//! - *turns*: host processes that run turns of a scripted model; each turn commits to the store.
//! - *files*: one host process, whose turns are committed to files.
//! - *memory*: filling agents' memories, recalls, and forgetting.
//! - *takeover*: how long a message to a session of a killed host takes elsewhere.

#![allow(clippy::print_stdout)] // The figures are this program's output.

mod host;
mod memory;
mod pgbench;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ctx_store_postgres::migrate;
use ctx_testkit::postgres::PostgresServer;

/// The arguments: sessions and tenants over all hosts; connections, and sessions that are used at
/// once, of each host; seconds of each part; sessions of the host that is killed; whether there is a
/// standby; segments over all tenants, and of the one that a host without files recalls from.
const DEFAULTS: [(&str, usize); 10] = [
    ("sessions", 1_000),
    ("tenants", 100),
    ("hosts", 4),
    ("connections", 8),
    ("at-once", 16),
    ("seconds", 20),
    ("killed", 20),
    ("standby", 0),
    ("segments", 100_000),
    ("cold", 20_000),
];

/// How long a lease is valid.
const LEASE: Duration = Duration::from_secs(5);

/// The numbers of a run.
#[derive(Clone, Debug)]
struct Sizes(BTreeMap<String, usize>);

impl Sizes {
    fn parse(arguments: &[String]) -> Self {
        let mut all: BTreeMap<_, _> =
            DEFAULTS.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        for pair in arguments.chunks(2) {
            let (name, number) = (pair[0].trim_start_matches('-'), pair.get(1));
            let known = all.get_mut(name).unwrap_or_else(|| panic!("unknown argument {name}"));
            *known =
                number.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name}: a number"));
        }
        Self(all)
    }

    fn of(&self, name: &str) -> usize {
        self.0[name]
    }

    fn arguments(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(name, number)| [format!("--{name}"), number.to_string()])
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.of("seconds") as u64)
    }
}

/// What a part measured: the calls, how long each took, and how long all.
struct Figures {
    times: Vec<Duration>,
    seconds: f64,
}

impl Figures {
    fn rate(&self) -> f64 {
        self.times.len() as f64 / self.seconds
    }

    fn row(&self, what: &str, appends: f64, bare: f64) -> String {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = |share: f64| {
            let last = times.len().saturating_sub(1) as f64;
            times.get((last * share) as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        format!(
            "| {what} | {:.0} | {appends:.0} | {:.2} | {:.1} | {:.1} |",
            self.rate(),
            appends / bare,
            at(0.5),
            at(0.99)
        )
    }
}

/// A host in a process of its own, which waits for a line after it is ready.
struct HostProcess {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl HostProcess {
    fn start(part: &str, url: &str, number: usize, sizes: &Sizes) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([part, url, &number.to_string()])
            .args(sizes.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a host starts");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, answers }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a host answers");
        assert!(!line.is_empty(), "a host ended early");
        line
    }

    fn go(&mut self) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"go\n").expect("a host listens");
    }
}

/// Runs a part in all hosts at once.
fn hosts(part: &str, url: &str, sizes: &Sizes, ready: impl FnOnce()) -> Figures {
    let numbers = 0..sizes.of("hosts");
    let mut hosts: Vec<_> = numbers.map(|n| HostProcess::start(part, url, n, sizes)).collect();
    hosts.iter_mut().for_each(|host| drop(host.line()));
    ready();
    let began = Instant::now();
    hosts.iter_mut().for_each(HostProcess::go);
    let lines: Vec<_> = hosts.iter_mut().map(HostProcess::line).collect();
    let seconds = began.elapsed().as_secs_f64();
    hosts.iter_mut().for_each(|host| drop(host.child.wait()));
    let micros = lines.iter().flat_map(|line| line.split_whitespace());
    let times = micros.map(|n| Duration::from_micros(n.parse().expect("a number"))).collect();
    Figures { times, seconds }
}

/// Appends and lines that the store has.
fn counts(server: &PostgresServer) -> [f64; 3] {
    let sql = "select (select sum(n_tup_ins + n_tup_upd) from pg_stat_user_tables where \
        schemaname = 'ctx' and relname = 'log') || ' ' || count(*) || ' ' || \
        coalesce(avg(length(body)), 0) from ctx.line";
    let counts = server.sql(sql);
    let mut numbers = counts.split(' ').map(|n| n.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().unwrap_or_default())
}

/// Waits until the counters of the server are complete: its processes report them when they end.
fn settled(server: &PostgresServer) -> [f64; 3] {
    let open = "select count(*) from pg_stat_activity where usename = 'ctx'";
    while server.sql(open) != "0" {}
    counts(server)
}

/// Measures how long a message to a session of a killed host takes, in seconds.
fn takeover(url: &str, sizes: &Sizes) -> Vec<f64> {
    let mut killed = HostProcess::start("hold", url, 0, sizes);
    killed.line();
    let mut other = HostProcess::start("take", url, 1, sizes);
    other.line();
    killed.child.kill().expect("it runs");
    other.go();
    let line = other.line();
    drop(other.child.wait());
    line.split_whitespace().map(|n| n.parse::<f64>().expect("a number") / 1e6).collect()
}

fn measure(sizes: &Sizes) {
    let Some(server) = PostgresServer::durable() else { return };
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    tokio.block_on(migrate(&server.url("postgres"))).expect("a schema");
    server.sql("create role ctx login in role ctx_app");
    let standby = (sizes.of("standby") > 0).then(|| server.synchronous_standby());
    let url = server.url("ctx");
    // The hosts' connections may be open still when they are ready, so the opening is counted, too.
    let before = settled(&server);
    let mut opened = before;
    let turns = hosts("turns", &url, sizes, || opened = counts(&server));
    let after = settled(&server);
    let (appends, lines) = (after[0] - before[0], after[1] - before[1]);
    let a_turn = (after[1] - opened[1]) / turns.times.len() as f64;
    let per_append = (lines / appends).round().max(1.0) as usize;
    println!(
        "{} hosts, {} sessions, {} tenants, {} connections a host{}; {:.1} lines and {:.2} appends \
         a turn; {per_append} lines of {:.0} bytes an append in the other parts",
        sizes.of("hosts"),
        sizes.of("sessions"),
        sizes.of("tenants"),
        sizes.of("connections"),
        if standby.is_some() { ", a synchronous standby" } else { "" },
        a_turn,
        a_turn * appends / lines,
        after[2],
    );
    let shape = pgbench::Shape { lines: per_append, bytes: after[2] as usize };
    let bare = pgbench::run(&server, sizes, &shape, pgbench::Sent::Bare);
    let whole = pgbench::run(&server, sizes, &shape, pgbench::Sent::Whole);
    let mut direct = sizes.clone();
    direct.0.extend([("lines".to_owned(), shape.lines), ("bytes".to_owned(), shape.bytes)]);
    let direct = hosts("appends", &url, &direct, || ());
    let files = hosts("turns", "-", &Sizes(one_host(sizes)), || ());
    println!("\n| part | calls/s | appends/s | of pgbench | p50 ms | p99 ms |");
    println!("|---|--:|--:|--:|--:|--:|");
    let base = bare.rate();
    println!("{}", bare.row("pgbench, the bare statement", base, base));
    println!("{}", whole.row("pgbench, in a transaction of the tenant", whole.rate(), base));
    println!("{}", direct.row("appends, all hosts", direct.rate(), base));
    let rate = turns.rate();
    println!("{}", turns.row("turns, all hosts", rate * a_turn * appends / lines, base));
    println!("{}", files.row("turns in files, one host", files.rate(), base));
    println!("\nturns in the store / turns in files: {:.2}", rate / files.rate());
    let mut waits = takeover(&url, sizes);
    waits.sort_by(f64::total_cmp);
    println!(
        "takeover of {} sessions, leases of {} s: first after {:.2} s, last after {:.2} s",
        waits.len(),
        LEASE.as_secs(),
        waits[0],
        waits[waits.len() - 1]
    );
    tokio.block_on(memory::measure(&url, sizes));
}

fn one_host(sizes: &Sizes) -> BTreeMap<String, usize> {
    let mut one = sizes.0.clone();
    one.insert("hosts".to_owned(), 1);
    one.insert("at-once".to_owned(), sizes.of("at-once") * sizes.of("hosts"));
    one
}

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench");
    match arguments.split_at_checked(3) {
        Some(([part, url, number], sizes)) if !part.starts_with('-') => {
            host::run(part, url, number.parse().expect("a number"), sizes);
        }
        _ => measure(&Sizes::parse(&arguments)),
    }
}
