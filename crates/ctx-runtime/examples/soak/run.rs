//! Runs lives until a number of turns is reached.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ctx_testkit::Random;

use super::check::{Account, check};
use super::life::{Life, TurnEvent};
use super::model::Mood;

const CHILD: &str = "CTX_SOAK_CHILD";

/// A life in its own process, which is killed unless it ends first.
pub(crate) struct Child {
    home: PathBuf,
    number: usize,
    seed: u64,
    turns: usize,
    sessions: usize,
}

impl Child {
    /// Reads this process's task from the environment, if it is a child.
    pub(crate) fn of_environment() -> Option<Self> {
        let task = std::env::var(CHILD).ok()?;
        let mut parts = task.splitn(5, ' ');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (number, seed, turns, sessions) =
            (number()? as usize, number()?, number()? as usize, number()? as usize);
        Some(Self { home: parts.next()?.into(), number, seed, turns, sessions })
    }

    fn describe(&self) -> String {
        let Self { home, number, seed, turns, sessions } = self;
        format!("{number} {seed} {turns} {sessions} {}", home.display())
    }

    /// Runs the life, and reports each turn on standard output, one line each.
    pub(crate) fn live(&self) {
        let say = |line: String| {
            let mut out = std::io::stdout().lock();
            // The parent may have stopped reading.
            let _ = out.write_all(format!("say {line}\n").as_bytes()).and_then(|()| out.flush());
        };
        let life = Life {
            home: &self.home,
            number: self.number,
            seed: self.seed,
            turns: self.turns,
            sessions: self.sessions,
            mood: Mood::Wild,
            cut: false,
        };
        let found = life.live(&|event| match event {
            TurnEvent::Sent(message) => say(format!("sent\t{message}")),
            TurnEvent::Answered { message, answer } => {
                say(format!("answered\t{message}\t{answer}"));
            }
            TurnEvent::Failed => say("failed".into()),
            TurnEvent::Wrong(what) => say(format!("wrong\t{}", what.replace('\n', " "))),
        });
        found.into_iter().for_each(|what| say(format!("wrong\t{what}")));
    }
}

fn parse_event(line: &str) -> Option<TurnEvent> {
    let (_, event) = line.split_once("say ")?;
    let mut parts = event.split('\t');
    let kind = parts.next()?;
    let mut part = || parts.next().unwrap_or_default().to_owned();
    Some(match kind {
        "sent" => TurnEvent::Sent(part()),
        "answered" => TurnEvent::Answered { message: part(), answer: part() },
        "failed" => TurnEvent::Failed,
        _ => TurnEvent::Wrong(part()),
    })
}

/// The result of a soak.
pub(crate) struct Report {
    seed: u64,
    sessions: usize,
    account: Account,
    wrong: Vec<String>,
    dropped: usize,
    killed: usize,
    took: Duration,
}

impl Report {
    /// Returns the problems found; empty if none.
    pub(crate) fn wrong(&self) -> &[String] {
        &self.wrong
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} turns in {} sessions in {:.1?}: {} answered, {} failed acceptably \
             or were cancelled; {} runtimes dropped, {} processes killed",
            self.seed,
            self.account.sent,
            self.sessions,
            self.took,
            self.account.answered.len(),
            self.account.failed,
            self.dropped,
            self.killed,
        )?;
        match self.wrong.is_empty() {
            true => {
                write!(f, "every answer is stored once, no session is stuck, every request fits")
            }
            false => {
                let first: Vec<_> = self.wrong.iter().take(20).map(String::as_str).collect();
                write!(f, "{} problems:\n{}", self.wrong.len(), first.join("\n"))
            }
        }
    }
}

/// Returns a random seed.
pub(crate) fn some_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 % 1_000_000
}

/// Runs this number of turns in the sessions of a home. `again` is the command that runs this
/// program as a [`Child`].
pub(crate) fn run(
    home: &Path,
    seed: u64,
    (turns, sessions): (usize, usize),
    again: &dyn Fn() -> Command,
) -> Report {
    let began = Instant::now();
    let mut random = Random::seeded(seed);
    let account = Mutex::new(Account::default());
    let on_event = |event| account.lock().unwrap_or_else(PoisonError::into_inner).note(event);
    let sent = || account.lock().unwrap_or_else(PoisonError::into_inner).sent;
    let (mut dropped, mut killed, mut number) = (0, 0, 0);
    let mut wrong = Vec::new();
    while sent() < turns && wrong.is_empty() {
        number += 1;
        let seed = random.next();
        if random.once_in(4) {
            let child = Child { home: home.to_owned(), number, seed, turns: 200, sessions };
            kill(&mut again(), &child, 1 + random.below(60), &on_event);
            killed += 1;
        } else {
            let cut = !random.once_in(4);
            let turns = 60 + random.below(150);
            let life = Life { home, number, seed, turns, sessions, mood: Mood::Wild, cut };
            wrong.extend(life.live(&on_event));
            dropped += usize::from(cut);
        }
        if number % 10 == 0 {
            wrong.extend(check(home, &account.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    }
    // One turn in each session, with a well-behaved model.
    let last = Life {
        home,
        number: number + 1,
        seed: random.next(),
        turns: sessions,
        sessions,
        mood: Mood::Calm,
        cut: false,
    };
    let before = account.lock().unwrap_or_else(PoisonError::into_inner).answered.len();
    wrong.extend(last.live(&on_event));
    let account = account.into_inner().unwrap_or_else(PoisonError::into_inner);
    let answered = account.answered.len() - before;
    if answered != sessions {
        wrong.push(format!("{answered} of {sessions} sessions answer at the end"));
    }
    wrong.extend(check(home, &account));
    wrong.sort();
    wrong.dedup();
    Report { seed, sessions, account, wrong, dropped, killed, took: began.elapsed() }
}

/// Runs a life in its own process, and kills it after this number of answers.
fn kill(command: &mut Command, child: &Child, answers: usize, on_event: &dyn Fn(TurnEvent)) {
    let command = command.env(CHILD, child.describe()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the program runs");
    let out = process.stdout.take().expect("it is piped");
    let mut left = answers;
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let Some(event) = parse_event(&line) else { continue };
        let counts = matches!(event, TurnEvent::Answered { .. } | TurnEvent::Wrong(_));
        left -= usize::from(left > 0 && counts);
        on_event(event);
        if left == 0 {
            // Output from before the kill is still in the pipe, and counts.
            let _ = process.kill();
        }
    }
    let _ = process.wait();
}
