//! Hosts that share a store, while hosts, networks and databases fail.
//!
//! Each host is a process. Turns run at all hosts, and their outcomes are recorded; one fault after
//! the other strikes ([`faults`]). At the end the logs in the database must agree with the history
//! of the outcomes ([`check`]), and the files of the hosts with the logs.
//!
//! `cargo test -p ctx-tests --test nemesis -- --hosts 5 --sessions 200 --events 10000 --seed 7`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

mod check;
mod cluster;
mod database;
mod faults;
mod host;
mod load;
mod logs;
mod relay;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use check::{Fault, Log, Operation, Outcome, Violation};
use ctx_testkit::Random;

/// Sessions that are opened at each host at the end.
const SAMPLE: usize = 20;

/// One fault for this number of turns.
const TURNS_OF_FAULT: usize = 100;

struct Settings {
    seed: u64,
    events: usize,
    hosts: usize,
    sessions: usize,
}

impl Settings {
    /// Reads flags and the environment; `None` if the arguments select other tests.
    fn read(args: &[String]) -> Option<Self> {
        let number = |name: &str, default| {
            let given = args.iter().skip_while(|arg| **arg != format!("--{name}")).nth(1).cloned();
            let variable = format!("CTX_NEMESIS_{}", name.to_uppercase());
            let text = given.or_else(|| std::env::var(variable).ok());
            text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("--{name} {text}")))
        };
        let is_flag = |at: usize| at < args.len() && args[at].starts_with("--");
        let filter = (0..args.len()).find(|at| !is_flag(*at) && (*at == 0 || !is_flag(at - 1)));
        if filter.is_some_and(|at| !"nemesis".contains(&*args[at]))
            || args.contains(&"--list".into())
        {
            return None;
        }
        Some(Self {
            seed: number("seed", 1),
            events: number("events", 600) as usize,
            hosts: number("hosts", 3) as usize,
            sessions: number("sessions", 20) as usize,
        })
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if let [role, name, url, home] = &*args
            && role == "host"
        {
            return host::run(name, url, home).await;
        }
        match Settings::read(&args) {
            Some(settings) => run(&settings).await,
            None => ExitCode::SUCCESS,
        }
    })
}

async fn run(settings: &Settings) -> ExitCode {
    let Some(mut database) = database::Database::start().await else { return ExitCode::SUCCESS };
    let homes = tempfile::tempdir().unwrap();
    let mut hosts = Vec::new();
    for number in 0..settings.hosts {
        let (name, home) = (format!("host{number}"), homes.path().join(number.to_string()));
        hosts.push(Arc::new(cluster::Host::start(name, home, database.network().await)));
    }
    let mut random = Random::seeded(settings.seed);
    let load = Arc::new(load::Load::new(hosts, settings.sessions));
    let callers = load.start(&mut random);
    let faults = (settings.events / TURNS_OF_FAULT).max(faults::Nemesis::KINDS);
    let mut allowed = 0;
    for (number, fault) in (1..).zip(faults::Nemesis::plan(&mut random, faults)) {
        let host = &load.hosts[random.below(settings.hosts)];
        println!("{number}/{faults}: {fault:?}, {}", host.name);
        let turns = settings.events * number / faults - allowed;
        allowed += turns;
        load.allow(turns / 2);
        fault.strike(&mut random, host, &mut database).await;
        load.allow(turns - turns / 2);
        load.wait(allowed).await;
    }
    load.end(callers).await;
    load.open_all(SAMPLE).await;
    let (history, logs) = (load.history(), logs::read(&database));
    let mut violations = check::check(&history, &logs);
    let sample: BTreeSet<_> = load.sessions.iter().take(SAMPLE).collect();
    for log in
        logs.iter().filter(|log| log.session.as_ref().is_some_and(|own| sample.contains(own)))
    {
        for host in &load.hosts {
            if logs::is_prefix(log, &host.home).is_none() {
                println!("the file of {} at {} differs from its log", log.file, host.name);
                let session = log.session.clone().unwrap_or_default();
                let fault = Fault::Forked;
                violations.push(Violation { fault, session, operation: None, seq: None });
            }
        }
    }
    report(settings, &history, &logs, &violations)
}

fn report(
    settings: &Settings,
    history: &[Operation],
    logs: &[Log],
    violations: &[Violation],
) -> ExitCode {
    let mut errors: BTreeMap<&str, usize> = BTreeMap::new();
    for own in history.iter().filter(|own| own.outcome != Outcome::Acknowledged) {
        let error = own.said.split_once(": ").map_or(&*own.said, |(_, error)| error);
        *errors.entry(error.split(" (").next().unwrap_or_default()).or_default() += 1;
    }
    errors.iter().for_each(|(error, times)| println!("{times:6} {error}"));
    let sessions: BTreeSet<_> = violations.iter().map(|found| &found.session).collect();
    for session in sessions {
        println!("session {session}:");
        let is_own = |log: &&Log| log.session.as_ref().unwrap_or(&log.file) == session;
        for line in logs.iter().filter(is_own).flat_map(|log| &log.lines) {
            println!("  {:4} epoch {:3} {:?} {}", line.seq, line.epoch, line.part, line.text);
        }
        history.iter().filter(|own| own.session == *session).for_each(|own| println!("  {own}"));
    }
    violations.iter().for_each(|found| println!("{found}"));
    let count = |fault| violations.iter().filter(|found| found.fault == fault).count();
    let acknowledged = history.iter().filter(|own| own.outcome == Outcome::Acknowledged).count();
    println!(
        "nemesis: seed {}, {} events, {acknowledged} acknowledged, {} lost, {} doubled, {} interleaved",
        settings.seed,
        settings.events,
        count(Fault::Lost),
        count(Fault::Doubled),
        count(Fault::Interleaved),
    );
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
