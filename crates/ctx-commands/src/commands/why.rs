//! `ctx why`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind};
use ctx_runtime::lookup::FactOrigin;
use ctx_runtime::lookup::provenance::{
    FactState, LineOrigin, MOST, SourceMessage, StatedFact, Support, line_origins,
};
use ctx_terminal::format::{escaped, escaped_lines, escaped_piece, minute, shortened, thousands};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, RED, YELLOW, table};
use serde::Serialize;

use super::memory;
use crate::args::{Global, Why};
use crate::receipt::kind_name;
use crate::session_args::newest;
use crate::setup;

/// Maximum length of a printed line of a summary, and of a printed fact.
const LINE_CHARS: usize = 600;
const FACT_CHARS: usize = 200;

#[derive(Serialize)]
struct Report {
    text: String,
    session: Option<String>,
    lines: Vec<LineOrigin>,
    facts: Vec<FactOrigin>,
}

pub(crate) fn run(global: &Global, args: Why, out: &Out) -> anyhow::Result<ExitCode> {
    let of = memory::open(global, &args.of.agent, out)?;
    let is_named = args.session.is_some();
    let session = args.session.map_or_else(|| newest(out), Ok);
    let path = session.as_deref().ok();
    let transcript = path.map(|path| setup::open(path, out)).transpose()?;
    let name = transcript.as_ref().zip(path).filter(|_| is_named);
    let name = name.map(|(transcript, path)| memory::name_of(transcript, path));
    let given = name.as_deref().zip(transcript.as_ref());
    let facts = of.fact_origins(&args.text, given)?;
    let lines = transcript.as_ref().map(|transcript| line_origins(transcript, &args.text));
    let lines = lines.transpose()?.unwrap_or_default();
    if lines.is_empty() && facts.is_empty() {
        let path = session?.display().to_string();
        let text = shortened(&args.text, FACT_CHARS);
        let error = Error::new(ErrorKind::NotFound, format!("nothing supports '{text}'"));
        let hint = "no summary, fact or message has these words; `ctx diff` lists the facts of";
        return Err(error.with("session", &path).hint(format!("{hint} {path}")).into());
    }
    let is_supported = |line: &LineOrigin| !line.sources.is_empty();
    let is_supported = !facts.is_empty() || lines.iter().any(is_supported);
    let session = session.ok().map(|path| path.display().to_string());
    let report = Report { text: args.text, session, lines, facts };
    out.report(args.of.json, &report, print)?;
    Ok(if is_supported { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report, out: &Out) -> anyhow::Result<()> {
    report.lines.iter().try_for_each(|line| print_line(line, out))?;
    report.facts.iter().try_for_each(|fact| print_fact(fact, out))?;
    if report.lines.chunk_by(|a, b| a.compaction == b.compaction).any(|own| own.len() == MOST) {
        out.note(format!("at most {MOST} lines of a summary are shown; give more of the line"));
    }
    Ok(())
}

fn print_line(origin: &LineOrigin, out: &Out) -> anyhow::Result<()> {
    let title = origin.compaction.as_ref().map_or("no summary contains".to_owned(), |id| {
        let undone = if origin.undone { " (undone)" } else { "" };
        format!("line {} of the summary of compaction {}{undone}", origin.number, escaped(id))
    });
    out.line(format!("{BOLD}{title}{BOLD:#}"))?;
    out.line(escaped_lines(&ctx_core::text::clip(&origin.line, LINE_CHARS)))?;
    if !origin.facts.is_empty() {
        let rows = origin.facts.iter().map(fact_row).collect();
        out.line(format!("states\n{}", table(&[], rows, 2)))?;
    }
    match origin.sources.is_empty() {
        true => out.line(format!("{RED}nothing in the original messages supports it{RED:#}"))?,
        false => print_sources(&origin.sources, out)?,
    }
    if !origin.sources.is_empty() && !origin.unsupported.is_empty() {
        let parts = shortened(&origin.unsupported.join(", "), LINE_CHARS);
        out.line(format!("{YELLOW}no message contains{YELLOW:#} {parts}"))?;
    }
    out.line("")?;
    Ok(())
}

fn fact_row(stated: &StatedFact) -> Vec<Cell> {
    let state = match stated.state {
        FactState::Kept => "kept".into(),
        FactState::Reworded => Cell::styled("reworded", YELLOW),
        FactState::Repaired => "repaired".into(),
        FactState::Lost => Cell::styled("in no summary", YELLOW),
    };
    let later = stated.superseded_by.as_ref().zip(stated.superseded_with.as_ref());
    let later = later.map(|(entry, text)| {
        format!(" (superseded by {}: {})", escaped(entry), shortened(text, FACT_CHARS))
    });
    let text = shortened(&stated.fact.text, FACT_CHARS) + &later.unwrap_or_default();
    vec![format!("  {}", kind_name(stated.fact.kind)).into(), state, text.into()]
}

fn print_sources(sources: &[SourceMessage], out: &Out) -> anyhow::Result<()> {
    out.line("from")?;
    for source in sources {
        let (role, id) = (escaped(&source.role), escaped(&source.entry));
        let time = source.timestamp.map(minute).unwrap_or_default();
        let place = source.place.as_ref().map(|at| {
            let (path, offset) = (escaped(&at.path), thousands(at.offset));
            format!("{path}:{}, {} bytes from byte {offset}", at.line, thousands(at.bytes.into()))
        });
        let place = place.as_deref().unwrap_or("not in the file as written");
        out.line(format!("  {BOLD}{role} {id}{BOLD:#} {DIM}{time}  {place}{DIM:#}"))?;
        let note = match source.support {
            Support::Verbatim => "",
            Support::Reworded => "in other words: ",
            Support::Cited => "cited, but the words are not in the message, which begins: ",
        };
        let part = |text: &str| escaped_piece(text).replace('\n', "\n    ");
        let (before, quote) = (part(&source.before), part(&source.quote));
        let after = part(&source.after);
        let note = format!("{YELLOW}{note}{YELLOW:#}");
        out.line(format!("    {note}{DIM}{before}{DIM:#}«{quote}»{DIM}{after}{DIM:#}"))?;
    }
    Ok(())
}

fn print_fact(origin: &FactOrigin, out: &Out) -> anyhow::Result<()> {
    let fact = &origin.fact;
    let until = fact.valid_to.map(|end| format!(" until {}", minute(end))).unwrap_or_default();
    let (kind, from) = (fact.kind.name(), minute(fact.valid_from));
    out.line(format!(
        "{BOLD}fact {} of memory{BOLD:#}, {kind}, valid from {from}{until}",
        fact.id
    ))?;
    out.line(escaped(&fact.content))?;
    let related = origin.supersedes.iter().map(|fact| ("supersedes", fact));
    for (how, fact) in
        related.chain(origin.superseded_by.iter().map(|fact| ("superseded by", fact)))
    {
        out.line(format!("{how} {}: {}", fact.id, escaped(&fact.content)))?;
    }
    if origin.sources.is_empty() {
        let (ids, session) = (fact.source_entry_ids.join(", "), escaped(&fact.session_id));
        out.line(format!("from {} of {session}, whose transcript is not found", escaped(&ids)))?;
    } else {
        print_sources(&origin.sources, out)?;
    }
    Ok(())
}
