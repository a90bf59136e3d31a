//! `ctx eval`.

mod equal_size;
mod print;
mod recall;

use std::path::Path;
use std::process::ExitCode;

use ctx_config::Profile;
use ctx_core::{Counter, Error, ErrorKind};
use ctx_eval::eval::{
    EngineArm, EvalArm, EvalReport, EvalSetup, PRESETS, Preset, RowKind, SessionEval, evaluate,
};
use ctx_eval::{Baseline, SessionReport};

use crate::args::{Eval, EvalCommand, Fit, Global, Summaries};
use crate::failure::misuse;
use crate::files::{Existing, is_same_file, write_beside};
use crate::out::Out;
use crate::setup::{self, Fitted};
use crate::stores::Keeping;

pub(crate) fn run(global: &Global, args: &Eval, out: &Out) -> anyhow::Result<ExitCode> {
    if let Some(EvalCommand::Recall(args)) = &args.command {
        return recall::run(global, args, out);
    }
    if !(0.05..=0.9).contains(&args.compact_to) {
        let error = Error::new(ErrorKind::InvalidInput, "invalid --compact-to");
        let error = error.with("value", args.compact_to).hint("give a number from 0.05 to 0.9");
        return Err(misuse(error));
    }
    let presets = presets(&args.presets)?;
    let counter = Counter::new(args.counter);
    let mut sessions = Vec::with_capacity(args.sessions.len());
    for path in &args.sessions {
        sessions.push(session(global, args, path, &presets, counter, out)?);
    }
    let report = EvalReport::of(sessions, &counter, args.compact_to);
    if report.rows.iter().all(|row| row.requests == 0) {
        out.warn("no requests to replay: the transcripts have no answers of a model");
    }
    if let Some(path) = &args.page.html {
        // The page must not replace any of the sessions.
        let source = args.sessions.iter().find(|session| is_same_file(session, path));
        let source = source.or(args.sessions.first()).map_or(Path::new("-"), |path| path);
        write_beside(source, path, Existing::page(path, args.page.force), |writer| {
            Ok(ctx_inspector::pages::eval::write(&report, writer)?)
        })?;
        out.note(format!("page written to {}", path.display()));
    }
    if args.json {
        out.json(&report)?;
    } else {
        print::print(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn presets(names: &[String]) -> anyhow::Result<Vec<Preset>> {
    if names.is_empty() {
        return Ok(PRESETS.to_vec());
    }
    names.iter().map(|name| Preset::find(name).map_err(misuse)).collect()
}

fn session(
    global: &Global,
    args: &Eval,
    path: &Path,
    presets: &[Preset],
    counter: Counter,
    out: &Out,
) -> anyhow::Result<SessionEval> {
    let transcript = setup::open(path, out)?;
    // One warning about a small window is enough for all candidates.
    let quiet = Out::silent();
    let fit = |profile: Option<Profile>, engine: Option<&String>, out: &Out| {
        let fit = Fit {
            window: args.window.clone(),
            engine: engine.cloned(),
            agent: None,
            profile,
            counter: None,
            model: args.model.clone(),
        };
        // A comparison calls no model, so that its result is always the same.
        let summaries = Summaries { summary_model: Some("none".to_owned()) };
        setup::fit(global, (&fit, &summaries), path, &transcript, Keeping::nothing(), out)
    };
    let base = fit(None, None, out)?;
    let profiles = match args.profiles.is_empty() {
        true => Profile::all().collect(),
        false => args.profiles.clone(),
    };
    let mut candidates = vec![EvalArm::FullHistory];
    for profile in profiles {
        let fitted = fit(Some(profile), None, &quiet)?;
        candidates.push(contender(profile.name(), RowKind::Profile, fitted));
    }
    for id in &args.engines {
        candidates.push(contender(id, RowKind::Engine, fit(None, Some(id), &quiet)?));
    }
    candidates.extend(presets.iter().copied().map(EvalArm::Preset));

    let count =
        |text: &Option<String>| text.as_deref().map(|t| counter.text(t)).unwrap_or_default();
    let setup = EvalSetup {
        baseline: Baseline::of(&transcript, &base.ledger)?,
        session: SessionReport::of(path, &transcript)?,
        window: base.ledger.window(),
        counter,
        system: count(&transcript.system_prompt),
        tools: count(&transcript.tools),
        model: base.model,
        prices: base.prices,
        compact_to: args.compact_to,
    };
    let bar = out.progress("evaluating", candidates.len());
    let evaluated = setup::block_on(evaluate(&transcript, &candidates, &setup, |done| {
        bar.set_position(done as u64);
    }))?;
    bar.finish_and_clear();
    Ok(evaluated)
}

fn contender(name: &str, kind: RowKind, fitted: Fitted) -> EvalArm {
    EvalArm::Engine(EngineArm {
        name: name.to_owned(),
        kind,
        engine: fitted.engine,
        ledger: fitted.ledger,
    })
}
