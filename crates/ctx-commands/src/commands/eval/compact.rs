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
    BenchArm, BenchPlan, BenchReport, BenchSession, CandidateProgram, Hooks, SessionBench,
    SimpleRule, Statement, bench, built_in_statements, statements,
};
use ctx_eval::eval::{EvalSetup, Preset, RowKind};
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;

use super::arms::{Fitter, engine_arm, presets};
use super::write_page;
use crate::args::{EvalCompact, Global};
use crate::setup;

use export::Export;

/// The default number of cuts, and the default budgets in percent.
const USUAL: (usize, &[f64]) = (5, &[30.0, 10.0, 5.0]);
/// The same with `--quick`.
const QUICK: (usize, &[f64]) = (2, &[10.0]);

/// The parameters shared by all sessions.
struct Run<'a> {
    global: &'a Global,
    args: &'a EvalCompact,
    plan: BenchPlan,
    presets: Vec<Preset>,
    candidate: Option<Rc<RefCell<CandidateProgram>>>,
    export: Option<Export>,
}

pub(super) fn run(global: &Global, args: &EvalCompact, out: &Out) -> anyhow::Result<ExitCode> {
    let limit = Duration::from_secs(args.candidate_seconds);
    let candidate = args.candidate_cmd.as_deref().map(|it| CandidateProgram::start(it, limit));
    let run = Run {
        global,
        args,
        plan: plan(args)?,
        presets: presets(&args.presets)?,
        candidate: candidate.transpose().map_err(misuse)?.map(|it| Rc::new(RefCell::new(it))),
        export: args.export.as_deref().map(Export::create).transpose()?,
    };
    let mut sessions = Vec::with_capacity(args.sessions.len());
    for (number, path) in args.sessions.iter().enumerate() {
        sessions.push(run.session(number, path, out)?);
    }
    let report = BenchReport::of(sessions, run.presets, &run.plan, args.show);
    write_page(&args.page, &args.sessions, out, |writer| {
        ctx_inspector::pages::bench::write(&report, writer)
    })?;
    out.report(args.json, &report, print::print)
}

fn plan(args: &EvalCompact) -> anyhow::Result<BenchPlan> {
    let (cuts, budgets) = if args.quick { QUICK } else { USUAL };
    let budgets = if args.budgets.is_empty() { budgets } else { &args.budgets };
    Ok(BenchPlan {
        cuts: args.cuts.map_or(cuts, usize::from),
        budgets: budgets.iter().map(|percent| percent / 100.0).collect(),
        rounds: args.rounds.iter().copied().map(usize::from).collect(),
        statements: planted(args.planted.as_deref())?,
    })
}

fn planted(file: Option<&Path>) -> anyhow::Result<Vec<Statement>> {
    let path = match file {
        None => return Ok(built_in_statements()?),
        Some(name) if name == Path::new("none") => return Ok(Vec::new()),
        Some(path) => path,
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::new(ErrorKind::NotFound, "cannot read the statements to plant")
            .with("path", path.display())
            .hint("bench/outside/README.md says how to make such a file")
            .source(error)
    })?;
    Ok(statements(&text).map_err(|error| error.with("path", path.display()))?)
}

impl Run<'_> {
    fn session(&self, number: usize, path: &Path, out: &Out) -> anyhow::Result<SessionBench> {
        let transcript = setup::open(path, out)?;
        let (global, model) = (self.global, self.args.model.as_deref());
        let fitter = Fitter { global, window: None, model, path, transcript: &transcript };
        let arms = self.arms(&fitter, out)?;
        let eval = fitter.setup(Counter::default(), out)?;
        // Budgets count messages only: system prompt and tools are in the calibration.
        let eval = EvalSetup { system: Tokens::ZERO, tools: Tokens::ZERO, ..eval };
        let session = BenchSession { transcript: &transcript, eval, number };
        let bar = out.progress("compacting", 0);
        let mut file = self.export.as_ref().map(|it| it.file(number, path)).transpose()?;
        let mut hooks = Hooks {
            progress: &mut |done, all| {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
            },
            export: &mut |line| file.as_mut().map_or(Ok(()), |file| file.write(line)),
        };
        let report = setup::block_on(bench(&session, &arms, &self.plan, &mut hooks))?;
        bar.finish_and_clear();
        if report.cuts.is_empty() {
            out.warn(format!("{}: too short to be cut", path.display()));
        }
        Ok(report)
    }

    fn arms(&self, fitter: &Fitter<'_>, out: &Out) -> anyhow::Result<Vec<BenchArm>> {
        let args = self.args;
        let engines = fitter.engines(&args.profiles, &args.engines, false)?;
        let mut arms: Vec<_> = engines.into_iter().map(BenchArm::Engine).collect();
        if let Some(model) = &args.summary_model {
            let profile = args.profiles.first().copied().unwrap_or_else(Profile::default);
            let fitted = fitter.fit(Some(profile), None, Some(model), out)?;
            let name = format!("{} with {model}", profile.name());
            arms.push(BenchArm::Engine(engine_arm(&name, RowKind::Profile, fitted)));
        }
        arms.extend(self.candidate.iter().cloned().map(BenchArm::Candidate));
        arms.extend(self.presets.iter().copied().map(BenchArm::Preset));
        arms.extend(SimpleRule::ALL.map(BenchArm::Rule));
        Ok(arms)
    }
}
