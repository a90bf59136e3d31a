//! Compares the agent's own summaries with ctx's summaries of the same messages at equal size.

use ctx_core::EntryId;
use ctx_eval::eval::{EqualSize, EvalReport, SummaryFigures, SummarySums};
use ctx_terminal::format::{counted, percent, thousands};
use ctx_terminal::out::{BOLD, Cell, Table};

use super::print::{coverage, faults};

/// Returns the title, with the result at equal size.
pub(super) fn title(sums: &EqualSize) -> String {
    let kept = |part: &SummarySums| percent(part.kept as f64 / sums.facts.max(1) as f64);
    format!(
        "At equal size: of {} the agent's own model kept {} in {}, ctx keeps {} in no more tokens, by \
         ctx's own audit",
        counted(usize::try_from(sums.facts).unwrap_or(usize::MAX), "must-keep fact"),
        kept(&sums.recorded),
        counted(sums.summaries, "recorded summary"),
        kept(&sums.ctx),
    )
}

/// Returns a table with two rows: the agent's own summaries, and ctx's summaries.
pub(super) fn table(report: &EvalReport, sums: &EqualSize) -> Table {
    let nothing = || Cell::from("");
    let mut rows = Vec::new();
    for found in report.sessions.iter().flat_map(|session| &session.recorded) {
        let facts = thousands(found.facts).into();
        let lead = [short(&found.entry_id).into(), thousands(found.messages as u64).into(), facts];
        rows.push(row(lead, "agent", of_summary(&found.recorded)));
        rows.push(row([nothing(), nothing(), nothing()], "ctx", of_summary(&found.ctx)));
    }
    if sums.summaries > 1 {
        let lead = [Cell::styled("all", BOLD), nothing(), thousands(sums.facts).into()];
        rows.push(row(lead, "agent", of_sums(&sums.recorded, sums.facts)));
        let lead = [Cell::styled("", BOLD), nothing(), nothing()];
        rows.push(row(lead, "ctx", of_sums(&sums.ctx, sums.facts)));
    }
    let header = ["compaction", "messages", "facts", "summary", "tokens", "kept", "ungrounded"];
    Table::new(&header, rows, header.len()).without(&["messages"])
}

/// Tokens, the share of the facts that are kept, and ungrounded claims.
type Figures = (u64, Option<f64>, u64);

fn of_summary(figures: &SummaryFigures) -> Figures {
    (figures.tokens.get(), figures.in_summary, figures.ungrounded.len() as u64)
}

fn of_sums(sums: &SummarySums, facts: u64) -> Figures {
    let kept = (facts > 0).then(|| sums.kept as f64 / facts as f64);
    (sums.tokens, kept, sums.ungrounded)
}

fn row(lead: [Cell; 3], by: &str, (tokens, kept, ungrounded): Figures) -> Vec<Cell> {
    let figures = [by.into(), thousands(tokens).into(), coverage(kept), faults(ungrounded)];
    lead.into_iter().chain(figures).collect()
}

fn short(id: &EntryId) -> String {
    const ID_CHARS: usize = 12;
    if id.chars().count() > ID_CHARS { id.chars().take(8).collect() } else { id.to_string() }
}
