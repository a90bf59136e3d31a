//! `ctx memory ingest`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctx_core::Error;
use ctx_runtime::lookup::{self, Lookup};
use ctx_session::clock;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::{counted, escaped, thousands};
use ctx_terminal::out::{BOLD, Out};
use serde::Serialize;

use super::name_of;
use crate::args::{Global, Ingest};
use crate::setup;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IngestReport {
    agent: String,
    sessions: Vec<IngestedSession>,
    /// Transcripts that could not be archived.
    failed: Vec<Failed>,
    /// Number of segments in the archive afterwards.
    segments: usize,
    facts: FactCounts,
}

/// The result of one transcript.
#[derive(Serialize)]
struct IngestedSession {
    path: PathBuf,
    session: String,
    #[serde(flatten)]
    done: lookup::IngestReport,
}

#[derive(Serialize)]
struct Failed {
    path: PathBuf,
    error: String,
}

#[derive(Default, Serialize)]
struct FactCounts {
    added: usize,
    updated: usize,
    superseded: usize,
}

pub(super) fn run(global: &Global, args: &Ingest, out: &Out) -> anyhow::Result<ExitCode> {
    if args.sessions.iter().any(|path| setup::is_stdin(path)) {
        let error =
            Error::new(ctx_core::ErrorKind::InvalidInput, "standard input has no file name");
        let hint = "write the transcript to a file: memory identifies its session by the file name";
        return Err(misuse(error.hint(hint)));
    }
    let of = super::open(global, &args.of.agent, out)?;
    let before = of.memory.stats()?.segments;
    let mut report = IngestReport {
        agent: of.agent.to_string(),
        sessions: Vec::with_capacity(args.sessions.len()),
        failed: Vec::new(),
        segments: 0,
        facts: FactCounts::default(),
    };
    for path in &args.sessions {
        match one(&of, path, &mut report.facts, out) {
            Ok(ingested) => report.sessions.push(ingested),
            // A single transcript has no other results to report.
            Err(error) if args.sessions.len() == 1 => return Err(error),
            Err(error) => {
                let (path, error) = (path.clone(), error.to_string());
                out.warn(format!("{} was not archived: {error}", path.display()));
                report.failed.push(Failed { path, error });
            }
        }
    }
    out.while_waiting("writing the index", || of.memory.settle())?;
    super::embed(&of, out)?;
    super::warn(&of, out);
    report.segments = of.memory.stats()?.segments;
    warn_of_losses(&of, before, &report, out);
    out.report(args.of.json, &report, print)?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Archives a transcript without a report. Vectors that are missing are computed by a later command.
pub(super) fn archive(global: &Global, path: &Path) -> anyhow::Result<()> {
    let out = Out::silent();
    let of = super::open(global, "main", &out)?;
    one(&of, path, &mut FactCounts::default(), &out)?;
    Ok(of.memory.settle()?)
}

/// Warns if segments were evicted or messages skipped. `before` is the number of segments before
/// the command.
fn warn_of_losses(of: &Lookup, before: usize, report: &IngestReport, out: &Out) {
    let added: usize = report.sessions.iter().map(|session| session.done.added).sum();
    let gone = (before + added).saturating_sub(report.segments);
    if gone > 0 {
        let most = counted(of.config.max_segments as usize, "segment");
        // 0 days disables eviction by age.
        let age = match of.config.eviction_days {
            0 => String::new(),
            days => {
                format!(", none for more than {} (evictionDays)", counted(days as usize, "day"))
            }
        };
        out.warn(format!(
            "{} evicted: the archive keeps at most {most} (memoryContext.maxSegments){age}",
            counted(gone, "segment"),
        ));
    }
    let older: usize = report.sessions.iter().map(|session| session.done.older).sum();
    if older > 0 {
        out.warn(format!(
            "{} skipped, as they are older than the archive keeps: see memoryContext.maxSegments",
            counted(older, "message"),
        ));
    }
}

fn one(
    of: &Lookup,
    path: &Path,
    facts: &mut FactCounts,
    out: &Out,
) -> anyhow::Result<IngestedSession> {
    let transcript = setup::open(path, out)?;
    let session = name_of(&transcript, path);
    let line = transcript.main_line()?;
    let bar = out.progress("archiving messages", line.len());
    let done = of.ingest(&session, &line, clock::now(), |messages| {
        bar.inc(messages as u64);
        Ok(())
    })?;
    bar.finish_and_clear();
    for learned in &done.facts {
        facts.added += learned.added.len();
        facts.updated += learned.updated.len();
        facts.superseded += learned.superseded.len();
    }
    Ok(IngestedSession { path: path.to_owned(), session, done })
}

fn print(report: &IngestReport, out: &Out) -> anyhow::Result<()> {
    for session in &report.sessions {
        let done = &session.done;
        let path = escaped(&session.path.to_string_lossy());
        out.line(format!("{BOLD}{path}{BOLD:#} as session {}", escaped(&session.session)))?;
        out.line(format!(
            "  {}: {} archived{}",
            counted(done.messages, "message"),
            thousands(done.added as u64),
            [
                (done.known, "known"),
                (done.repeated, "repeated"),
                (done.forgotten, "forgotten"),
                (done.older, "older than the archive keeps"),
                (done.passed_over, "skipped"),
            ]
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!(", {} {what}", thousands(*n as u64)))
            .collect::<String>(),
        ))?;
    }
    let FactCounts { added, updated, superseded } = report.facts;
    let (agent, segments) = (escaped(&report.agent), counted(report.segments, "segment"));
    out.line(format!(
        "agent {agent}: {segments}; facts: {added} new, {updated} extended, \
         {superseded} superseded"
    ))?;
    Ok(())
}
