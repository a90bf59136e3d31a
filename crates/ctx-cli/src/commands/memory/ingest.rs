//! `ctx memory ingest`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;

use ctx_core::Error;
use ctx_memory::Segment;
use ctx_memory::facts::{Learned, Rules, Said};
use serde::Serialize;

use super::{OfAgent, name_of, now};
use crate::args::{Global, Ingest};
use crate::failure::misuse;
use crate::out::{BOLD, Out};
use crate::setup;
use crate::words::{counted, harmless, thousands};

/// So many messages are in memory at once.
const BATCH: usize = 256;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    agent: String,
    sessions: Vec<Ingested>,
    /// Segments in the archive afterwards.
    segments: usize,
    facts: Figures,
}

/// What became of one transcript.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ingested {
    path: PathBuf,
    session: String,
    messages: usize,
    /// New segments.
    added: usize,
    /// Messages that are in the archive already.
    known: usize,
    /// Messages that say nothing, or hold what was recalled.
    passed_over: usize,
}

#[derive(Default, Serialize)]
struct Figures {
    added: usize,
    updated: usize,
    superseded: usize,
}

pub(super) fn run(global: &Global, args: &Ingest, out: &Out) -> anyhow::Result<ExitCode> {
    if args.sessions.iter().any(|path| setup::is_stdin(path)) {
        let error = Error::new(ctx_core::ErrorKind::InvalidInput, "standard input has no name");
        let hint = "write the transcript to a file: its session is found again by that";
        return Err(misuse(error.hint(hint)));
    }
    let of = OfAgent::open(global, &args.of.agent, out)?;
    let before = of.memory.stats()?.segments;
    let mut report = Report {
        agent: of.agent.to_string(),
        sessions: Vec::with_capacity(args.sessions.len()),
        segments: 0,
        facts: Figures::default(),
    };
    for path in &args.sessions {
        let ingested = one(&of, path, &mut report.facts, out)?;
        report.sessions.push(ingested);
    }
    let waiting = out.waiting("writing the index");
    of.memory.settle()?;
    waiting.finish_and_clear();
    of.embed(out)?;
    of.warn(out);
    report.segments = of.memory.stats()?.segments;
    let added: usize = report.sessions.iter().map(|session| session.added).sum();
    let gone = (before + added).saturating_sub(report.segments);
    if gone > 0 {
        let most = counted(of.config.max_segments as usize, "segment");
        // 0 days: age lets nothing go.
        let (age, keys) = match of.config.eviction_days {
            0 => (String::new(), "memoryContext.maxSegments"),
            days => (
                format!(
                    " and nothing that was archived more than {} ago",
                    counted(days as usize, "day")
                ),
                "memoryContext.maxSegments and evictionDays",
            ),
        };
        out.warn(format!(
            "{} let go again, as the archive keeps at most {most}{age}: see {keys}",
            counted(gone, "segment"),
        ));
    }
    match args.of.json {
        true => out.json(&report)?,
        false => print(&report, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn one(of: &OfAgent, path: &Path, facts: &mut Figures, out: &Out) -> anyhow::Result<Ingested> {
    let transcript = setup::open(path, out)?;
    let session = name_of(&transcript, path);
    let (maker, now) = (of.maker(&session), now());
    let line = transcript.main_line()?;
    let bar = out.progress("archiving", line.len());
    let mut done = Ingested { path: path.to_owned(), session, ..Ingested::default() };
    for items in line.chunks(BATCH) {
        let mut segments = Vec::with_capacity(items.len());
        for item in items {
            match maker.of_entry(&item.entry, now)? {
                Some(segment) => segments.push(segment),
                None => done.passed_over += 1,
            }
        }
        let added = of.memory.add(&segments)?;
        done.messages += items.len();
        done.added += added;
        done.known += segments.len() - added;
        learn(of, &segments, facts)?;
        // What was archived is on the disk before the next batch is read.
        of.memory.flush()?;
        bar.inc(items.len() as u64);
    }
    bar.finish_and_clear();
    Ok(done)
}

/// Learns the facts in what was said. Those that are known say nothing new.
fn learn(of: &OfAgent, segments: &[Segment], figures: &mut Figures) -> anyhow::Result<()> {
    let Some(facts) = of.facts.as_ref().filter(|_| of.config.knowledge_extraction) else {
        return Ok(());
    };
    let ids: Vec<String> = segments.iter().map(|segment| segment.id.to_string()).collect();
    let said: Vec<Said<'_>> =
        segments.iter().zip(&ids).map(|(segment, id)| Said::of(segment, id)).collect();
    let found = Rules::default().find(&said);
    if found.is_empty() {
        return Ok(());
    }
    let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
    let Learned { added, updated, superseded, .. } = facts.learn(found)?;
    figures.added += added.len();
    figures.updated += updated.len();
    figures.superseded += superseded.len();
    Ok(())
}

fn print(report: &Report, out: &Out) -> anyhow::Result<()> {
    for session in &report.sessions {
        let path = harmless(&session.path.to_string_lossy());
        out.line(format!("{BOLD}{path}{BOLD:#} as session {}", harmless(&session.session)))?;
        out.line(format!(
            "  {}: {} archived, {} known, {} passed over",
            counted(session.messages, "message"),
            thousands(session.added as u64),
            thousands(session.known as u64),
            thousands(session.passed_over as u64),
        ))?;
    }
    let Figures { added, updated, superseded } = report.facts;
    let (agent, segments) = (harmless(&report.agent), counted(report.segments, "segment"));
    out.line(format!(
        "agent {agent}: {segments}; facts: {added} new, {updated} told in more detail, \
         {superseded} superseded"
    ))?;
    Ok(())
}
