//! `ctx memory search`.

use std::process::ExitCode;

use ctx_memory::Parts;
use ctx_runtime::lookup::{SearchAsked, SearchHit, Searched};
use ctx_session::clock;

use super::{OfAgent, minute};
use crate::args::{Global, SearchMemory};
use crate::named::ID_CHARS;
use crate::out::{BOLD, Cell, DIM, Out, Table};
use crate::setup;
use crate::words::{harmless, shortened};

/// So much of a hit is shown to people.
const SHOWN: usize = 300;

pub(super) fn run(global: &Global, args: &SearchMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = OfAgent::open(global, &args.of.agent, out)?;
    of.index(out)?;
    let session = args.session.as_deref().map(|named| of.session(named)).transpose()?;
    let asked = SearchAsked {
        query: &args.query,
        session: session.as_deref(),
        limit: args.limit,
        explain: args.explain,
        now: clock::now(),
    };
    let report = setup::block_on(of.search(&asked))?;
    report.warnings.iter().for_each(|warning| out.warn(warning));
    match args.of.json {
        true => out.json(&report)?,
        false => print(&report, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Searched, out: &Out) -> anyhow::Result<()> {
    if report.hits.is_empty() {
        let agent = harmless(&report.agent);
        out.note(format!("nothing fits; `ctx memory stats --agent {agent}` says what there is"));
    }
    for (at, hit) in report.hits.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        let entry = hit.entry.as_deref().map(|id| format!(" e:{}", shortened(id, ID_CHARS)));
        out.line(format!(
            "{BOLD}{:.3}{BOLD:#} {} {}{DIM} {}{}{DIM:#}",
            hit.score,
            minute(hit.timestamp),
            harmless(hit.role.name()),
            shortened(&hit.session, ID_CHARS),
            entry.unwrap_or_default(),
        ))?;
        let line = hit.text.split_whitespace().collect::<Vec<_>>().join(" ");
        out.line(format!("  {}", shortened(&line, SHOWN)))?;
    }
    let explained: Vec<Vec<Cell>> = report.hits.iter().enumerate().filter_map(row).collect();
    if !explained.is_empty() {
        out.line("")?;
        let header = ["hit", "score", "BM25", "words", "cosine", "vectors", "speaker", "age"];
        let spared = &["age", "speaker", "BM25", "cosine"];
        out.line(Table::new(&header, explained, header.len()).without(spared).fitted())?;
    }
    Ok(())
}

fn row((at, hit): (usize, &SearchHit)) -> Option<Vec<Cell>> {
    let parts = hit.parts?;
    let mut row = vec![Cell::from((at + 1).to_string())];
    let Parts { bm25, lexical, cosine, vector, speaker, decay } = parts;
    let parts = [hit.score, bm25, lexical, cosine, vector, speaker, decay];
    row.extend(parts.map(|part| Cell::from(format!("{part:.3}"))));
    Some(row)
}
