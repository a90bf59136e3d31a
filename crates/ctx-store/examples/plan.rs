//! Plans a store: what hosts and sessions cost it, and what happens when hosts die at once.
//!
//! `cargo run -p ctx-store --example plan -- hosts=1000 sessions=1000000 cores=16` prints a table.
//! The arguments and their defaults are [`DEFAULTS`]. The costs were measured with PostgreSQL 15 on
//! one core of 2 GHz; docs of `crates/ctx-runtime/benches/store` say how. The same seed gives the same table.
//!
//! Statements arrive at random, and each waits for a processor of the database. Each host renews all
//! its leases with one statement. A message to a session of a dead host asks for its lease until the
//! lease has expired; it does not wait for the answer before it asks again, so the storm is an upper
//! bound.

#![allow(clippy::print_stdout)] // The table is this program's output.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ctx_testkit::Random;

/// The arguments. Costs are in microseconds of one processor, and in bytes of the write-ahead log.
const DEFAULTS: [(&str, f64); 15] = [
    ("hosts", 1_000.0),
    ("sessions", 1_000_000.0),
    ("turns", 5_000.0),
    ("lease", 5.0),
    ("poll", 0.2),
    ("seconds", 20.0),
    ("seed", 1.0),
    // The database: processors, megabytes a second of its log, and connections for each host.
    ("cores", 16.0),
    ("log-megabytes", 200.0),
    ("connections", 8.0),
    ("max-connections", 2_000.0),
    // Appends; a statement that changes little, with its transaction; a row that is renewed.
    ("append-micros", 400.0),
    ("statement-micros", 150.0),
    ("row-micros", 8.0),
    ("row-bytes", 150.0),
];

/// A statement: when it arrives, and how long it takes a processor, both in seconds.
struct Statement {
    at: f64,
    cost: f64,
    is_takeover: bool,
}

struct Plan(BTreeMap<&'static str, f64>);

impl Plan {
    fn of(&self, name: &str) -> f64 {
        self.0[name]
    }

    /// Returns a time within the run.
    fn any_time(&self, random: &mut Random) -> f64 {
        random.below(1 << 30) as f64 / f64::from(1 << 30) * self.of("seconds")
    }

    /// Returns all statements of a run in which `dead` hosts die halfway.
    fn statements(&self, dead: usize) -> Vec<Statement> {
        let random = &mut Random::seeded(self.of("seed") as u64);
        let (seconds, lease) = (self.of("seconds"), self.of("lease"));
        let (death, statement) = (seconds / 2.0, self.of("statement-micros") * 1e-6);
        let (hosts, held) = (self.of("hosts") as usize, self.of("sessions") / self.of("hosts"));
        let renewal = statement + held * self.of("row-micros") * 1e-6;
        let mut all = Vec::new();
        let mut add = |at, cost, is_takeover| all.push(Statement { at, cost, is_takeover });
        let mut ends = vec![0.0; hosts];
        for (host, end) in ends.iter_mut().enumerate() {
            let mut at = self.any_time(random) % (lease / 3.0);
            while at < if host < dead { death } else { seconds } {
                add(at, renewal, false);
                *end = at + lease;
                at += lease / 3.0;
            }
        }
        for _ in 0..(self.of("turns") * seconds) as usize {
            let (mut at, host) = (self.any_time(random), random.below(hosts));
            if host < dead && at >= death {
                while at < ends[host] {
                    // The request, and the wish.
                    add(at, 2.0 * statement, false);
                    at += self.of("poll").min(ends[host] - at).max(1e-3);
                }
                // The grant, the entry, the end of the log, its lines.
                add(at, 4.0 * statement, true);
            }
            add(at, self.of("append-micros") * 1e-6, false);
        }
        all.sort_by(|a, b| a.at.total_cmp(&b.at));
        all
    }

    /// Runs the statements, and returns a row of the table.
    fn row(&self, dead: usize) -> String {
        let all = self.statements(dead);
        let (seconds, death) = (self.of("seconds"), self.of("seconds") / 2.0);
        // When each processor is free, in nanoseconds.
        let mut free: BinaryHeap<_> = (0..self.of("cores") as usize).map(|_| Reverse(0)).collect();
        let (mut waits, mut last, mut takeovers) = (Vec::new(), 0.0_f64, 0);
        for statement in &all {
            let Some(Reverse(begins)) = free.pop() else { break };
            let done = (begins as f64 * 1e-9).max(statement.at) + statement.cost;
            free.push(Reverse((done * 1e9) as u64));
            waits.push((done - statement.at) * 1e3);
            if statement.is_takeover {
                takeovers += 1;
                // Later messages find a lease that has expired long ago.
                if statement.at < death + self.of("lease") {
                    last = last.max(done - death);
                }
            }
        }
        waits.sort_by(f64::total_cmp);
        let p99 = waits[waits.len() * 99 / 100];
        let busy = all.iter().map(|statement| statement.cost).sum::<f64>() / seconds;
        let rows = self.of("sessions") * 3.0 / self.of("lease") + 6.0 * self.of("turns");
        let log = rows * self.of("row-bytes") / 1e6;
        let connections = self.of("hosts") * self.of("connections");
        let shares = [
            ("processors", busy / self.of("cores")),
            ("log", log / self.of("log-megabytes")),
            ("connections", connections / self.of("max-connections")),
        ];
        let first = shares.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(&shares[0]);
        let rate = all.len() as f64 / seconds;
        format!(
            "| {dead} | {rate:.0} | {busy:.1} | {log:.0} | {connections:.0} | {p99:.1} | {takeovers} \
             | {last:.2} | {} ({:.0} %) |",
            first.0,
            first.1 * 100.0
        )
    }
}

fn main() {
    let mut plan = Plan(BTreeMap::from(DEFAULTS));
    for argument in std::env::args().skip(1) {
        let (name, number) = argument.split_once('=').unwrap_or((&argument, ""));
        let known = plan.0.get_mut(name).unwrap_or_else(|| panic!("unknown argument {name}"));
        *known = number.parse().unwrap_or_else(|_| panic!("{name}=NUMBER"));
    }
    let (hosts, lease) = (plan.of("hosts"), plan.of("lease"));
    println!(
        "renewals: {:.0} statements/s, {:.0} rows/s\n",
        hosts * 3.0 / lease,
        plan.of("sessions") * 3.0 / lease
    );
    println!(
        "| hosts die | statements/s | processors busy | log MB/s | connections | p99 ms | messages to them | last of the waiting after s | first to saturate |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    for dead in [0, 1, 10, 100] {
        println!("{}", plan.row(dead));
    }
}
