//! `ctx status`.

use std::path::Path;
use std::process::ExitCode;

use ctx_core::{MIN_MESSAGE_TOKENS, Tokens};
use ctx_eval::{SessionCalibration, SessionReport, StatusReport, TokenSource};
use ctx_terminal::format::{bytes, counted, escaped, percent, shortened, thousands};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, YELLOW, table};

use crate::args::{Global, Status};
use crate::session_args::each;
use crate::{engine_health, setup};

/// Maximum length of a session's name.
const NAME_CHARS: usize = 120;

pub(crate) fn run(global: &Global, args: &Status, out: &Out) -> anyhow::Result<ExitCode> {
    let report = |session: &Path| report(global, args, session, out);
    each(&args.sessions, args.json, out, report, |report| print(report, out))
}

fn report(
    global: &Global,
    args: &Status,
    session: &Path,
    out: &Out,
) -> anyhow::Result<StatusReport> {
    let transcript = setup::open(session, out)?;
    let resolved = setup::resolve(global, &args.fit, session, &transcript)?;
    if args.fit.window.is_some() {
        setup::check_window(&resolved, &args.fit)?;
    }
    resolved.check_engine()?;
    setup::warn(&resolved, out);
    let trouble = engine_health::trouble_with(&resolved.engine.id, out)?;
    Ok(ctx_mcp::status(session, &transcript, &resolved, trouble)?)
}

fn print(report: &StatusReport, out: &Out) -> anyhow::Result<()> {
    print_session(&report.session, out)?;
    if let Some(name) = &report.name {
        out.line(format!("{DIM}name: {}{DIM:#}", shortened(name, NAME_CHARS)))?;
    }
    out.line("")?;
    let mut rows = vec![("request", used(report)), ("window", window(report).into())];
    rows.push(("messages", roles(report).into()));
    rows.push(("full history", full_history(report).into()));
    match &report.calibration {
        Some(fit) => rows.push(("calibration", calibrated(fit, &report.counter).into())),
        None if report.context.source == TokenSource::Provider => rows.push((
            "calibration",
            Cell::styled("none: the provider's figures do not match the messages", YELLOW),
        )),
        None => {}
    }
    if let Some(model) = &report.model {
        rows.push(("model", format!("{}/{}", model.provider, model.model_id).into()));
    }
    let (engine, by) = (shortened(&report.engine, NAME_CHARS), &report.engine_source);
    rows.push(("engine", format!("{engine} (by {by})").into()));
    if let Some(trouble) = &report.engine_trouble {
        rows.push((
            "",
            Cell::styled(format!("degraded: {}", engine_health::describe(trouble)), YELLOW),
        ));
    }
    rows.push(("compactions", thousands(report.compactions as u64).into()));
    if report.branches > 1 {
        rows.push(("branches", thousands(report.branches as u64).into()));
    }
    rows.push(("next request", next(report)));
    let rows = rows.into_iter().map(|(what, cell)| vec![what.into(), cell]).collect();
    out.line(table(&[], rows, 0))?;
    Ok(())
}

/// Prints the subject of a report: the transcript, and its size.
pub(super) fn print_session(session: &SessionReport, out: &Out) -> std::io::Result<()> {
    out.line(format!("{BOLD}{}{BOLD:#}", escaped(&session.path)))?;
    let mut parts = vec![
        counted(session.entries, "entry"),
        counted(session.messages, "message"),
        counted(session.tool_results, "tool result"),
    ];
    if session.bad_lines > 0 {
        let bad = usize::try_from(session.bad_lines).unwrap_or(usize::MAX);
        parts.push(counted(bad, "bad line"));
    }
    let (format, size) = (&session.format, bytes(session.bytes));
    out.line(format!("{DIM}{format}, {size}: {}{DIM:#}", parts.join(", ")))
}

fn used(report: &StatusReport) -> Cell {
    let colour = match report.used_share {
        share if share > 1.0 => RED,
        share if share >= 0.8 => YELLOW,
        _ => GREEN,
    };
    let context = &report.context;
    let (used, limit) = (context.next_request(), thousands(context.limit.get()));
    let (used, share) = (thousands(used.get()), percent(report.used_share));
    let fixed = (report.system + report.tools).get();
    let origin = match context.source {
        TokenSource::Provider => format!(
            ": {} reported by the provider, {} added since",
            thousands(context.tokens.get()),
            thousands(context.pending_tokens.get())
        ),
        TokenSource::Estimated if fixed > 0 => {
            format!(", estimated; {} of them system prompt and tools", thousands(fixed))
        }
        source => format!(", {source}"),
    };
    Cell::styled(format!("{used} of {limit} tokens ({share}){origin}"), colour)
}

fn window(report: &StatusReport) -> String {
    let (window, reserve) = (thousands(report.window.get()), thousands(report.reserve.get()));
    let size = |tokens: Option<Tokens>| thousands(tokens.unwrap_or_default().get());
    let catalogued = size(report.catalogued_window);
    let from = match (report.auto_compacted_at, report.answered_prompt) {
        (at @ Some(_), _) => {
            format!(
                "the agent compacted by itself at {}; the catalogue says {catalogued}",
                size(at)
            )
        }
        (_, at @ Some(_)) => {
            format!("a prompt of {} was answered; the catalogue says {catalogued}", size(at))
        }
        _ => format!("from {}", report.source),
    };
    format!("{window} ({from}), {reserve} reserved for the answer")
}

fn full_history(report: &StatusReport) -> String {
    let counted = report.all_messages_tokens;
    let tokens = match &report.calibration {
        Some(fit) => fit.constant + (fit.factor * counted as f64).round() as u64,
        None => counted,
    };
    format!("{} tokens, estimated", thousands(tokens))
}

/// Describes how the sizes of a session were calibrated.
pub(super) fn calibrated(calibration: &SessionCalibration, counter: &str) -> String {
    let SessionCalibration { constant, factor, requests, median_error, .. } = calibration;
    format!(
        "{} tokens of system prompt and tools + {factor:.2} x {}, fitted to {}, off by {} (median)",
        thousands(*constant),
        escaped(counter),
        counted(*requests, "reported request"),
        percent(*median_error)
    )
}

/// Describes what happens with the next request.
fn next(report: &StatusReport) -> Cell {
    if report.should_block {
        Cell::styled("refused: the window is under the guard's minimum", RED)
    } else if report.system + report.tools + MIN_MESSAGE_TOKENS > report.limit {
        Cell::styled("refused: system prompt and tools leave no room for messages", RED)
    } else if report.should_compact {
        Cell::styled("history will be cut", YELLOW)
    } else {
        "fits as it is".into()
    }
}

fn roles(report: &StatusReport) -> String {
    let count = |n: usize| thousands(n as u64);
    let parts: Vec<_> =
        report.context.roles.iter().map(|(role, &n)| format!("{} {role}", count(n))).collect();
    match parts.is_empty() {
        true => "none".to_owned(),
        false => format!("{} ({})", count(report.context.messages), parts.join(", ")),
    }
}
