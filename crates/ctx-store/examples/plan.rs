//! Plans a store: what hosts and sessions cost it, and what happens when hosts die at once.
//!
//! `cargo run -p ctx-store --example plan -- hosts=1000 sessions=1000000 cores=16` prints a table.
//! The arguments and their defaults are [`DEFAULTS`]. The costs were measured with pgbench on two
//! shared cores, PostgreSQL 15. The same seed gives the same table.
//!
//! Statements arrive at random, and each waits for a processor of the database. Each host renews one
//! row. A message to a session of a dead host asks for its lease until the time of that row has
//! passed, with waits that double; it does not wait for the answer before it asks again, so the storm
//! is an upper bound.

#![allow(clippy::print_stdout)] // The table is this program's output.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ctx_testkit::Random;

/// The arguments. Costs are in microseconds of one processor, and in bytes of the write-ahead log.
const DEFAULTS: [(&str, f64); 18] = [
    ("hosts", 1_000.0),
    ("sessions", 1_000_000.0),
    ("turns", 5_000.0),
    ("lease", 5.0),
    // The waits between two requests for a lease: the first one, and the longest.
    ("first-wait", 0.05),
    ("longest-wait", 1.0),
    // The share of a dead host's sessions that get a message at once.
    ("waiting", 0.05),
    ("seconds", 20.0),
    ("seed", 1.0),
    // The database: processors, megabytes a second of its log, and connections for each host.
    ("cores", 16.0),
    ("log-megabytes", 200.0),
    ("connections", 8.0),
    ("max-connections", 2_000.0),
    // Appends; a statement that changes little, with its transaction; a row that is renewed.
    ("append-micros", 300.0),
    ("append-bytes", 1_600.0),
    ("statement-micros", 150.0),
    ("row-micros", 12.0),
    ("row-bytes", 85.0),
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
        let renewal = statement + self.of("row-micros") * 1e-6;
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
        let waiting = (held * self.of("waiting")) as usize;
        let mut messages: Vec<(f64, usize)> =
            (0..dead).flat_map(|host| vec![(death, host); waiting]).collect();
        let turns = (self.of("turns") * seconds) as usize;
        messages.extend((0..turns).map(|_| (self.any_time(random), random.below(hosts))));
        for (mut at, host) in messages {
            if host < dead && at >= death {
                let mut wait = self.of("first-wait");
                while at < ends[host] {
                    // The request, and the question to the holder.
                    add(at, 2.0 * statement, false);
                    // Waits are shortened at random, down to half.
                    let share = 0.5 + self.any_time(random) / seconds / 2.0;
                    at += (wait * share).min(ends[host] - at).max(1e-3);
                    wait = (2.0 * wait).min(self.of("longest-wait"));
                }
                // The request, the question, the takeover, the entry, the end of the log, its lines.
                add(at, 6.0 * statement, true);
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
        let renewed = self.of("hosts") * 3.0 / self.of("lease") * self.of("row-bytes");
        let log = (renewed + self.of("turns") * self.of("append-bytes")) / 1e6;
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

const HEAD: &str = "
| hosts die | calls/s | processors busy | log MB/s | connections | p99 ms | messages to dead hosts \
| last session goes on after s | first to saturate |
|--:|--:|--:|--:|--:|--:|--:|--:|---|";

fn main() {
    let mut plan = Plan(BTreeMap::from(DEFAULTS));
    for argument in std::env::args().skip(1) {
        let (name, number) = argument.split_once('=').unwrap_or((&argument, ""));
        let known = plan.0.get_mut(name).unwrap_or_else(|| panic!("unknown argument {name}"));
        *known = number.parse().unwrap_or_else(|_| panic!("{name}=NUMBER"));
    }
    let rows = plan.of("hosts") * 3.0 / plan.of("lease");
    println!("renewals: {rows:.0} rows/s\n{HEAD}");
    [0, 1, 10, 100].iter().for_each(|dead| println!("{}", plan.row(*dead)));
}
