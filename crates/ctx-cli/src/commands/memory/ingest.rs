//! `ctx memory ingest`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::PoisonError;

use ctx_core::{Error, Timestamp};
use ctx_memory::archive::{SegmentMaker, Taken};
use ctx_memory::facts::{Learned, Rules, Said};
use ctx_memory::{Segment, SegmentId};
use ctx_session::LineItem;
use ctx_session::clock;
use serde::Serialize;

use super::{OfAgent, name_of};
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
    /// Transcripts that could not be taken in.
    failed: Vec<Failed>,
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
    /// Messages that were in the archive before.
    known: usize,
    /// Messages that say what one before them in the same transcript says.
    repeated: usize,
    /// Messages that were forgotten, and stay out.
    forgotten: usize,
    /// Messages older than what the archive keeps.
    older: usize,
    /// Messages that say nothing, or hold what was recalled.
    passed_over: usize,
}

#[derive(Serialize)]
struct Failed {
    path: PathBuf,
    error: String,
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
        failed: Vec::new(),
        segments: 0,
        facts: Figures::default(),
    };
    for path in &args.sessions {
        match one(&of, path, &mut report.facts, out) {
            Ok(ingested) => report.sessions.push(ingested),
            // There is nothing else to be told of.
            Err(error) if args.sessions.len() == 1 => return Err(error),
            Err(error) => {
                let (path, error) = (path.clone(), error.to_string());
                out.warn(format!("{} is not archived: {error}", path.display()));
                report.failed.push(Failed { path, error });
            }
        }
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
    let older: usize = report.sessions.iter().map(|session| session.older).sum();
    if older > 0 {
        out.warn(format!(
            "{} older than what the archive keeps were passed over: see memoryContext.maxSegments",
            counted(older, "message"),
        ));
    }
    match args.of.json {
        true => out.json(&report)?,
        false => print(&report, out)?,
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(of: &OfAgent, path: &Path, facts: &mut Figures, out: &Out) -> anyhow::Result<Ingested> {
    let transcript = setup::open(path, out)?;
    let session = name_of(&transcript, path);
    let (maker, now) = (of.maker(&session), clock::now());
    let line = transcript.main_line()?;
    let bar = out.progress("archiving", line.len());
    let mut done = Ingested { path: path.to_owned(), session, ..Ingested::default() };
    let no_room = without_room(of, &maker, &line, now)?;
    let mut seen = HashSet::new();
    let mut forgotten = HashSet::new();
    for items in line.chunks(BATCH) {
        let mut segments = Vec::with_capacity(items.len());
        let mut coming = Vec::with_capacity(items.len());
        for item in items {
            let Some(segment) = maker.of_entry(&item.entry, now)? else {
                done.passed_over += 1;
                continue;
            };
            if !seen.insert(segment.id) {
                done.repeated += 1;
            } else if no_room.contains(&segment.id) {
                done.older += 1;
            } else {
                coming.push(segments.len());
            }
            segments.push(segment);
        }
        let taken = of.memory.take_in(coming.iter().map(|at| &segments[*at]))?;
        for (at, taken) in coming.iter().zip(taken) {
            match taken {
                Taken::New => done.added += 1,
                Taken::Known => done.known += 1,
                Taken::Nothing => done.passed_over += 1,
                Taken::Forgotten => {
                    done.forgotten += 1;
                    forgotten.insert(segments[*at].id);
                }
            }
        }
        done.messages += items.len();
        // Facts that were forgotten with a message stay out as it does.
        segments.retain(|segment| !forgotten.contains(&segment.id));
        learn(of, &segments, facts)?;
        // What was archived is on the disk before the next batch is read.
        of.memory.flush()?;
        bar.inc(items.len() as u64);
    }
    bar.finish_and_clear();
    Ok(done)
}

/// What the archive would let go again at once, of a transcript that does not fit into it as a whole.
fn without_room(
    of: &OfAgent,
    maker: &SegmentMaker,
    line: &[LineItem],
    now: Timestamp,
) -> anyhow::Result<HashSet<SegmentId>> {
    let most = of.config.max_segments as usize;
    if of.memory.stats()?.segments + line.len() <= most {
        return Ok(HashSet::new());
    }
    let mut coming = Vec::with_capacity(line.len());
    for item in line {
        let segment = maker.of_entry(&item.entry, now)?;
        coming.extend(segment.map(|segment| (segment.id, segment.timestamp)));
    }
    Ok(of.memory.without_room(&coming)?)
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
            "  {}: {} archived{}",
            counted(session.messages, "message"),
            thousands(session.added as u64),
            [
                (session.known, "known"),
                (session.repeated, "repeated"),
                (session.forgotten, "forgotten"),
                (session.older, "older than what is kept"),
                (session.passed_over, "passed over"),
            ]
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!(", {} {what}", thousands(*n as u64)))
            .collect::<String>(),
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
