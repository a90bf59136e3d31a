//! `ctx check`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ctx_core::{EntryId, Error, ErrorKind};
use ctx_eval::SessionReport;
use ctx_session::{Severity, Transcript};
use ctx_terminal::failure::misuse;
use ctx_terminal::files::Existing;
use ctx_terminal::format::{counted, escaped, shortened};
use ctx_terminal::out::{DIM, GREEN, Out, YELLOW};
use serde::Serialize;

use crate::args::Check;
use crate::files::write_beside;
use crate::setup;

/// Maximum length of a problem's text when printed for users.
const TEXT_CHARS: usize = 300;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport {
    /// Whether nothing needed repair.
    ok: bool,
    session: SessionReport,
    problems: Vec<ProblemReport>,
    repaired_copy: Option<PathBuf>,
    /// The file with the unreadable bytes; null if there are none.
    unreadable: Option<PathBuf>,
}

#[derive(Serialize)]
struct ProblemReport {
    kind: String,
    /// `repaired`: damage that was skipped; `carried`: unusual, and kept unchanged.
    severity: Severity,
    line: Option<u64>,
    entry: Option<EntryId>,
    text: String,
}

pub(crate) fn run(args: Check, out: &Out) -> anyhow::Result<ExitCode> {
    if args.repair && args.output.is_none() && setup::is_stdin(&args.session) {
        let error =
            Error::new(ErrorKind::InvalidInput, "standard input has no folder for the copy");
        return Err(misuse(error.hint("name the repaired copy with --output")));
    }
    let transcript = setup::read(&args.session)?;
    let session = SessionReport::of(&args.session, &transcript)?;
    let problems: Vec<_> = transcript
        .inspect()?
        .into_iter()
        .map(|p| ProblemReport {
            kind: p.kind.name(),
            severity: p.severity,
            line: p.line,
            text: p.to_string(),
            entry: p.entry,
        })
        .collect();
    let repaired_copy = args.repair.then(|| args.output.unwrap_or_else(|| beside(&args.session)));
    let mut unreadable = None;
    if let Some(path) = &repaired_copy {
        let existing = Existing::replaced_if(args.force);
        write_beside(
            &args.session,
            path,
            existing,
            |writer| Ok(transcript.repaired_copy(writer)?),
        )?;
        unreadable = keep_aside(&args.session, &transcript, path, existing)?;
    }
    let ok = problems.iter().all(|p| p.severity == Severity::Carried);
    let report = CheckReport { ok, session, problems, repaired_copy, unreadable };
    out.report(args.json, &report, print)
}

/// Writes the unreadable parts beside the copy, if there are any.
fn keep_aside(
    session: &Path,
    transcript: &Transcript,
    copy: &Path,
    existing: Existing,
) -> anyhow::Result<Option<PathBuf>> {
    if transcript.unreadable(&mut std::io::sink())? == 0 {
        return Ok(None);
    }
    let mut path = copy.as_os_str().to_owned();
    path.push(".unreadable");
    let path = PathBuf::from(path);
    write_beside(session, &path, existing, |writer| Ok(transcript.unreadable(writer)?))?;
    Ok(Some(path))
}

/// Returns `session.repaired.jsonl` for `session.jsonl`.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.file_stem().unwrap_or_default().to_owned();
    name.push(".repaired.jsonl");
    path.with_file_name(name)
}

fn print(report: &CheckReport, out: &Out) -> anyhow::Result<()> {
    let session = &report.session;
    for problem in &report.problems {
        let style = if problem.severity == Severity::Repaired { YELLOW } else { DIM };
        out.line(format!("{style}{}{style:#}", shortened(&problem.text, TEXT_CHARS)))?;
    }
    let repaired = report.problems.iter().filter(|p| p.severity == Severity::Repaired).count();
    let mut verdict = match repaired {
        0 => format!("{GREEN}ok{GREEN:#}"),
        n => format!("{}, skipped", counted(n, "problem")),
    };
    if repaired < report.problems.len() {
        let unusual = counted(report.problems.len() - repaired, "unusual thing");
        verdict.push_str(&format!(", {unusual} kept as found"));
    }
    out.line(format!(
        "{verdict}: {}, {} read from {} ({})",
        counted(session.entries, "entry"),
        counted(session.messages, "message"),
        escaped(&session.path),
        session.format,
    ))?;
    match &report.repaired_copy {
        Some(path) => {
            out.line(format!("repaired copy: {}", escaped(&path.to_string_lossy())))?;
            if let Some(path) = &report.unreadable {
                out.line(format!("unreadable parts: {}", escaped(&path.to_string_lossy())))?;
            }
        }
        None if !report.ok => {
            out.note("--repair writes a repaired copy; the original is not changed");
        }
        None => {}
    }
    Ok(())
}
