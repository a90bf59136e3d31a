//! `ctx replay`.

use std::path::Path;
use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_eval::{Baseline, ReplayReport, SessionReport};
use ctx_runtime::Stores;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, escaped, percent, shortened, thousands, usd, wrapped};
use ctx_terminal::out::{Cell, DIM, GREEN, Out, RED, Table, YELLOW, table, terminal_columns};

use super::status::{calibrated, print_session};
use crate::args::{Fit, Global, Replay, Summaries};
use crate::files::{earlier_page, write_beside};
use crate::session_args::each;
use crate::{engine_health, receipt, setup};

pub(crate) fn run(global: &Global, args: &Replay, out: &Out) -> anyhow::Result<ExitCode> {
    if args.page.html.is_some() && args.sessions.len() > 1 {
        let error = Error::new(ErrorKind::InvalidInput, "--html writes a page of one session");
        let hint = "name one session; `ctx eval --html` compares several";
        return Err(misuse(error.with("sessions", args.sessions.len()).hint(hint)));
    }
    let report = |session: &Path| report(global, args, session, out);
    each(&args.sessions, args.json, out, report, |report| print(report, out))
}

fn report(global: &Global, args: &Replay, path: &Path, out: &Out) -> anyhow::Result<ReplayReport> {
    let fit = (&args.fit, &args.summaries);
    let Replayed { report, writer } = replayed(global, fit, path, args.page.html.is_some(), out)?;
    if report.requests.is_empty() {
        out.warn("no requests to replay: the transcript has no answers of a model");
    }
    warn_of_fallbacks(&report, writer.as_deref(), out);
    if let Some(page) = &args.page.html {
        let existing = earlier_page(page, args.page.force);
        write_beside(path, page, existing, |writer| {
            Ok(ctx_inspector::pages::replay::write(&report, writer)?)
        })?;
        out.note(format!("page written to {}", page.display()));
    }
    Ok(report)
}

/// A replay, and the model that was to write its summaries.
pub(super) struct Replayed {
    pub(super) report: ReplayReport,
    writer: Option<String>,
}

/// Replays a session; `details` are those of [`ctx_eval::ReplaySetup`].
pub(super) fn replayed(
    global: &Global,
    fit: (&Fit, &Summaries),
    path: &Path,
    details: bool,
    out: &Out,
) -> anyhow::Result<Replayed> {
    let transcript = setup::open(path, out)?;
    let line = transcript.messages_with_compactions(None)?.items;
    let fitted = setup::fit(global, fit, path, &transcript, Stores::discarding(), out)?;
    let session = SessionReport::of(path, &transcript)?;
    let replay = ctx_eval::ReplaySetup {
        baseline: Baseline::of(&transcript, &fitted.ledger)?,
        ledger: fitted.ledger,
        engine: fitted.engine,
        profile: fitted.profile,
        model: fitted.model,
        prices: fitted.prices,
        details,
    };
    let bar = out.progress("replaying messages", line.len());
    let report = setup::block_on(ctx_eval::replay(&line, session, &replay, |done| {
        bar.set_position(done as u64);
    }));
    bar.finish_and_clear();
    let warnings = engine_health::report(&*replay.engine, out);
    Ok(Replayed { report: ReplayReport { warnings, ..report? }, writer: fitted.writer })
}

/// Warns that the requested model did not write all summaries, with the first reason.
fn warn_of_fallbacks(report: &ReplayReport, asked: Option<&str>, out: &Out) {
    let receipts = report.compactions.iter().filter_map(ctx_eval::CompactionReport::receipt);
    let mut warnings = receipts.filter_map(|receipt| receipt::fell_back(&receipt, asked));
    let Some(first) = warnings.next() else { return };
    out.warn(match warnings.count() {
        0 => first,
        more => format!("{first} (and {} more like this)", counted(more, "compaction")),
    });
}

fn print(report: &ReplayReport, out: &Out) -> anyhow::Result<()> {
    print_session(&report.session, out)?;
    let setup = format!(
        "window {}, reserve {}, engine {}, profile {}, counter {}",
        thousands(report.window.get()),
        thousands(report.reserve.get()),
        escaped(&report.engine),
        report.profile,
        report.counter,
    );
    for text in [setup, figures(report)] {
        for line in wrapped(&text, [0; 2], terminal_columns()) {
            out.line(format!("{DIM}{line}{DIM:#}"))?;
        }
    }
    out.line("")?;
    if let Some(served) = served(report) {
        out.line(format!("{YELLOW}{served}{YELLOW:#}\n"))?;
    }
    out.line(comparison(report))?;
    if let Some(text) = dearer(report) {
        for line in wrapped(&text, [0; 2], terminal_columns()) {
            out.line(format!("{YELLOW}{line}{YELLOW:#}"))?;
        }
    }
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

/// Maximum length of a reason.
const REASON_CHARS: usize = 300;

/// Describes which engines assembled the requests, if the selected engine did not assemble all.
fn served(report: &ReplayReport) -> Option<String> {
    let (all, own) = (report.totals.requests, report.engine_answered);
    if own >= all {
        return None;
    }
    let why = report.stand_in_reason.as_deref().unwrap_or("no reason given");
    Some(format!(
        "engine {}: answered {} of {}, {} the others ({})",
        escaped(&report.engine),
        thousands(own as u64),
        counted(all, "request"),
        escaped(report.stand_in.as_deref().unwrap_or("another engine")),
        shortened(why, REASON_CHARS),
    ))
}

/// Describes where the figures come from.
fn figures(report: &ReplayReport) -> String {
    let Some(calibration) = &report.calibration else {
        return match report.totals.recorded_tokens {
            Some(_) => {
                "recorded: reported by the provider; the rest is estimated: the reported usage \
                 does not match the messages"
            }
            None => {
                "every figure is estimated: the transcript has no usage reported by the provider"
            }
        }
        .to_owned();
    };
    let omitted = match calibration.constant_applied {
        true => "",
        false => {
            "; that prompt does not fit into this window: the columns full history and with ctx \
             omit it, so compare only these two with each other"
        }
    };
    format!(
        "recorded: reported by the provider; the rest is estimated: {}{omitted}",
        calibrated(calibration, &report.counter)
    )
}

/// Differences smaller than half a cent are ignored.
const CENT: f64 = 0.01;

/// Returns a note if ctx would have cost more than the agent's own handling.
fn dearer(report: &ReplayReport) -> Option<String> {
    let (recorded, with) = (report.totals.cost_recorded_usd?, report.totals.cost_with_usd?);
    (with - recorded >= CENT / 2.0).then(|| {
        format!(
            "with ctx this session would have cost {} more than what was recorded",
            usd(with - recorded)
        )
    })
}

/// Narrower terminals do not show the model's name.
const NARROW: usize = 80;

/// A row of the comparison: name, recorded, with the full history, with ctx.
type Row = (String, Option<String>, Option<String>, Cell);

fn comparison(report: &ReplayReport) -> String {
    let has_recorded = report.recorded.is_some();
    let mut header = vec!["", "recorded", "full history", "with ctx"];
    if !has_recorded {
        header.remove(1);
    }
    let mut rows = rows_of_requests(report);
    let totals = &report.totals;
    if totals.recalls > 0 || totals.trimmed_messages > 0 {
        let did = [
            ("requests with recall", totals.recalls as u64),
            ("tokens recalled", totals.recalled_tokens),
            ("messages trimmed", totals.trimmed_messages),
        ];
        rows.extend(did.map(|(what, n)| (what.to_owned(), None, None, thousands(n).into())));
    }
    rows.push(row_of_cost(report));
    let cells = |(what, own, full, with): Row| {
        let own = has_recorded.then(|| own.unwrap_or_default().into());
        let full = full.unwrap_or_default().into();
        [Some(what.into()), own, Some(full), Some(with)].into_iter().flatten().collect()
    };
    table(&header, rows.into_iter().map(cells).collect(), header.len())
}

fn row_of_cost(report: &ReplayReport) -> Row {
    let totals = &report.totals;
    let price = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), usd);
    let is_narrow = terminal_columns().is_some_and(|columns| columns < NARROW);
    let cost = match &report.model {
        _ if is_narrow => "cost".to_owned(),
        Some(model) if totals.cost_with_usd.is_some() => format!("cost ({model})"),
        _ if totals.requests == 0 => "cost".to_owned(),
        _ => "cost (no price known; see --model)".to_owned(),
    };
    (
        cost,
        report.recorded.as_ref().map(|r| price(r.cost_usd)),
        Some(price(totals.cost_without_usd)),
        price(totals.cost_with_usd).into(),
    )
}

fn rows_of_requests(report: &ReplayReport) -> Vec<Row> {
    let (totals, recorded) = (&report.totals, report.recorded.as_ref());
    let count = |n: usize| thousands(n as u64);
    let largest = |f: fn(&ctx_eval::RequestReport) -> u64| {
        thousands(report.requests.iter().map(f).max().unwrap_or(0))
    };
    let over = match totals.overflows_with {
        0 => Cell::styled("0", GREEN),
        n => Cell::styled(count(n), RED),
    };
    let hit_rate = |cached: u64, tokens: u64| percent(cached as f64 / tokens.max(1) as f64);
    vec![
        (
            "model requests".to_owned(),
            recorded.map(|r| count(r.requests)),
            Some(count(totals.requests)),
            count(totals.requests).into(),
        ),
        (
            format!("over {} tokens", thousands((report.window - report.reserve).get())),
            recorded.map(|r| count(r.over_limit)),
            Some(count(totals.overflows_without)),
            over,
        ),
        (
            "largest request".to_owned(),
            recorded.map(|r| thousands(r.largest)),
            Some(largest(|r| r.raw_tokens.get())),
            largest(|r| r.sent_tokens.get()).into(),
        ),
        (
            "prompt tokens".to_owned(),
            recorded.map(|r| thousands(r.tokens)),
            Some(thousands(totals.raw_tokens)),
            thousands(totals.sent_tokens).into(),
        ),
        (
            "cache hit rate".to_owned(),
            recorded.map(|r| hit_rate(r.cached_tokens, r.tokens)),
            None,
            percent(totals.prefix_reuse).into(),
        ),
        (
            "compactions".to_owned(),
            recorded.map(|r| count(r.compactions)),
            Some("0".to_owned()),
            count(totals.compactions).into(),
        ),
    ]
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
    table(&["layer", "dropped", "truncated", "inserted", "tokens removed"], rows.collect(), 5)
}

/// Maximum number of compactions listed; the rest is counted.
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
    let spared = &["messages", "written by", "ungrounded"];
    let mut text = Table::new(&header, rows.collect(), 7).without(spared).fitted();
    if let Some(more) = report.compactions.len().checked_sub(LISTED).filter(|&more| more > 0) {
        text.push_str(&format!(
            "\n{DIM}and {} more; --json has them all{DIM:#}",
            thousands(more as u64)
        ));
    }
    text
}
