//! The terminal output of `ctx eval`.

use ctx_eval::eval::{EvalReport, EvalRow, RowKind, Share, SingleCompactionRow};
use ctx_terminal::format::{escaped, percent, shortened, thousands, usd, wrapped};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, Table, terminal_columns};
use ctx_terminal::table::Column;

use super::equal_size;
use crate::commands::status::print_session;

/// The coverage that a compaction should reach.
const GOOD_COVERAGE: f64 = 0.95;

/// Maximum width of text.
const TEXT_CHARS: usize = 100;

/// Maximum length of a failure's reason.
const REASON_CHARS: usize = 400;

/// Columns dropped on a narrow terminal, in this order. The page and `--json` have most of them.
/// The first is the kind of a candidate, which its name shows.
const SPARED: [&str; 13] = [
    "kind",
    "block tokens",
    "per point",
    "re-reads answered",
    "loose",
    "est. error",
    "ratio",
    "calls",
    "requests",
    "cuts",
    "cache hits",
    "wedges",
    "ungrounded",
];

pub(super) fn print(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    let most = terminal_columns();
    for session in &report.sessions {
        print_session(&session.session, out)?;
        let model = session.model.as_deref().map_or_else(
            || "no model known, so no prices; see --model".to_owned(),
            |model| format!("model {}", escaped(model)),
        );
        out.line(format!("{DIM}window {}, {model}{DIM:#}", thousands(session.window.get())))?;
    }
    if let Some(sums) = &report.equal_size {
        heading(out, &equal_size::title(sums))?;
        out.line(equal_size::table(report, sums).text(most).0)?;
    }
    heading(out, "Replayed request by request, each candidate by its own rules")?;
    let (text, spared) = replayed(report).text(most);
    out.line(text)?;
    if !spared.is_empty() {
        let spared = spared.join(", ");
        dimmed(out, "", &format!("omitted columns: {spared}; see --html or --json"))?;
    }
    if !report.once.is_empty() {
        let title = format!(
            "Compacted once, to {:.0} % at most: what is left differs in size, so compare neighbours only",
            report.compact_to * 100.0
        );
        heading(out, &title)?;
        out.line(once(report).text(most).0)?;
    }
    failures(report, out)?;
    out.line("")?;
    for note in &report.notes {
        dimmed(out, "- ", note)?;
    }
    Ok(())
}

fn replayed(report: &EvalReport) -> Table {
    let columns: &[Column<EvalRow>] = &[
        ("arm", |row| arm(row).into()),
        ("requests", |row| thousands(row.requests as u64).into()),
        ("prompt tokens", |row| thousands(row.sent_tokens).into()),
        ("cache hits", |row| share(row.prefix_reuse)),
        ("cost", |row| row.cost_usd.map_or_else(|| "-".to_owned(), usd).into()),
        ("calls", |row| thousands(row.calls).into()),
        ("cuts", |row| thousands(row.cuts as u64).into()),
        ("ratio", |row| {
            row.compression_ratio.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}")).into()
        }),
        ("coverage", |row| coverage(row.coverage)),
        ("ungrounded", |row| faults(row.ungrounded)),
        ("needed next", |row| share(row.needed_next.strict.share())),
        ("loose", |row| share(row.needed_next.loose.share())),
        ("per point", |row| per_point(row).into()),
        ("block tokens", |row| thousands(row.block_tokens).into()),
        ("re-reads answered", |row| answered(row.needed_next.repeated)),
        ("wedges", |row| faults(row.wedges as u64)),
        ("est. error", |row| share(row.estimate_error)),
        ("kind", |row| kind(row.kind).into()),
    ];
    Table::of(&report.rows, &SPARED, columns)
}

/// Returns the cost of one percent of the handles needed next.
fn per_point(row: &EvalRow) -> String {
    match (row.cost_usd, row.needed_next.strict.share()) {
        (Some(cost), Some(share)) if share > 0.0 => usd(cost / (100.0 * share)),
        _ => "-".to_owned(),
    }
}

/// `1 of 61`.
fn answered(repeated: Share) -> Cell {
    format!("{} of {}", thousands(repeated.kept), thousands(repeated.of)).into()
}

/// Returns the name of a row.
fn arm(row: &EvalRow) -> String {
    match row.kind {
        RowKind::None => "full history".to_owned(),
        _ => row.name.clone(),
    }
}

/// Formats the sessions compacted once. Rows are sorted by size, to compare adjacent rows.
fn once(report: &EvalReport) -> Table {
    let mut rows: Vec<&SingleCompactionRow> = report.once.iter().collect();
    rows.sort_by(|one, two| left(one).total_cmp(&left(two)));
    let columns: &[Column<&SingleCompactionRow>] = &[
        ("candidate", |row| row.name.clone().into()),
        ("before", |row| thousands(row.tokens_before).into()),
        ("left", |row| thousands(row.tokens_after).into()),
        ("of before", |row| percent(left(row)).into()),
        ("facts", |row| thousands(row.facts).into()),
        ("kept", |row| kept_once(row)),
        ("ungrounded", |row| faults(row.ungrounded)),
        ("kind", |row| kind(row.kind).into()),
    ];
    Table::of(&rows, &["kind", "before", "facts", "ungrounded"], columns)
}

/// Returns the share of its tokens that a session still has.
fn left(row: &SingleCompactionRow) -> f64 {
    row.tokens_after as f64 / row.tokens_before.max(1) as f64
}

fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::None => "nothing dropped",
        RowKind::Profile => "profile",
        RowKind::Engine => "engine",
        RowKind::Preset => "preset",
        RowKind::Recorded => "recorded",
    }
}

fn share(share: Option<f64>) -> Cell {
    share.map_or_else(|| "-".to_owned(), percent).into()
}

pub(super) fn coverage(found: Option<f64>) -> Cell {
    match found {
        Some(share) if share >= GOOD_COVERAGE => Cell::styled(percent(share), GREEN),
        other => share(other),
    }
}

pub(super) fn faults(count: u64) -> Cell {
    match count {
        0 => Cell::styled("0", GREEN),
        n => Cell::styled(thousands(n), RED),
    }
}

/// Returns the coverage of the session compacted once; in brackets if the share was not reached.
fn kept_once(row: &SingleCompactionRow) -> Cell {
    if row.failed.is_some() {
        Cell::styled("failed", RED)
    } else if row.reached < row.sessions {
        row.coverage.map_or_else(|| "-".to_owned(), |c| format!("({})", percent(c))).into()
    } else {
        coverage(row.coverage)
    }
}

/// Prints why candidates failed. A reason is too long for a cell.
fn failures(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    let replayed = report.rows.iter().map(|row| ("replay", &row.name, &row.failed));
    let once = report.once.iter().map(|row| ("compacted once", &row.name, &row.failed));
    for (what, name, failed) in replayed.chain(once) {
        if let Some(why) = failed {
            let (name, why) = (escaped(name), shortened(why, REASON_CHARS));
            out.line(format!("{RED}failed:{RED:#} {name}, {what}: {why}"))?;
        }
    }
    Ok(())
}

pub(super) fn heading(out: &Out, text: &str) -> anyhow::Result<()> {
    out.line("")?;
    for line in wrapped(text, [0, 0], readable()) {
        out.line(format!("{BOLD}{line}{BOLD:#}"))?;
    }
    Ok(())
}

pub(super) fn dimmed(out: &Out, lead: &str, text: &str) -> anyhow::Result<()> {
    let text = wrapped(text, [lead.len(); 2], readable());
    let indent = format!("\n{}", " ".repeat(lead.len()));
    out.line(format!("{DIM}{lead}{}{DIM:#}", text.join(&indent)))?;
    Ok(())
}

/// Returns the width of text.
fn readable() -> Option<usize> {
    Some(terminal_columns().unwrap_or(TEXT_CHARS).min(TEXT_CHARS))
}
