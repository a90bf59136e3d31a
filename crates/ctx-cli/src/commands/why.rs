//! `ctx why`.

use std::process::ExitCode;

use ctx_core::{Error, ErrorKind, Timestamp};
use ctx_memory::facts::Fact;
use ctx_runtime::lookup::FactOrigin;
use ctx_runtime::lookup::provenance::{
    FactState, LineOrigin, MOST, SourceMessage, StatedFact, Support, line_origins, words_of,
};
use serde::Serialize;

use super::memory;
use crate::args::{Global, Why};
use crate::failure::misuse;
use crate::format::{escaped, escaped_lines, escaped_piece, shortened, thousands};
use crate::out::{BOLD, Cell, DIM, GREEN, Out, RED, YELLOW, table};
use crate::receipt::kind_name;
use crate::session_args::newest;
use crate::setup;

/// Maximum length of a printed line of a summary and of a fact.
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
    words_of(&args.text).map_err(misuse)?;
    let of = memory::open(global, &args.of.agent, out)?;
    let is_named = args.session.is_some();
    let session = args.session.map_or_else(|| newest(out), Ok);
    let transcript = session.as_deref().map(|path| setup::open(path, out)).ok().transpose()?;
    let name = transcript.as_ref().zip(session.as_deref().ok());
    let name = name.map(|(transcript, path)| memory::name_of(transcript, path));
    let facts = of.fact_origins(&args.text, name.as_deref().filter(|_| is_named))?;
    let lines = transcript.as_ref().map(|transcript| line_origins(transcript, &args.text));
    let lines = lines.transpose()?.unwrap_or_default();
    if lines.is_empty() && facts.is_empty() {
        let text = shortened(&args.text, FACT_CHARS);
        let path = session?.display().to_string();
        return Err(Error::new(ErrorKind::NotFound, format!("nothing states '{text}'"))
            .with("session", &path)
            .hint(format!(
                "no summary, fact or message has these words; `ctx diff {path}` lists facts"
            ))
            .into());
    }
    let is_supported = |line: &LineOrigin| !(line.sources.is_empty() && line.facts.is_empty());
    let supported = !facts.is_empty() || lines.iter().any(is_supported);
    let session = session.ok().map(|path| path.display().to_string());
    let report = Report { text: args.text, session, lines, facts };
    out.report(args.of.json, &report, print)?;
    Ok(if supported { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(report: &Report, out: &Out) -> anyhow::Result<()> {
    for (at, line) in report.lines.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        print_line(line, out)?;
    }
    for (at, origin) in report.facts.iter().enumerate() {
        if at > 0 || !report.lines.is_empty() {
            out.line("")?;
        }
        print_fact(origin, out)?;
    }
    if report.lines.chunk_by(|a, b| a.compaction == b.compaction).any(|own| own.len() == MOST) {
        out.note(format!(
            "at most {MOST} lines of a summary are shown; give more words of the line"
        ));
    }
    Ok(())
}

fn print_line(origin: &LineOrigin, out: &Out) -> anyhow::Result<()> {
    if let Some(id) = &origin.compaction {
        let state = match (origin.undone, origin.in_force) {
            (true, _) => "undone",
            (_, true) => "in force",
            _ => "replaced by a later one",
        };
        let (id, number) = (escaped(id), origin.number);
        out.line(format!(
            "{BOLD}line {number} of the summary of compaction {id}{BOLD:#} ({state})"
        ))?;
        out.line(escaped_lines(&shortened_lines(&origin.line)))?;
    } else {
        out.line(format!("{BOLD}no summary contains this text{BOLD:#}"))?;
    }
    if !origin.facts.is_empty() {
        out.line("\nstates")?;
        out.line(table(&[], origin.facts.iter().map(fact_row).collect(), 2))?;
    }
    if origin.sources.is_empty() {
        out.line(format!("\n{RED}nothing in the original messages supports this line{RED:#}"))?;
    } else {
        out.line("\nfrom")?;
    }
    origin.sources.iter().try_for_each(|source| print_source(source, out))?;
    if !origin.unsupported.is_empty() {
        let names = shortened(&origin.unsupported.join(", "), LINE_CHARS);
        out.line(format!("{YELLOW}no message contains{YELLOW:#}: {names}"))?;
    }
    Ok(())
}

fn shortened_lines(line: &str) -> String {
    ctx_core::text::clip(line, LINE_CHARS)
}

fn fact_row(stated: &StatedFact) -> Vec<Cell> {
    let (state, style) = match stated.state {
        FactState::Kept => ("kept", GREEN),
        FactState::Reworded => ("reworded", YELLOW),
        FactState::Repaired => ("repaired", GREEN),
        FactState::InContext => ("in the context", GREEN),
        FactState::Lost => ("lost", RED),
    };
    let later = stated.superseded_by.as_ref().map(|by| {
        let (text, entry) = (shortened(&by.text, FACT_CHARS), escaped(&by.entry));
        format!(" (superseded by [e:{entry}]: {text})")
    });
    let text = shortened(&stated.fact.text, FACT_CHARS);
    let kind = format!("  {}", kind_name(stated.fact.kind));
    vec![kind.into(), Cell::styled(state, style), (text + &later.unwrap_or_default()).into()]
}

fn print_source(source: &SourceMessage, out: &Out) -> anyhow::Result<()> {
    let (role, id) = (escaped(&source.role), escaped(&source.entry));
    let time = source.timestamp.map(time).map(|time| format!("  {time}")).unwrap_or_default();
    let place = source.place.as_ref().map_or_else(
        || "not in the file as written".to_owned(),
        |at| {
            let (path, offset) = (escaped(&at.path), thousands(at.offset));
            format!("{path}:{}, {} bytes from byte {offset}", at.line, thousands(at.bytes.into()))
        },
    );
    out.line(format!("  {BOLD}{role} {id}{BOLD:#}{DIM}{time}  {place}{DIM:#}"))?;
    match source.support {
        Support::Verbatim => {}
        Support::Reworded => out.line(format!("    {DIM}in other words:{DIM:#}"))?,
        Support::Cited => out.line(format!(
            "    {YELLOW}cited, but its words are not in the message, which begins:{YELLOW:#}"
        ))?,
    }
    let part = |text: &str| escaped_piece(text).replace('\n', "\n    ");
    let (before, quote, after) = (part(&source.before), part(&source.quote), part(&source.after));
    out.line(format!("    {DIM}{before}{DIM:#}«{quote}»{DIM}{after}{DIM:#}"))?;
    Ok(())
}

fn print_fact(origin: &FactOrigin, out: &Out) -> anyhow::Result<()> {
    let FactOrigin { fact, supersedes, superseded_by, sources, missing } = origin;
    out.line(format!("{BOLD}fact {} of memory{BOLD:#}  {}", fact.id, fact.kind.name()))?;
    out.line(escaped(&fact.content))?;
    let until = fact.valid_to.map(|end| format!(" until {}", time(end))).unwrap_or_default();
    out.line(format!("valid from {}{until}", time(fact.valid_from)))?;
    let row = |what: &str, fact: &Fact| format!("{what} {}  {}", fact.id, escaped(&fact.content));
    for fact in supersedes {
        out.line(row("supersedes", fact))?;
    }
    if let Some(fact) = superseded_by {
        out.line(row("superseded by", fact))?;
    }
    out.line("\nfrom")?;
    sources.iter().try_for_each(|source| print_source(source, out))?;
    for id in missing {
        let session = escaped(&fact.session_id);
        out.line(format!(
            "  {YELLOW}entry {}{YELLOW:#} of {session}, whose transcript is not found",
            escaped(id)
        ))?;
    }
    Ok(())
}

fn time(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).ok();
    at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}"))
}
