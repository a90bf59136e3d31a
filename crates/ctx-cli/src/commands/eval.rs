//! `ctx eval`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::{Counter, Error, ErrorKind, Profile};
use ctx_eval::eval::{
    Candidate, Contender, EvalReport, EvalRow, EvalSetup, OnceRow, PRESETS, Preset, RowKind,
    SessionEval, evaluate, page,
};
use ctx_session::blobs::MemoryBlobs;

use crate::args::{Eval, Fit, Global};
use crate::files::{Existing, is_same_file, write_beside};
use crate::out::{BOLD, Cell, DIM, GREEN, Out, RED, table};
use crate::setup::{self, Fitted};
use crate::words::{counted, harmless, percent, thousands, usd};

/// A coverage from here on is what a compaction has to reach.
const GOOD_COVERAGE: f64 = 0.95;

/// How wide notes are set.
const NOTE_CHARS: usize = 100;

pub(crate) fn run(global: &Global, args: &Eval, out: &Out) -> anyhow::Result<ExitCode> {
    if !(0.05..=0.9).contains(&args.compact_to) {
        let error = Error::new(ErrorKind::InvalidInput, "--compact-to is no share of a session");
        let error = error.with("value", args.compact_to).hint("give a number from 0.05 to 0.9");
        return Err(error.into());
    }
    let presets = presets(&args.presets)?;
    let counter = Counter::new(args.counter);
    let mut sessions = Vec::with_capacity(args.sessions.len());
    for path in &args.sessions {
        sessions.push(session(global, args, path, &presets, counter, out)?);
    }
    let report = EvalReport::of(sessions, &counter, args.compact_to);
    if report.rows.iter().all(|row| row.requests == 0) {
        out.warn("the transcripts hold no answer of a model, so there is no request to replay");
    }
    if let Some(path) = &args.html {
        // Whichever of them the page would replace, it must not.
        let source = args.sessions.iter().find(|session| is_same_file(session, path));
        let source = source.or(args.sessions.first()).map_or(Path::new("-"), |path| path);
        write_beside(source, path, Existing::page(path, args.force), |writer| {
            Ok(page::write(&report, writer)?)
        })?;
        out.note(format!("page written to {}", path.display()));
    }
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn presets(names: &[String]) -> anyhow::Result<Vec<Preset>> {
    if names.is_empty() {
        return Ok(PRESETS.to_vec());
    }
    Ok(names.iter().map(|name| Preset::find(name)).collect::<Result<_, _>>()?)
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
    // One warning of a small window is enough for all candidates.
    let quiet = Out::new(&Global { config: None, quiet: true, color: global.color });
    let fit = |profile: Option<Profile>, engine: Option<&String>, out: &Out| {
        let fit = Fit {
            window: args.window.clone(),
            engine: engine.cloned(),
            profile,
            counter: None,
            model: args.model.clone(),
            // A comparison asks no model: it is to be the same each time.
            summary_model: Some("none".to_owned()),
        };
        setup::fit(global, &fit, &transcript, Arc::new(MemoryBlobs::default()), out)
    };
    let base = fit(None, None, out)?;
    let profiles = match args.profiles.as_slice() {
        [] => &Profile::ALL,
        some => some,
    };
    let mut candidates = vec![Candidate::Nothing];
    for &profile in profiles {
        let fitted = fit(Some(profile), None, &quiet)?;
        candidates.push(contender(profile.name(), RowKind::Profile, fitted));
    }
    for id in &args.engines {
        candidates.push(contender(id, RowKind::Engine, fit(None, Some(id), &quiet)?));
    }
    candidates.extend(presets.iter().copied().map(Candidate::Preset));

    let count = |text: Option<String>| text.map(|text| counter.text(&text)).unwrap_or_default();
    let setup = EvalSetup {
        session: setup::session_report(path, &transcript)?,
        window: base.ledger.window(),
        counter,
        system: count(transcript.system_prompt()?),
        tools: count(transcript.tools()?),
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

fn contender(name: &str, kind: RowKind, fitted: Fitted) -> Candidate {
    Candidate::Engine(Contender {
        name: name.to_owned(),
        kind,
        engine: fitted.engine,
        profile: fitted.profile,
        ledger: fitted.ledger,
    })
}

fn print(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    for session in &report.sessions {
        out.session(&session.session)?;
        let model = session.model.as_deref().map_or_else(
            || "no model known, so no prices; see --model".to_owned(),
            |model| format!("model {}", harmless(model)),
        );
        out.line(format!("{DIM}window {}, {model}{DIM:#}", thousands(session.window.get())))?;
    }
    out.line("")?;
    out.line(rows(report))?;
    recorded(report, out)?;
    out.line("")?;
    for note in &report.notes {
        for (at, line) in wrapped(note).into_iter().enumerate() {
            let lead = if at == 0 { "-" } else { " " };
            out.line(format!("{DIM}{lead} {line}{DIM:#}"))?;
        }
    }
    Ok(())
}

/// A text in lines of a readable width.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < NOTE_CHARS => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn rows(report: &EvalReport) -> String {
    let at = format!("at {:.0} %", report.compact_to * 100.0);
    let header = [
        "candidate",
        "requests",
        "sent",
        "cached",
        "cost",
        "calls",
        "cuts",
        "ratio",
        "coverage",
        "invented",
        "wedges",
        "est. error",
        &at,
        "kind",
    ];
    let lines = report.rows.iter().map(|row| {
        let once = report.once.iter().find(|once| once.kind == row.kind && once.name == row.name);
        vec![
            row.name.clone().into(),
            thousands(row.requests as u64).into(),
            thousands(row.sent_tokens).into(),
            share(row.prefix_reuse),
            row.cost_usd.map_or_else(|| "-".to_owned(), usd).into(),
            thousands(row.calls).into(),
            thousands(row.cuts as u64).into(),
            row.compression_ratio
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
                .into(),
            coverage(row.coverage),
            faults(row.ungrounded),
            faults(row.wedges as u64),
            share(row.estimate_error),
            at_share(once),
            kind(row).into(),
        ]
    });
    table(&header, lines.collect(), header.len() - 1)
}

fn kind(row: &EvalRow) -> String {
    let kind = match row.kind {
        RowKind::None => "nothing left out",
        RowKind::Profile => "profile",
        RowKind::Engine => "engine",
        RowKind::Preset => "preset",
        RowKind::Recorded => "recorded",
    };
    match &row.failed {
        Some(why) => format!("{kind}, failed: {why}"),
        None => kind.to_owned(),
    }
}

fn share(share: Option<f64>) -> Cell {
    share.map_or_else(|| "-".to_owned(), percent).into()
}

fn coverage(found: Option<f64>) -> Cell {
    match found {
        Some(share) if share >= GOOD_COVERAGE => Cell::styled(percent(share), GREEN),
        other => share(other),
    }
}

fn faults(count: u64) -> Cell {
    match count {
        0 => Cell::styled("0", GREEN),
        n => Cell::styled(thousands(n), RED),
    }
}

/// Coverage of the session compacted once; in brackets where the share was not reached.
fn at_share(once: Option<&OnceRow>) -> Cell {
    match once {
        Some(once) if once.failed.is_some() => Cell::styled("failed", RED),
        Some(once) if once.reached < once.sessions => {
            once.coverage.map_or_else(|| "-".to_owned(), |c| format!("({})", percent(c))).into()
        }
        Some(once) => coverage(once.coverage),
        None => "-".into(),
    }
}

/// The agent's own summaries beside ours.
fn recorded(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    let found: Vec<_> = report.sessions.iter().flat_map(|session| &session.recorded).collect();
    if found.is_empty() {
        return Ok(());
    }
    let said = counted(found.len(), "recorded summary");
    out.line(format!(
        "\n{BOLD}{said} of the agent's own model, and ctx's in as many tokens{BOLD:#}"
    ))?;
    let header = [
        "compaction",
        "messages",
        "facts",
        "tokens",
        "kept",
        "invented",
        "tokens, ctx",
        "kept, ctx",
        "invented, ctx",
    ];
    let lines = found.into_iter().map(|found| {
        vec![
            found.entry_id.to_string().into(),
            thousands(found.messages as u64).into(),
            thousands(found.facts).into(),
            thousands(found.recorded.tokens.get()).into(),
            share(found.recorded.in_summary),
            faults(found.recorded.ungrounded.len() as u64),
            thousands(found.ctx.tokens.get()).into(),
            share(found.ctx.in_summary),
            faults(found.ctx.ungrounded.len() as u64),
        ]
    });
    out.line(table(&header, lines.collect(), header.len()))?;
    Ok(())
}
