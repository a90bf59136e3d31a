//! `ctx diff`.

use std::process::ExitCode;

use ctx_compaction::{FactStatus, TracedFact};
use ctx_config::SystemRules;
use ctx_core::{Error, ErrorKind};
use ctx_eval::CompactionDiff as Report;
use ctx_session::{StoredCompaction, Transcript};
use ctx_terminal::format::{counted, escaped, shortened, thousands};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, YELLOW, table};

use crate::args::{Diff, Global};
use crate::entry_ids::{ShortIds, find_compaction, lists_compactions};
use crate::{receipt, setup};

/// Maximum length of a fact.
const FACT_CHARS: usize = 90;

/// Maximum number of facts printed per outcome; the rest is counted.
const LISTED: usize = 30;

pub(crate) fn run(global: &Global, args: &Diff, out: &Out) -> anyhow::Result<ExitCode> {
    let counter = setup::config(global)?.section::<SystemRules>()?.counter;
    let transcript = setup::open(&args.session, out)?;
    let list = transcript.compaction_list(None)?;
    let compaction = choose(&transcript, &list, args)?;
    let mut report = Report::of_stored(&transcript, compaction, &counter)?;
    if args.lost {
        report.facts.retain(|fact| fact.status == FactStatus::Lost);
    }
    out.report(args.json, &report, |report, out| {
        print(report, &ShortIds::of(&transcript), args, out)
    })
}

/// Returns the named compaction, or the newest one in force.
fn choose<'a>(
    transcript: &Transcript,
    list: &'a [StoredCompaction],
    args: &Diff,
) -> anyhow::Result<&'a StoredCompaction> {
    let named = args.compaction.as_deref();
    let found = match named {
        Some(id) => {
            let id = find_compaction(transcript, &args.session, id)?;
            list.iter().find(|compaction| compaction.id == id)
        }
        None => list.iter().rfind(|compaction| !compaction.undone),
    };
    found.ok_or_else(|| match (named, list.is_empty()) {
        (Some(id), false) => Error::new(ErrorKind::NotFound, format!("'{id}' is not a compaction"))
            .hint(lists_compactions(&args.session))
            .into(),
        _ => Error::new(ErrorKind::NotFound, "the session has no compaction in force")
            .hint("`ctx compact SESSION` makes one; --dry-run shows it without storing it")
            .into(),
    })
}

fn print(report: &Report, ids: &ShortIds<'_>, args: &Diff, out: &Out) -> anyhow::Result<()> {
    let tokens: u64 = report.removed.iter().map(|removed| removed.tokens).sum();
    out.line(format!(
        "{BOLD}{}{BOLD:#} of {} tokens left the context with compaction {}\n",
        counted(report.removed.len(), "message"),
        thousands(tokens),
        ids.show(&report.compaction),
    ))?;
    let with = |matches: fn(&FactStatus) -> bool| {
        report.facts.iter().filter(move |fact| matches(&fact.status)).collect::<Vec<_>>()
    };
    let lost = with(|status| *status == FactStatus::Lost);
    let summarised = with(|status| matches!(status, FactStatus::Summary { .. }));
    let kept = with(|status| matches!(status, FactStatus::Kept { .. }));
    section("lost", RED, &lost, ids, out)?;
    if !args.lost {
        section("in the summary", GREEN, &summarised, ids, out)?;
        section("in messages that were kept", YELLOW, &kept, ids, out)?;
    }
    if let Some(fact) = lost.first() {
        let (session, entry) =
            (escaped(&args.session.to_string_lossy()), ids.show(&fact.fact.entry));
        out.note(format!("the originals are in the transcript: `ctx expand {session} {entry}`"));
    }
    Ok(())
}

fn section(
    title: &str,
    style: anstyle::Style,
    facts: &[&TracedFact],
    ids: &ShortIds<'_>,
    out: &Out,
) -> anyhow::Result<()> {
    out.line(format!("{style}{title}{style:#}: {}", counted(facts.len(), "fact")))?;
    let rows = facts.iter().take(LISTED).map(|traced| {
        let place = match &traced.status {
            FactStatus::Kept { entry } => format!("now in {}", ids.show(entry)),
            _ => ids.show(&traced.fact.entry),
        };
        let cells: [Cell; 3] = [
            format!("  {}", receipt::kind_name(traced.fact.kind)).into(),
            Cell::styled(place, DIM),
            shortened(&traced.fact.text, FACT_CHARS).into(),
        ];
        Vec::from(cells)
    });
    if !facts.is_empty() {
        out.line(table(&[], rows.collect(), 1))?;
    }
    if facts.len() > LISTED {
        let more = thousands((facts.len() - LISTED) as u64);
        out.line(format!("  {DIM}and {more} more; --json has them all{DIM:#}"))?;
    }
    out.line("")?;
    Ok(())
}
