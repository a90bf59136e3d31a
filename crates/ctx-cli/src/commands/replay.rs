//! `ctx replay`.

use std::process::ExitCode;
use std::sync::Arc;

use ctx_eval::ReplayReport;
use ctx_session::blobs::MemoryBlobs;

use crate::args::{Global, Replay};
use crate::out::{self, BOLD, DIM, Existing, GREEN, Out, RED, bytes, percent, table, thousands};
use crate::setup;

pub(crate) fn run(global: &Global, args: &Replay, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let line = transcript.main_line()?;
    let blobs = Arc::new(MemoryBlobs::default());
    let fitted = setup::fit(global, &args.fit, &transcript, blobs, out)?;
    let session = setup::session_report(&args.session, &transcript)?;
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
    }))?;
    bar.finish_and_clear();
    if report.requests.is_empty() {
        out.warn("the transcript holds no answer of a model, so there is no request to replay");
    }
    if let Some(path) = &args.html {
        out::write_beside(&args.session, path, Existing::Replace, |writer| {
            Ok(ctx_eval::html::write(&report, writer)?)
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

fn print(report: &ReplayReport, out: &Out) -> anyhow::Result<()> {
    let session = &report.session;
    out.line(format!("{BOLD}{}{BOLD:#}", session.path))?;
    out.line(format!(
        "{DIM}{}, {}: {} entries, {} messages, {} tool results{}{DIM:#}",
        session.format,
        bytes(session.bytes),
        thousands(session.entries as u64),
        thousands(session.messages as u64),
        thousands(session.tool_results as u64),
        match session.bad_lines {
            0 => String::new(),
            n => format!(", {n} bad lines"),
        },
    ))?;
    out.line(format!(
        "{DIM}window {}, reserve {}, engine {}, profile {}, counter {}{DIM:#}\n",
        thousands(report.window.get()),
        thousands(report.reserve.get()),
        report.engine,
        report.profile,
        report.counter,
    ))?;
    out.line(comparison(report))?;
    if !report.layers.is_empty() {
        out.line("")?;
        out.line(layers(report))?;
    }
    Ok(())
}

fn comparison(report: &ReplayReport) -> String {
    let totals = &report.totals;
    let count = |n: usize| thousands(n as u64);
    let largest = |f: fn(&ctx_eval::RequestReport) -> u64| {
        thousands(report.requests.iter().map(f).max().unwrap_or(0))
    };
    let usd = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), |usd| format!("${usd:.2}"));
    let cost = match &report.model {
        Some(model) if totals.cost_with_usd.is_some() => format!("cost ({model})"),
        _ => "cost (no price known; see --model)".to_owned(),
    };
    let overflow = match totals.overflows_with {
        0 => format!("{GREEN}0{GREEN:#}"),
        n => format!("{RED}{}{RED:#}", count(n)),
    };
    let rows = [
        ["model requests".to_owned(), count(totals.requests), count(totals.requests)],
        [
            format!("over {} tokens", thousands((report.window - report.reserve).get())),
            count(totals.overflows_without),
            overflow,
        ],
        [
            "largest request".to_owned(),
            largest(|r| r.raw_tokens.get()),
            largest(|r| r.sent_tokens.get()),
        ],
        ["tokens sent".to_owned(), thousands(totals.raw_tokens), thousands(totals.sent_tokens)],
        ["from the cache".to_owned(), String::new(), percent(totals.prefix_reuse)],
        ["times history was cut".to_owned(), String::new(), count(totals.compactions)],
        [cost, usd(totals.cost_without_usd), usd(totals.cost_with_usd)],
    ];
    table(&["", "nothing left out", "with ctx"], rows.map(Vec::from).to_vec(), 3)
}

fn layers(report: &ReplayReport) -> String {
    let rows = report.layers.iter().map(|(layer, did)| {
        vec![
            layer.clone(),
            thousands(did.dropped.into()),
            thousands(did.replaced.into()),
            thousands(did.inserted.into()),
            thousands(u64::try_from(did.tokens_removed).unwrap_or(0)),
        ]
    });
    table(&["layer", "left out", "shortened", "added", "tokens taken out"], rows.collect(), 5)
}
