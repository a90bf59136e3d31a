//! `ctx eval compact`.

mod export;
mod print;

use std::cell::RefCell;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use ctx_config::Profile;
use ctx_core::{Counter, Error, ErrorKind, Tokens};
use ctx_eval::eval::bench::{
    Baseline, BenchArm, BenchReport, BenchSetup, CandidateProgram, Hooks, SessionBench, Statement,
    bench, built_in_statements, statements,
};
use ctx_eval::eval::{EvalSetup, RowKind};

use super::arms::{Fitter, engine_arm, presets};
use super::write_page;
use crate::args::{EvalCompact, Global};
use crate::failure::misuse;
use crate::out::Out;
use crate::setup;

use export::Export;

/// The defaults of a run, and of a quick one: cuts, and budgets in percent.
const USUAL: (usize, &[f64]) = (5, &[30.0, 10.0, 5.0]);
/// See `USUAL`.
const QUICK: (usize, &[f64]) = (2, &[10.0]);

/// The most cuts of a session, and the most compactions before one.
const MOST: usize = 100;

type Candidate = Option<Rc<RefCell<CandidateProgram>>>;

pub(super) fn run(global: &Global, args: &EvalCompact, out: &Out) -> anyhow::Result<ExitCode> {
    let grid = Grid::of(args)?;
    let candidate = candidate(args)?;
    let mut export = args.export.as_deref().map(Export::create).transpose()?;
    let mut sessions = Vec::with_capacity(args.sessions.len());
    let (mut last, mut report_of) = (None, Vec::new());
    for (number, path) in args.sessions.iter().enumerate() {
        let (session, arms, setup) =
            one(global, args, (number, path), &grid, &candidate, export.as_mut(), out)?;
        if session.cuts.is_empty() {
            out.warn(format!("{}: too short to be cut", path.display()));
        }
        sessions.push(session);
        report_of = arms;
        last = Some(setup);
    }
    let Some(setup) = last else { return Ok(ExitCode::SUCCESS) };
    let report = BenchReport::of(sessions, &report_of, &setup, args.show);
    write_page(&args.page, &args.sessions, out, |writer| {
        ctx_inspector::pages::bench::write(&report, writer)
    })?;
    if args.json {
        out.json(&report)?;
    } else {
        print::print(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is run on every session.
struct Grid {
    cuts: usize,
    budgets: Vec<f64>,
    rounds: Vec<usize>,
    statements: Vec<Statement>,
}

impl Grid {
    fn of(args: &EvalCompact) -> anyhow::Result<Self> {
        let (cuts, budgets) = if args.quick { QUICK } else { USUAL };
        let budgets = if args.budgets.is_empty() { budgets } else { &args.budgets };
        let cuts = args.cuts.unwrap_or(cuts);
        let wrong = |what: &'static str, hint: &'static str| {
            Err(misuse(Error::new(ErrorKind::InvalidInput, what).hint(hint)))
        };
        if !(1..=MOST).contains(&cuts) {
            return wrong("invalid --cuts", "give a number from 1 to 100");
        }
        if !budgets.iter().all(|percent| (1.0..=90.0).contains(percent)) {
            return wrong("invalid --budgets", "give percentages from 1 to 90, such as 30,10,5");
        }
        if args.rounds.is_empty() || !args.rounds.iter().all(|n| (1..=MOST).contains(n)) {
            return wrong("invalid --rounds", "give numbers from 1 to 100, such as 1,3,5,10");
        }
        Ok(Self {
            cuts,
            budgets: budgets.iter().map(|percent| percent / 100.0).collect(),
            rounds: args.rounds.clone(),
            statements: planted(args.planted.as_deref())?,
        })
    }
}

fn planted(file: Option<&Path>) -> anyhow::Result<Vec<Statement>> {
    match file {
        None => Ok(built_in_statements()?),
        Some(name) if name == Path::new("none") => Ok(Vec::new()),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Error::new(ErrorKind::NotFound, "cannot read the statements to plant")
                    .with("path", path.display())
                    .hint("bench/outside/README.md says how to make such a file")
                    .source(error)
            })?;
            Ok(statements(&text).map_err(|error| error.with("path", path.display()))?)
        }
    }
}

fn candidate(args: &EvalCompact) -> anyhow::Result<Candidate> {
    let limit = Duration::from_secs(args.candidate_seconds);
    let started = args.candidate_cmd.as_deref().map(|it| CandidateProgram::start(it, limit));
    Ok(started.transpose().map_err(misuse)?.map(|program| Rc::new(RefCell::new(program))))
}

fn one(
    global: &Global,
    args: &EvalCompact,
    (number, path): (usize, &Path),
    grid: &Grid,
    candidate: &Candidate,
    export: Option<&mut Export>,
    out: &Out,
) -> anyhow::Result<(SessionBench, Vec<BenchArm>, BenchSetup)> {
    let transcript = setup::open(path, out)?;
    let fitter = Fitter {
        global,
        window: None,
        model: args.model.as_deref(),
        path,
        transcript: &transcript,
    };
    let arms = arms(&fitter, args, candidate, out)?;
    let eval = fitter.setup(Counter::default(), out)?;
    let setup = BenchSetup {
        // Budgets are of messages. The calibration has what every request holds besides.
        eval: EvalSetup { system: Tokens::ZERO, tools: Tokens::ZERO, ..eval },
        cuts: grid.cuts,
        budgets: grid.budgets.clone(),
        rounds: grid.rounds.clone(),
        statements: grid.statements.clone(),
        number,
    };
    let bar = out.progress("compacting", 0);
    let mut file = export.map(|export| export.file(number, path)).transpose()?;
    let mut hooks = Hooks {
        progress: &mut |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        },
        export: &mut |line| match &mut file {
            Some(file) => file.write(line),
            None => Ok(()),
        },
    };
    let session = setup::block_on(bench(&transcript, &arms, &setup, &mut hooks));
    bar.finish_and_clear();
    Ok((session?, arms, setup))
}

fn arms(
    fitter: &Fitter<'_>,
    args: &EvalCompact,
    candidate: &Candidate,
    out: &Out,
) -> anyhow::Result<Vec<BenchArm>> {
    let mut arms: Vec<_> =
        fitter.engines(&args.profiles, &args.engines)?.into_iter().map(BenchArm::Engine).collect();
    if let Some(model) = &args.summary_model {
        let profile = args.profiles.first().copied().unwrap_or_else(Profile::default);
        let fitted = fitter.fit(Some(profile), None, Some(model), out)?;
        let name = format!("{} with {model}", profile.name());
        arms.push(BenchArm::Engine(engine_arm(&name, RowKind::Profile, fitted)));
    }
    arms.extend(candidate.iter().cloned().map(BenchArm::Candidate));
    arms.extend(presets(&args.presets)?.into_iter().map(BenchArm::Preset));
    arms.extend(Baseline::ALL.map(BenchArm::Baseline));
    Ok(arms)
}
