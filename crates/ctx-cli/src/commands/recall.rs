//! `ctx recall`.

use std::process::ExitCode;

use ctx_runtime::lookup::{Nothing, RecallAsked, Recalled};
use ctx_session::clock;

use crate::args::{Global, RecallArgs};
use crate::commands::memory::OfAgent;
use crate::failure::misuse;
use crate::out::Out;
use crate::setup;
use crate::words::{counted, harmless_lines};

pub(crate) fn run(global: &Global, args: &RecallArgs, out: &Out) -> anyhow::Result<ExitCode> {
    let budget = args.budget.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    let of = OfAgent::open(global, &args.of.agent, out)?;
    of.index(out)?;
    let session = args.session.as_deref().map(|named| of.session(named)).transpose()?;
    let asked = RecallAsked {
        query: &args.query,
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
        out.line(harmless_lines(block))?;
        out.note(format!(
            "{} of {} tokens: {} and {}",
            report.tokens,
            report.budget,
            counted(report.facts_used, "fact"),
            counted(report.passages_used(), "passage"),
        ));
    } else if let Some(nothing) = report.nothing() {
        out.note(why_nothing(&report, nothing));
    }
    Ok(ExitCode::SUCCESS)
}

fn why_nothing(report: &Recalled, nothing: Nothing) -> String {
    let (facts, passages) = match nothing {
        Nothing::NoQuery => {
            return "a query of less than three letters, or two characters of Chinese, recalls \
                    nothing"
                .to_owned();
        }
        Nothing::NothingFits => {
            return "nothing that was said fits well enough; `ctx memory search` shows what is nearest"
                .to_owned();
        }
        Nothing::NoRoom { facts, passages } => (facts, passages),
    };
    let found = match (facts, passages) {
        (_, 0) => counted(facts, "fact"),
        (0, _) => counted(passages, "passage"),
        _ => format!("{} and {}", counted(facts, "fact"), counted(passages, "passage")),
    };
    let budget = report.budget;
    format!("nothing of what was found ({found}) fits into {budget} tokens; raise `--budget`")
}
