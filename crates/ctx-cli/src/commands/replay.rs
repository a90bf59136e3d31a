//! `ctx replay`.

use std::path::Path;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_eval::{ReplayReport, SessionReport};

use crate::args::{Global, Replay};
use crate::failure::misuse;
use crate::faring;
use crate::files::{Existing, write_beside};
use crate::keeping::Keeping;
use crate::out::{Cell, DIM, GREEN, Out, RED, YELLOW, table};
use crate::receipt;
use crate::session_args::each;
use crate::setup;
use crate::words::{counted, harmless, percent, shortened, thousands, usd};

pub(crate) fn run(global: &Global, args: &Replay, out: &Out) -> anyhow::Result<ExitCode> {
    if args.html.is_some() && args.sessions.len() > 1 {
        let error = Error::new(ErrorKind::InvalidInput, "--html writes a page of one session");
        let hint = "name one session; `ctx eval --html` compares several";
        return Err(misuse(error.with("sessions", args.sessions.len()).hint(hint)));
    }
    let report = |session: &Path| report(global, args, session, out);
    each(&args.sessions, args.json, out, report, |report| print(report, out))
}

fn report(global: &Global, args: &Replay, path: &Path, out: &Out) -> anyhow::Result<ReplayReport> {
    let transcript = setup::open(path, out)?;
    let line = transcript.line_with_compactions(None)?.items;
    let keeping = Keeping::nothing();
    let fit = (&args.fit, &args.summaries);
    let fitted = setup::fit(global, fit, path, &transcript, keeping, out)?;
    let session = SessionReport::of(path, &transcript)?;
    let replay = ctx_eval::Setup {
        ledger: fitted.ledger,
        engine: fitted.engine,
        profile: fitted.profile,
        model: fitted.model,
        prices: fitted.prices,
        details: args.html.is_some(),
    };
    let bar = out.progress("replaying", line.len());
    let report = setup::block_on(ctx_eval::replay(&line, session, &replay, |done| {
        bar.set_position(done as u64);
    }));
    bar.finish_and_clear();
    let warnings = faring::tell(&*replay.engine, out);
    let report = ReplayReport { warnings, ..report? };
    if report.requests.is_empty() {
        out.warn("the transcript holds no answer of a model, so there is no request to replay");
    }
    warn_of_fallbacks(&report, fitted.writer.as_deref(), out);
    if let Some(page) = &args.html {
        let existing = Existing::page(page, args.force);
        write_beside(path, page, existing, |writer| Ok(ctx_eval::html::write(&report, writer)?))?;
        out.note(format!("page written to {}", page.display()));
    }
    Ok(report)
}

/// Says that not all summaries are by the model that was asked for, and why the first is not.
fn warn_of_fallbacks(report: &ReplayReport, asked: Option<&str>, out: &Out) {
    let receipts = report.compactions.iter().filter_map(ctx_eval::CompactionReport::receipt);
    let mut warnings = receipts.filter_map(|receipt| receipt::fell_back(&receipt, asked));
    let Some(first) = warnings.next() else { return };
    out.warn(match warnings.count() {
        0 => first,
        more => format!("{first} (and {} more so)", counted(more, "compaction")),
    });
}

fn print(report: &ReplayReport, out: &Out) -> anyhow::Result<()> {
    out.session(&report.session)?;
    out.line(format!(
        "{DIM}window {}, reserve {}, engine {}, profile {}, counter {}{DIM:#}\n",
        thousands(report.window.get()),
        thousands(report.reserve.get()),
        harmless(&report.engine),
        report.profile,
        report.counter,
    ))?;
    if let Some(served) = served(report) {
        out.line(format!("{YELLOW}{served}{YELLOW:#}\n"))?;
    }
    out.line(comparison(report))?;
    if !report.layers.is_empty() {
        out.line("")?;
        out.line(layers(report))?;
    }
    if !report.compactions.is_empty() {
        out.line("")?;
        out.line(compactions(report))?;
    }
    Ok(())
}

/// Longer reasons are cut.
const REASON_CHARS: usize = 300;

/// Who made the requests, where not all are by the engine that was selected.
fn served(report: &ReplayReport) -> Option<String> {
    let (all, own) = (report.totals.requests, report.engine_answered);
    if own >= all {
        return None;
    }
    let why = report.stand_in_reason.as_deref().unwrap_or("no reason given");
    Some(format!(
        "engine {}: answered {} of {}, {} the others ({})",
        harmless(&report.engine),
        thousands(own as u64),
        counted(all, "request"),
        harmless(report.stand_in.as_deref().unwrap_or("another engine")),
        shortened(why, REASON_CHARS),
    ))
}

fn comparison(report: &ReplayReport) -> String {
    let totals = &report.totals;
    let count = |n: usize| thousands(n as u64);
    let largest = |f: fn(&ctx_eval::RequestReport) -> u64| {
        thousands(report.requests.iter().map(f).max().unwrap_or(0))
    };
    let price = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), usd);
    let cost = match &report.model {
        Some(model) if totals.cost_with_usd.is_some() => format!("cost ({model})"),
        _ if totals.requests == 0 => "cost".to_owned(),
        _ => "cost (no price known; see --model)".to_owned(),
    };
    let overflow = match totals.overflows_with {
        0 => Cell::styled("0", GREEN),
        n => Cell::styled(count(n), RED),
    };
    let mut rows: Vec<[Cell; 3]> = vec![
        ["model requests".into(), count(totals.requests).into(), count(totals.requests).into()],
        [
            format!("over {} tokens", thousands((report.window - report.reserve).get())).into(),
            count(totals.overflows_without).into(),
            overflow,
        ],
        [
            "largest request".into(),
            largest(|r| r.raw_tokens.get()).into(),
            largest(|r| r.sent_tokens.get()).into(),
        ],
        [
            "tokens sent".into(),
            thousands(totals.raw_tokens).into(),
            thousands(totals.sent_tokens).into(),
        ],
        ["from the cache".into(), "".into(), percent(totals.prefix_reuse).into()],
        ["times history was cut".into(), "".into(), count(totals.compactions).into()],
        [cost.into(), price(totals.cost_without_usd).into(), price(totals.cost_with_usd).into()],
    ];
    if totals.recalls > 0 || totals.trimmed_messages > 0 {
        let cost = rows.len() - 1;
        let did = [
            ("requests with recall", totals.recalls as u64),
            ("tokens recalled", totals.recalled_tokens),
            ("messages trimmed", totals.trimmed_messages),
        ];
        let did = did.map(|(what, n)| [what.into(), "".into(), thousands(n).into()]);
        rows.splice(cost..cost, did);
    }
    table(&["", "nothing left out", "with ctx"], rows.into_iter().map(Vec::from).collect(), 3)
}

fn layers(report: &ReplayReport) -> String {
    let rows = report.layers.iter().map(|(layer, did)| {
        vec![
            layer.clone().into(),
            thousands(did.dropped.into()).into(),
            thousands(did.replaced.into()).into(),
            thousands(did.inserted.into()).into(),
            thousands(u64::try_from(did.tokens_removed).unwrap_or(0)).into(),
        ]
    });
    table(&["layer", "left out", "shortened", "added", "tokens taken out"], rows.collect(), 5)
}

/// How many compactions are listed before the rest is only counted.
const LISTED: usize = 12;

fn compactions(report: &ReplayReport) -> String {
    let rows = report.compactions.iter().take(LISTED).map(|compaction| {
        let receipt = compaction.receipt();
        let after = compaction.tokens_after.map_or_else(|| "-".to_owned(), |t| thousands(t.get()));
        let mut row: Vec<Cell> = vec![
            thousands(compaction.request as u64 + 1).into(),
            thousands(compaction.tokens_before.get()).into(),
            after.into(),
        ];
        row.extend(receipt.as_ref().map(receipt::cells).unwrap_or_default());
        row
    });
    let header = [
        "at request",
        "tokens",
        "after",
        "messages",
        "summary",
        "facts kept",
        "ungrounded",
        "written by",
    ];
    let mut text = table(&header, rows.collect(), 7);
    if let Some(more) = report.compactions.len().checked_sub(LISTED).filter(|&more| more > 0) {
        text.push_str(&format!(
            "\n{DIM}and {} more; --json has them all{DIM:#}",
            thousands(more as u64)
        ));
    }
    text
}
