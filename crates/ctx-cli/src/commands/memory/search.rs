//! `ctx memory search`.

use std::process::ExitCode;

use ctx_core::{Role, Timestamp};
use ctx_memory::{Hit, Parts, Query, Segment, SegmentId};
use serde::Serialize;

use super::{OfAgent, minute, now};
use crate::args::{Global, SearchMemory};
use crate::named::ID_CHARS;
use crate::out::{BOLD, Cell, DIM, Out, table};
use crate::setup;
use crate::words::{harmless, shortened};

/// So much of a hit is shown to people.
const SHOWN: usize = 300;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    agent: String,
    query: String,
    /// The session that was searched; null where all were.
    session: Option<String>,
    hits: Vec<Found>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    segment: SegmentId,
    session: String,
    entry: Option<String>,
    role: Role,
    timestamp: Timestamp,
    tokens: u32,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Parts>,
    text: String,
}

pub(super) fn run(global: &Global, args: &SearchMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = OfAgent::open(global, &args.of.agent, out)?;
    of.index(out)?;
    let session = args.session.as_deref().map(|named| of.session(named)).transpose()?;
    let vector = setup::block_on(async {
        Ok(of.memory.vector_of(&args.query).await.unwrap_or_else(|error| {
            out.warn(format!("words alone decide: {error}"));
            None
        }))
    })?;
    let query =
        Query { text: &args.query, session: session.as_deref(), limit: args.limit, now: now() };
    let hits = of.memory.search(&query, vector.as_deref())?;
    let ids: Vec<SegmentId> = hits.iter().map(|hit| hit.id).collect();
    let segments = of.memory.get(&ids)?;
    let found = hits.into_iter().zip(segments).filter_map(|(hit, segment)| {
        let Hit { id, score, parts } = hit;
        let Segment { session_id, timestamp, role, content, tokens, entry_id, .. } = segment?;
        let parts = args.explain.then_some(parts);
        let (session, entry) = (session_id, entry_id);
        Some(Found {
            segment: id,
            session,
            entry,
            role,
            timestamp,
            tokens,
            score,
            parts,
            text: content,
        })
    });
    let hits = found.collect();
    let report = Report { agent: of.agent.to_string(), query: args.query.clone(), session, hits };
    of.warn(out);
    match args.of.json {
        true => out.json(&report)?,
        false => print(&report, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report, out: &Out) -> anyhow::Result<()> {
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
        out.line(table(&header, explained, header.len()))?;
    }
    Ok(())
}

fn row((at, hit): (usize, &Found)) -> Option<Vec<Cell>> {
    let parts = hit.parts?;
    let mut row = vec![Cell::from((at + 1).to_string())];
    let Parts { bm25, lexical, cosine, vector, speaker, decay } = parts;
    let parts = [hit.score, bm25, lexical, cosine, vector, speaker, decay];
    row.extend(parts.map(|part| Cell::from(format!("{part:.3}"))));
    Some(row)
}
