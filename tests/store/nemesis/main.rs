//! Hosts that share a store, while hosts, networks and databases fail.
//!
//! Each host is a process. Turns run at all hosts, and their outcomes are recorded; one fault after
//! the other strikes ([`faults`]). Some sessions are removed meanwhile. At the end the logs in the
//! database must agree with the history of the outcomes ([`check`]), the files of the hosts with the
//! logs, and text of a removed turn must be nowhere ([`erased`]).
//!
//! `cargo test -p ctx-tests --test nemesis -- --hosts 5 --sessions 200 --events 10000 --seed 7`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

mod check;
mod cluster;
mod database;
mod erased;
mod faults;
mod host;
mod load;
mod logs;
mod relay;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use check::{Fault, Log, Operation, Outcome, Removal, Violation};
use ctx_testkit::Random;
use database::FullDisk;

/// Sessions that are opened at each host at the end.
const SAMPLE: usize = 20;

/// One fault for this number of turns.
const TURNS_OF_FAULT: usize = 100;

/// What an error says whose reason ctx does not know.
const UNCLEAR: &str = "the database of the shared store failed";

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

/// Set in a process whose mounts are its own.
const OWN_MOUNTS: &str = "CTX_NEMESIS_OWN_MOUNTS";

/// Runs this program again so that its mounts are its own, and end with it however it ends. Where
/// that is not permitted it goes on.
#[cfg(target_os = "linux")]
fn isolate_mounts(args: &[String]) {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let unshare = || {
        let mut command = Command::new("unshare");
        command.arg("--mount");
        command
    };
    let permitted = || unshare().arg("true").stderr(Stdio::null()).status();
    if std::env::var_os(OWN_MOUNTS).is_none() && permitted().is_ok_and(|status| status.success()) {
        let own = std::env::current_exe().unwrap();
        let failed = unshare().arg(own).args(args).env(OWN_MOUNTS, "1").exec();
        println!("the mounts are not isolated: {failed}");
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(target_os = "linux")]
    isolate_mounts(&args);
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
    let faults = settings.events / TURNS_OF_FAULT;
    let faults = faults::Nemesis::plan(&mut random, faults, database.has_disk());
    let mut allowed = 0;
    for (number, fault) in (1..).zip(&faults) {
        let host = &load.hosts[random.below(settings.hosts)];
        println!("{number}/{}: {fault:?}, {}", faults.len(), host.name);
        let turns = settings.events * number / faults.len() - allowed;
        allowed += turns;
        load.allow(turns / 2);
        fault.strike(&mut random, host, &mut database).await;
        load.allow(turns - turns / 2);
        load.wait(allowed).await;
    }
    load.end(callers).await;
    load.repeat_removals().await;
    load.open_all(SAMPLE).await;
    let (history, removals, logs) = (load.history(), load.removals(), logs::read(&database));
    let mut violations = check::check(&history, &removals, &logs);
    violations.extend(differing_files(&load, &logs));
    let hosts = load.hosts.iter().map(|host| &**host);
    let (removed, left) = erased::left(&history, &removals, &database, hosts).await;
    violations.extend(left);
    report(settings, &history, &removals, &logs, &violations);
    let disk = match database.full_disk {
        FullDisk { times: 0, .. } => "not tried: mounting one is not permitted".to_owned(),
        FullDisk { times, ends } => format!("{times} times, the database ended {ends} times"),
    };
    let is_forgotten =
        |own: &&Removal| own.operation.is_some() && own.outcome == Outcome::Acknowledged;
    let forgotten = removals.iter().filter(is_forgotten).count();
    println!("{removed} turns were erased, {forgotten} of them one by one; full disk: {disk}");
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a violation for each file of a session of the sample that differs from its log.
fn differing_files(load: &load::Load, logs: &[Log]) -> Vec<Violation> {
    let sample: BTreeSet<_> = load.sessions.iter().take(SAMPLE).collect();
    let mut found = Vec::new();
    for log in logs {
        let Some(session) = log.session.as_ref().filter(|own| sample.contains(own)) else {
            continue;
        };
        for host in &load.hosts {
            if logs::is_prefix(log, &host.home).is_none() {
                println!("the file of {} at {} differs from its log", log.file, host.name);
                let (session, fault) = (session.clone(), Fault::Forked);
                found.push(Violation { fault, session, operation: None, seq: None });
            }
        }
    }
    found
}

fn report(
    settings: &Settings,
    history: &[Operation],
    removals: &[Removal],
    logs: &[Log],
    violations: &[Violation],
) {
    let mut errors: BTreeMap<&str, usize> = BTreeMap::new();
    let turns = history.iter().map(|own| (own.outcome, &own.said));
    let outcomes = turns.chain(removals.iter().map(|own| (own.outcome, &own.said)));
    for (_, said) in outcomes.filter(|(outcome, _)| *outcome != Outcome::Acknowledged) {
        let error = said.split_once(": ").map_or(&**said, |(_, error)| error);
        *errors.entry(error.split(" (").next().unwrap_or_default()).or_default() += 1;
    }
    let unclear = errors.keys().find(|error| error.contains(UNCLEAR));
    assert_eq!(unclear, None, "an error does not say what failed");
    errors.iter().for_each(|(error, times)| println!("{times:6} {error}"));
    let sessions: BTreeSet<_> = violations.iter().map(|found| &found.session).collect();
    for session in sessions {
        println!("session {session}:");
        let is_own = |log: &&Log| log.session.as_ref().unwrap_or(&log.file) == session;
        for line in logs.iter().filter(is_own).flat_map(|log| &log.lines) {
            println!("  {:4} epoch {:3} {:?} {}", line.seq, line.epoch, line.part, line.text);
        }
        history.iter().filter(|own| own.session == *session).for_each(|own| println!("  {own}"));
        removals.iter().filter(|own| own.session == *session).for_each(|own| println!("  {own}"));
    }
    violations.iter().for_each(|found| println!("{found}"));
    let count = |fault| violations.iter().filter(|found| found.fault == fault).count();
    let acknowledged = history.iter().filter(|own| own.outcome == Outcome::Acknowledged).count();
    println!(
        "nemesis: seed {}, {} events, {acknowledged} acknowledged, {} lost, {} doubled, {} interleaved, {} erased texts left",
        settings.seed,
        settings.events,
        count(Fault::Lost),
        count(Fault::Doubled),
        count(Fault::Interleaved),
        count(Fault::Left),
    );
}
