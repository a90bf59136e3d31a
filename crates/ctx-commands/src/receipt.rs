//! Prints the receipt of a compaction for the user.

use ctx_facts::FactKind;
use ctx_layers::compaction::{KindCount, Receipt, Rung, SummaryCall};
use ctx_terminal::format::{counted, escaped, percent, shortened, thousands, usd};
use ctx_terminal::out::{BOLD, Cell, DIM, GREEN, Out, RED, Table, YELLOW};

use crate::entry_ids::ShortIds;

/// Maximum number of listed items.
const NAMED: usize = 8;

/// Maximum length of an item.
const NAME_CHARS: usize = 60;

/// Returns a row's cells: messages, tokens of the summary, facts kept, ungrounded, writer.
pub(crate) fn cells(receipt: &Receipt) -> Vec<Cell> {
    let audit = &receipt.audit;
    let ungrounded = match audit.ungrounded.len() {
        0 => Cell::from("0"),
        n => Cell::styled(format!("{n} removed"), YELLOW),
    };
    vec![
        thousands(receipt.messages.into()).into(),
        thousands(receipt.summary_tokens.get()).into(),
        coverage(receipt),
        ungrounded,
        writer(receipt).into(),
    ]
}

/// Returns the share of the facts that were kept.
pub(crate) fn coverage(receipt: &Receipt) -> Cell {
    let coverage = receipt.audit.coverage;
    Cell::styled(percent(coverage), coverage_style(coverage))
}

/// Returns who wrote the summary.
pub(crate) fn writer(receipt: &Receipt) -> String {
    let name = match receipt.rung {
        Rung::Model => receipt.model.as_deref().unwrap_or("a model").to_owned(),
        Rung::WithoutOversized => {
            let model = receipt.model.as_deref().unwrap_or("a model");
            format!("{model}, without large messages")
        }
        Rung::Extractive => "extractive".to_owned(),
        Rung::HardPrune => "no summary: hard prune".to_owned(),
    };
    if receipt.emergency { format!("{name} (emergency)") } else { name }
}

/// Returns a note if the requested model did not write the summary.
pub(crate) fn fell_back(receipt: &Receipt, asked: Option<&str>) -> Option<String> {
    let asked = asked.filter(|asked| receipt.model.as_deref() != Some(asked))?;
    let mut why = receipt.notes.join("; ");
    if why.is_empty() {
        why = receipt.calls.iter().rev().find_map(|call| call.error.clone())?;
    }
    Some(match receipt.rung {
        Rung::Model | Rung::WithoutOversized => {
            let model = receipt.model.as_deref().unwrap_or("another model");
            format!("{model} wrote the summary, not {asked}: {why}")
        }
        Rung::Extractive => {
            format!("the extractive summariser wrote the summary, not {asked}: {why}")
        }
        Rung::HardPrune => format!("history was cut without a summary by {asked}: {why}"),
    })
}

/// Prints the whole receipt, except notes that `printed` already contains.
pub(crate) fn print(
    receipt: &Receipt,
    ids: &ShortIds<'_>,
    printed: &str,
    out: &Out,
) -> anyhow::Result<()> {
    let (before, after) = (receipt.tokens_before.get(), receipt.tokens_after.get());
    let share = if before == 0 { 1.0 } else { after as f64 / before as f64 };
    out.line(format!(
        "{BOLD}{}{BOLD:#} -> {BOLD}{}{BOLD:#} tokens ({}), the summary {}",
        thousands(before),
        thousands(after),
        percent(share),
        thousands(receipt.summary_tokens.get()),
    ))?;
    out.line(format!(
        "{} summarised, {} kept from entry {}{}",
        counted(receipt.messages as usize, "message"),
        receipt.kept_messages,
        ids.show(&receipt.first_kept_entry_id),
        if receipt.split_turn { " (inside a turn)" } else { "" },
    ))?;
    out.line(format!("written by {}", escaped(&writer(receipt))))?;
    if !receipt.calls.is_empty() {
        out.line(calls(receipt, printed))?;
    }
    for note in receipt.notes.iter().filter(|note| !printed.contains(note.as_str())) {
        out.line(format!("{DIM}{}{DIM:#}", shortened(note, 160)))?;
    }
    out.line("")?;
    out.line(audit(receipt))?;
    named("ungrounded (not in the source), and removed", &receipt.audit.ungrounded, out)?;
    let moved = "said by a tool result, not by the user: moved to Critical Context";
    named(moved, &receipt.audit.reattributed, out)?;
    let shortened: Vec<String> = receipt.shortened.iter().map(|id| ids.show(id)).collect();
    named("kept, but truncated", &shortened, out)
}

fn calls(receipt: &Receipt, printed: &str) -> String {
    let failed = receipt.calls.iter().filter(|call| !call.ok).count();
    let millis: u64 = receipt.calls.iter().map(|call| call.millis).sum();
    let cost = receipt.cost_usd.map_or_else(|| "cost unknown".to_owned(), usd);
    let mut text = format!(
        "{}, {} failed, {:.1} s, {cost}",
        counted(receipt.calls.len(), "call"),
        thousands(failed as u64),
        millis as f64 / 1_000.0,
    );
    // The notes contain the important errors, which are not printed twice.
    let is_printed = |error: &&String| {
        printed.contains(error.as_str()) || receipt.notes.iter().any(|note| note.contains(*error))
    };
    let last_error = receipt.calls.iter().rev().find_map(|SummaryCall { model, error, .. }| {
        let error = error.as_ref()?;
        let is_new = !is_printed(&error);
        Some(if is_new { format!("; last: {model}: {error}") } else { String::new() })
    });
    text.push_str(&shortened(&last_error.unwrap_or_default(), 200));
    text
}

fn audit(receipt: &Receipt) -> String {
    let audit = &receipt.audit;
    let row = |name: Cell, counts: [u32; 5], lost: u32| {
        let mut row = vec![name];
        row.extend(counts.map(|count| Cell::from(thousands(count.into()))));
        row.push(lost_cell(lost));
        row
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for kind in FactKind::ALL {
        let Some(&KindCount { facts, kept, repaired, paraphrased, superseded, .. }) =
            audit.kinds.get(&kind)
        else {
            continue;
        };
        let lost = facts.saturating_sub(kept + repaired);
        rows.push(row(
            kind_name(kind).into(),
            [facts, kept, paraphrased, repaired, superseded],
            lost,
        ));
    }
    let total = |name: &str, coverage: f64| {
        Cell::styled(format!("{name} ({})", percent(coverage)), coverage_style(coverage))
    };
    let paraphrased = audit.kinds.values().map(|count| count.paraphrased).sum();
    rows.push(row(
        total("since the beginning", audit.coverage),
        [audit.facts, audit.kept, paraphrased, audit.repaired, audit.superseded],
        audit.missing,
    ));
    let round = audit.round;
    if round.facts != 0 && round.facts != audit.facts {
        let name = total("this round", round.coverage);
        rows.push(row(
            name,
            [round.facts, round.kept, 0, 0, 0],
            round.facts.saturating_sub(round.kept),
        ));
    }
    let header = ["must be kept", "facts", "kept", "reworded", "repaired", "replaced", "lost"];
    Table::new(&header, rows, 7).without(&["reworded", "repaired", "replaced"]).fitted()
}

fn lost_cell(lost: u32) -> Cell {
    match lost {
        0 => "0".into(),
        n => Cell::styled(thousands(n.into()), YELLOW),
    }
}

fn coverage_style(coverage: f64) -> anstyle::Style {
    match coverage {
        c if c >= 0.95 => GREEN,
        c if c >= 0.8 => YELLOW,
        _ => RED,
    }
}

pub(crate) fn kind_name(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Pinned => "pinned instructions",
        FactKind::Ask => "the open request",
        FactKind::Constraint => "constraints",
        FactKind::Statement => "what the user stated",
        FactKind::Request => "earlier requests",
        FactKind::Decision => "decisions",
        FactKind::Question => "open questions",
        FactKind::Failure => "causes of failures",
        FactKind::Personal => "personal details",
        FactKind::ErrorCode => "errors",
        FactKind::Path => "paths",
        FactKind::Url => "URLs",
        FactKind::Id => "ids and hashes",
        FactKind::Number => "numbers",
        FactKind::CodeName => "names in code",
    }
}

fn named(what: &str, items: &[String], out: &Out) -> anyhow::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = items.iter().take(NAMED).map(|i| shortened(i, NAME_CHARS)).collect();
    let more = match items.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {} more", thousands(n as u64)),
    };
    out.line(format!("{what}: {}{more}", shown.join(", ")))?;
    Ok(())
}
