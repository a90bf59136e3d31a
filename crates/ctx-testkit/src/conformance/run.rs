//! Runs the cases, each on its own thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use ctx_core::{ContextEngine, Counter, EngineInfo, Result, Services, Tokens};

use super::bench::{Bench, Progress};
use super::cases::CASES;
use super::stop::{Stop, Verdict};
use super::{Case, CaseReport, Level, Outcome, Report};

/// The inputs for starting an engine. Engines started with the same value share a store: this is
/// how a case restarts an engine in the middle of a session.
#[derive(Clone, Debug)]
pub struct Start {
    /// A store in memory and a scripted model.
    pub services: Services,
    /// The token counter.
    pub counter: Counter,
    /// The model's context window.
    pub window: Tokens,
}

/// How the suite runs.
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    level: Level,
    deadline: Duration,
    only: Vec<String>,
}

/// The default deadline of a case. The slowest case takes a few seconds on a slow machine.
const DEADLINE: Duration = Duration::from_secs(120);

impl Options {
    /// Runs all cases up to a level, with two minutes for each.
    pub fn new(level: Level) -> Self {
        Self { level, deadline: DEADLINE, only: Vec::new() }
    }

    /// Sets the deadline of a case. A case that exceeds it fails; its thread keeps running.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs only these cases, by name.
    pub fn only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = names.into_iter().map(Into::into).collect();
        self
    }

    fn includes(&self, case: &Case) -> bool {
        case.level <= self.level
            && (self.only.is_empty() || self.only.iter().any(|name| name == case.name))
    }
}

/// Returns the cases of a level, in the order they run.
pub fn cases(level: Level) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| case.level <= level)
}

/// Tests an engine against the suite. `start` creates an instance of it.
pub fn check<F>(start: F, options: &Options) -> Report
where
    F: Fn(&Start) -> Result<Arc<dyn ContextEngine>> + Send + Sync + 'static,
{
    check_with(start, options, |_| {})
}

/// Like [`check`], and calls `done` after each case.
pub fn check_with<F>(start: F, options: &Options, mut done: impl FnMut(&CaseReport)) -> Report
where
    F: Fn(&Start) -> Result<Arc<dyn ContextEngine>> + Send + Sync + 'static,
{
    let start: Arc<StartEngine> = Arc::new(start);
    let mut report = Report { engine: None, level: options.level, cases: Vec::new() };
    let mut dead = false;
    for case in CASES.iter().filter(|case| options.includes(case)) {
        let outcome = if dead {
            Outcome::Skipped { reason: "the engine does not start, or does not answer".to_owned() }
        } else {
            let ran = run(case, &start, options.deadline);
            dead = ran.is_fatal;
            report.engine = report.engine.or(ran.engine);
            ran.outcome
        };
        let Case { name, level, about, .. } = *case;
        let row = CaseReport { name, level, about, outcome };
        done(&row);
        report.cases.push(row);
    }
    report
}

pub(super) type StartEngine = dyn Fn(&Start) -> Result<Arc<dyn ContextEngine>> + Send + Sync;

struct Ran {
    outcome: Outcome,
    engine: Option<EngineInfo>,
    is_fatal: bool,
}

fn run(case: &'static Case, start: &Arc<StartEngine>, deadline: Duration) -> Ran {
    let progress = Progress::default();
    let (sender, receiver) = mpsc::channel();
    let work = {
        let (start, progress) = (Arc::clone(start), progress.clone());
        move || {
            let verdict = catch_unwind(AssertUnwindSafe(|| {
                let bench = Bench::new(start, progress.clone())?;
                (case.run)(&bench)
            }));
            let verdict = verdict.unwrap_or_else(|panic| Err(panicked(&progress, &*panic)));
            // After the deadline the receiver is gone.
            let _ = sender.send(verdict);
        }
    };
    let name = format!("case {}", case.name);
    let verdict: Verdict = match thread::Builder::new().name(name).spawn(work) {
        Ok(_) => {
            receiver.recv_timeout(deadline).unwrap_or_else(|_| Err(hangs(&progress, deadline)))
        }
        Err(error) => Err(Stop::skipped(format!("no thread for this case: {error}"))),
    };
    let engine = progress.state().engine.clone();
    let (outcome, is_fatal) = match verdict {
        Ok(note) => (Outcome::Passed { note }, false),
        Err(stop) => (stop.outcome, stop.is_fatal),
    };
    Ran { outcome, engine, is_fatal }
}

fn hangs(progress: &Progress, deadline: Duration) -> Stop {
    let seconds = deadline.as_secs_f64();
    let stop = Stop::failed(
        format!("{}: no answer; the deadline of the case is {seconds} s", progress.verb()),
        "answer each call in bounded time, even if a service of the host does not answer",
    );
    // If the engine never answered a call, the other cases cannot succeed.
    if progress.state().has_answered { stop } else { stop.fatal() }
}

fn panicked(progress: &Progress, panic: &(dyn Any + Send)) -> Stop {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a value that is not a text");
    Stop::failed(
        format!("{}: it panicked: {text}", progress.verb()),
        "answer with an error instead",
    )
}
