//! `ctx recall`.

use std::process::ExitCode;

use ctx_runtime::lookup::RecallQuery;
use ctx_session::clock;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, escaped_lines};
use ctx_terminal::out::Out;

use crate::args::{Global, RecallArgs};
use crate::commands::memory;
use crate::setup;

pub(crate) fn run(global: &Global, args: &RecallArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let budget = args.budget.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    let of = memory::open(global, &args.of.agent, out)?;
    memory::index(&of, out)?;
    let session = args.session.as_deref().map(|named| memory::session(&of, named)).transpose()?;
    let asked = RecallQuery {
        query: &args.query.join(" "),
        session: session.as_deref(),
        everywhere: args.all_sessions,
        budget,
        now: clock::now(),
    };
    let report = setup::block_on(of.recall(&asked))?;
    report.warnings.iter().for_each(|warning| out.warn(warning));
    if args.of.json {
        out.json(&report)?;
    } else if let Some(block) = &report.block {
        out.line(escaped_lines(block))?;
        out.note(format!(
            "{} of {} tokens: {} and {}",
            report.tokens,
            report.budget,
            counted(report.facts_used, "fact"),
            counted(report.passages_used(), "passage"),
        ));
    } else {
        out.note(report.why_nothing());
    }
    Ok(ExitCode::SUCCESS)
}
