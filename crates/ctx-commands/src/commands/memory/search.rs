//! `ctx memory search`.

use std::process::ExitCode;

use ctx_runtime::lookup::{SearchHit, SearchQuery, SearchReport};
use ctx_search::ScoreParts;
use ctx_session::clock;
use ctx_terminal::format::{escaped, minute, shortened, wrapped};
use ctx_terminal::out::{BOLD, Cell, DIM, Out, Table, terminal_columns};

use crate::args::{Global, SearchMemory};
use crate::entry_ids::ID_CHARS;
use crate::setup;

/// Maximum length of a displayed hit.
const SHOWN: usize = 300;

pub(super) fn run(global: &Global, args: &SearchMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = super::open(global, &args.of.agent, out)?;
    super::index(&of, out)?;
    let session = args.session.as_deref().map(|named| super::session(&of, named)).transpose()?;
    let asked = SearchQuery {
        query: &args.query.join(" "),
        session: session.as_deref(),
        limit: args.limit,
        explain: args.explain,
        now: clock::now(),
    };
    let report = setup::block_on(of.search(&asked))?;
    report.warnings.iter().for_each(|warning| out.warn(warning));
    out.report(args.of.json, &report, print)
}

fn print(report: &SearchReport, out: &Out) -> anyhow::Result<()> {
    if report.hits.is_empty() {
        let agent = escaped(&report.agent);
        out.note(format!("no matches; `ctx memory stats --agent {agent}` shows what is archived"));
    }
    for (at, hit) in report.hits.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        let entry = hit.entry.as_deref().map(|id| format!("e:{}  ", shortened(id, ID_CHARS)));
        let (entry, session) = (entry.unwrap_or_default(), shortened(&hit.session, ID_CHARS));
        let (at, role) = (minute(hit.timestamp), escaped(hit.role.name()));
        out.line(format!("{BOLD}{:.3}{BOLD:#}  {at}  {role}", hit.score))?;
        out.line(format!("  {DIM}{entry}{session}{DIM:#}"))?;
        let line = hit.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = wrapped(&shortened(&line, SHOWN), [2, 2], terminal_columns());
        lines.iter().try_for_each(|line| out.line(format!("  {line}")))?;
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
    let ScoreParts { bm25, lexical, cosine, vector, speaker, decay } = parts;
    let parts = [hit.score, bm25, lexical, cosine, vector, speaker, decay];
    row.extend(parts.map(|part| Cell::from(format!("{part:.3}"))));
    Some(row)
}
