//! `ctx memory stats`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::PoisonError;

use ctx_memory::MemoryStats;
use ctx_runtime::lookup::Lookup;
use ctx_terminal::format::{bytes, escaped, thousands};
use ctx_terminal::out::{Cell, Out, table};
use serde::Serialize;

use crate::args::{Global, InMemory};

/// Maximum number of sessions listed.
const SHOWN: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatsReport {
    agent: String,
    folder: PathBuf,
    enabled: bool,
    #[serde(flatten)]
    stats: MemoryStats,
    facts: usize,
    /// Number of facts that are valid now.
    current_facts: usize,
    /// Segments by session.
    sessions: BTreeMap<String, usize>,
}

pub(super) fn run(global: &Global, args: &InMemory, out: &Out) -> anyhow::Result<ExitCode> {
    let of = super::open(global, &args.agent, out)?;
    let report = report(&of)?;
    super::warn(&of, out);
    out.report(args.json, &report, print)
}

pub(super) fn report(of: &Lookup) -> anyhow::Result<StatsReport> {
    let mut sessions: BTreeMap<String, usize> = BTreeMap::new();
    of.memory.select(|segment| {
        *sessions.entry(segment.session_id.clone()).or_default() += 1;
        false
    })?;
    let (mut facts, mut current_facts) = (0, 0);
    if let Some(store) = &of.facts {
        let store = store.lock().unwrap_or_else(PoisonError::into_inner);
        facts = store.facts().len();
        current_facts = store.facts().filter(|fact| fact.is_current()).count();
    }
    Ok(StatsReport {
        agent: of.agent.to_string(),
        folder: of.folder.clone(),
        enabled: of.config.enabled,
        stats: of.memory.stats()?,
        facts,
        current_facts,
        sessions,
    })
}

pub(super) fn print(report: &StatsReport, out: &Out) -> anyhow::Result<()> {
    let StatsReport { stats, .. } = report;
    let number = |n: usize| Cell::from(thousands(n as u64));
    let size = |n: u64| Cell::from(bytes(n));
    let text = |text: &str| Cell::from(text);
    let rows = vec![
        vec![text("segments"), number(stats.segments), size(stats.archive_bytes)],
        vec![text("pieces in the index"), number(stats.stored_pieces), size(stats.index_bytes)],
        vec![text("pieces in memory"), number(stats.new_pieces), text("")],
        vec![text("vectors"), number(stats.vectors), size(stats.vector_bytes)],
        vec![text("current facts"), number(report.current_facts), text("")],
        vec![text("outdated facts"), number(report.facts - report.current_facts), text("")],
    ];
    let folder = escaped(&report.folder.to_string_lossy());
    out.line(format!("agent {}, {folder}", escaped(&report.agent)))?;
    out.line(table(&[], rows, 3))?;
    if !report.sessions.is_empty() {
        out.line("")?;
        let rows = report.sessions.iter().take(SHOWN);
        let rows = rows.map(|(session, n)| vec![Cell::from(session.as_str()), number(*n)]);
        out.line(table(&["session", "segments"], rows.collect(), 2))?;
    }
    if report.sessions.len() > SHOWN {
        out.note(format!("{} more sessions; --json lists them", report.sessions.len() - SHOWN));
    }
    if !report.enabled {
        out.note("agents.defaults.memoryContext.enabled is false: requests do not use this memory");
    }
    Ok(())
}
