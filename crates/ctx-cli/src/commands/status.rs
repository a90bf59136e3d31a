//! `ctx status`.

use std::process::ExitCode;

use ctx_eval::StatusReport;

use crate::args::{Global, Status};
use crate::out::{BOLD, DIM, GREEN, Out, RED, YELLOW, bytes, percent, table, thousands};
use crate::setup;

pub(crate) fn run(global: &Global, args: &Status, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let fitted = setup::resolve(global, &args.fit, &transcript)?;
    let session = setup::session_report(&args.session, &transcript)?;
    let report = ctx_eval::status(&transcript, session, &fitted.status_setup())?;
    if args.json {
        out.json(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &StatusReport, out: &Out) -> anyhow::Result<()> {
    let session = &report.session;
    out.line(format!("{BOLD}{}{BOLD:#}", session.path))?;
    out.line(format!(
        "{DIM}{}, {}: {} entries, {} messages, {} tool results{DIM:#}",
        session.format,
        bytes(session.bytes),
        thousands(session.entries as u64),
        thousands(session.messages as u64),
        thousands(session.tool_results as u64),
    ))?;
    if let Some(name) = &report.name {
        out.line(format!("{DIM}name: {name}{DIM:#}"))?;
    }
    out.line("")?;
    let used = report.used_share;
    let colour = match used {
        share if share >= 1.0 => RED,
        share if share >= 0.8 => YELLOW,
        _ => GREEN,
    };
    let context = &report.context;
    let mut rows = vec![
        vec![
            "context".to_owned(),
            format!(
                "{colour}{}{colour:#} of {} tokens, {}",
                thousands(context.tokens.get()),
                thousands(report.limit.get()),
                percent(used)
            ),
        ],
        vec![
            "window".to_owned(),
            format!(
                "{} (from {}), {} kept free for the answer",
                thousands(report.window.get()),
                report.source,
                thousands(report.reserve.get())
            ),
        ],
        vec!["messages".to_owned(), roles(report)],
        vec![
            "whole session".to_owned(),
            format!("{} tokens with nothing left out", thousands(report.all_messages_tokens)),
        ],
    ];
    if let Some(reported) = &report.reported {
        rows.push(vec![
            "reported".to_owned(),
            format!(
                "{} tokens by the provider; its count is {:.2} times this counter's",
                thousands(reported.tokens),
                reported.calibration
            ),
        ]);
    }
    if let Some(model) = &report.model {
        rows.push(vec!["model".to_owned(), format!("{}/{}", model.provider, model.model_id)]);
    }
    rows.push(vec!["compactions".to_owned(), report.compactions.to_string()]);
    if report.branches > 1 {
        rows.push(vec!["branches".to_owned(), report.branches.to_string()]);
    }
    let next = if report.should_compact { "history will be cut" } else { "fits as it is" };
    rows.push(vec!["next request".to_owned(), next.to_owned()]);
    out.line(table(&[], rows, 0))?;
    for problem in &report.problems {
        out.warn(problem);
    }
    Ok(())
}

fn roles(report: &StatusReport) -> String {
    let parts: Vec<_> =
        report.context.roles.iter().map(|(role, n)| format!("{n} {role}")).collect();
    format!("{} ({})", report.context.messages, parts.join(", "))
}
