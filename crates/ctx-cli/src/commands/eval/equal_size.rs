//! The comparison at equal size: the agent's own summaries and ctx's of the same messages.

use ctx_eval::eval::{EqualSize, EvalReport, RecordedSummary, SummaryFigures, SummarySums};

use super::print::{coverage, faults};
use crate::format::{counted, percent, thousands};
use crate::out::{BOLD, Cell, Table};
use crate::table::Column;

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

/// Returns a table with one row each for the agent's own summaries and those of ctx.
pub(super) fn table(report: &EvalReport, sums: &EqualSize) -> Table {
    let found = report.sessions.iter().flat_map(|session| &session.recorded);
    let mut rows: Vec<_> =
        found.flat_map(|found| [SizeRow::Own(found), SizeRow::Ours(found)]).collect();
    if sums.summaries > 1 {
        rows.extend([
            SizeRow::Sum("all", "agent", sums.facts, sums.recorded),
            SizeRow::Sum("", "ctx", sums.facts, sums.ctx),
        ]);
    }
    let columns: &[Column<SizeRow<'_>>] = &[
        ("compaction", SizeRow::compaction),
        ("messages", SizeRow::messages),
        ("facts", SizeRow::facts),
        ("summary", SizeRow::by),
        ("tokens", SizeRow::tokens),
        ("kept", SizeRow::kept),
        ("ungrounded", SizeRow::ungrounded),
    ];
    Table::of(&rows, &["messages"], columns)
}

/// A row of the comparison at equal size.
enum SizeRow<'a> {
    Own(&'a RecordedSummary),
    Ours(&'a RecordedSummary),
    Sum(&'static str, &'static str, u64, SummarySums),
}

impl SizeRow<'_> {
    fn figures(&self) -> Option<&SummaryFigures> {
        match self {
            Self::Own(found) => Some(&found.recorded),
            Self::Ours(found) => Some(&found.ctx),
            Self::Sum(..) => None,
        }
    }

    fn compaction(&self) -> Cell {
        const ID_CHARS: usize = 12;
        match self {
            Self::Own(found) if found.entry_id.chars().count() > ID_CHARS => {
                found.entry_id.chars().take(8).collect::<String>().into()
            }
            Self::Own(found) => found.entry_id.to_string().into(),
            Self::Ours(_) => "".into(),
            Self::Sum(name, ..) => Cell::styled(*name, BOLD),
        }
    }

    fn messages(&self) -> Cell {
        match self {
            Self::Own(found) => thousands(found.messages as u64).into(),
            Self::Ours(_) | Self::Sum(..) => "".into(),
        }
    }

    fn facts(&self) -> Cell {
        match self {
            Self::Own(found) => thousands(found.facts).into(),
            Self::Sum("all", _, facts, _) => thousands(*facts).into(),
            Self::Ours(_) | Self::Sum(..) => "".into(),
        }
    }

    fn by(&self) -> Cell {
        match self {
            Self::Own(_) => "agent".into(),
            Self::Ours(_) => "ctx".into(),
            Self::Sum(_, by, ..) => (*by).into(),
        }
    }

    fn tokens(&self) -> Cell {
        match self {
            Self::Sum(_, _, _, sums) => thousands(sums.tokens).into(),
            _ => self.figures().map(|it| thousands(it.tokens.get())).unwrap_or_default().into(),
        }
    }

    fn kept(&self) -> Cell {
        match self {
            Self::Sum(_, _, facts, sums) => {
                coverage((*facts > 0).then(|| sums.kept as f64 / *facts as f64))
            }
            _ => coverage(self.figures().and_then(|figures| figures.in_summary)),
        }
    }

    fn ungrounded(&self) -> Cell {
        match self {
            Self::Sum(_, _, _, sums) => faults(sums.ungrounded),
            _ => faults(self.figures().map_or(0, |figures| figures.ungrounded.len() as u64)),
        }
    }
}
