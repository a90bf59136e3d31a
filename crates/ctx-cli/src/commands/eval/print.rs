//! What `ctx eval` says on a terminal. Where that is narrow, columns are left out: a number that is
//! broken over lines is none.

use ctx_eval::eval::{
    EqualSize, EvalReport, EvalRow, OnceRow, RecordedSummary, RowKind, SummaryFigures, SummarySums,
};

use crate::out::{BOLD, Cell, DIM, GREEN, Out, RED, table_within, terminal_columns};
use crate::words::{counted, harmless, percent, shortened, thousands, usd};

/// A coverage from here on is what a compaction has to reach.
const GOOD_COVERAGE: f64 = 0.95;

/// How wide text is set at most.
const TEXT_CHARS: usize = 100;

/// A reason for a failure is cut here.
const REASON_CHARS: usize = 400;

/// Columns of the replay that a narrow terminal has to do without, the first to go first. What the
/// candidates are is said by their names, and most of the others by the page and by `--json` alone.
const SPARED: [&str; 7] = ["kind", "est. error", "ratio", "calls", "requests", "cuts", "cached"];

pub(super) fn print(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    let most = terminal_columns().map(usize::from);
    for session in &report.sessions {
        out.session(&session.session)?;
        let model = session.model.as_deref().map_or_else(
            || "no model known, so no prices; see --model".to_owned(),
            |model| format!("model {}", harmless(model)),
        );
        out.line(format!("{DIM}window {}, {model}{DIM:#}", thousands(session.window.get())))?;
    }
    if let Some(sums) = &report.equal_size {
        heading(out, most, &equal_size(sums))?;
        out.line(recorded(report, sums).text(most).0)?;
    }
    heading(out, most, "Replayed request by request, each candidate by its own rules")?;
    let (text, spared) = replayed(report).text(most);
    out.line(text)?;
    if !spared.is_empty() {
        dimmed(
            out,
            most,
            "",
            &format!("no room for: {}; see --html or --json", spared.join(", ")),
        )?;
    }
    if !report.once.is_empty() {
        let title = format!(
            "Compacted once, to {:.0} % at most: what is left differs in size, so compare neighbours only",
            report.compact_to * 100.0
        );
        heading(out, most, &title)?;
        out.line(once(report).text(most).0)?;
    }
    failures(report, out)?;
    out.line("")?;
    for note in &report.notes {
        dimmed(out, most, "- ", note)?;
    }
    Ok(())
}

/// A column: its heading, and a cell for each row.
type Column = (&'static str, Vec<Cell>);

/// A table by columns, and those of them that it can do without.
struct Columns {
    columns: Vec<Column>,
    spared: &'static [&'static str],
}

impl Columns {
    fn of<T>(rows: &[T], spared: &'static [&'static str], columns: &[Told<T>]) -> Self {
        let cells = |told: &Told<T>| (told.0, rows.iter().map(told.1).collect());
        Self { columns: columns.iter().map(cells).collect(), spared }
    }

    /// The table in `most` columns of the terminal, if it can be had so narrow, and the headings of
    /// what had to go for that.
    fn text(mut self, most: Option<usize>) -> (String, Vec<&'static str>) {
        let mut gone = Vec::new();
        for name in self.spared {
            if most.is_none_or(|most| self.width() <= most) {
                break;
            }
            self.columns.retain(|(heading, _)| heading != name);
            gone.push(*name);
        }
        let header: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        let words = self.columns.iter().rev().take_while(|(heading, _)| *heading == "kind").count();
        let numbers = header.len() - words;
        let mut columns: Vec<_> =
            self.columns.into_iter().map(|(_, cells)| cells.into_iter()).collect();
        let mut rows = Vec::new();
        loop {
            let row: Vec<Cell> = columns.iter_mut().filter_map(Iterator::next).collect();
            if row.is_empty() {
                break;
            }
            rows.push(row);
        }
        (table_within(None, &header, rows, numbers), gone)
    }

    fn width(&self) -> usize {
        let widths = self.columns.iter().map(|(heading, cells)| {
            let cells = cells.iter().map(Cell::columns).max().unwrap_or_default();
            cells.max(heading.chars().count()) + 2
        });
        // No space before the first column, none after the last one.
        widths.sum::<usize>().saturating_sub(2)
    }
}

/// A heading, and what a row says under it.
type Told<T> = (&'static str, fn(&T) -> Cell);

fn replayed(report: &EvalReport) -> Columns {
    let columns: &[Told<EvalRow>] = &[
        ("candidate", |row| row.name.clone().into()),
        ("requests", |row| thousands(row.requests as u64).into()),
        ("sent", |row| thousands(row.sent_tokens).into()),
        ("cached", |row| share(row.prefix_reuse)),
        ("cost", |row| row.cost_usd.map_or_else(|| "-".to_owned(), usd).into()),
        ("calls", |row| thousands(row.calls).into()),
        ("cuts", |row| thousands(row.cuts as u64).into()),
        ("ratio", |row| {
            row.compression_ratio.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}")).into()
        }),
        ("coverage", |row| coverage(row.coverage)),
        ("invented", |row| faults(row.ungrounded)),
        ("wedges", |row| faults(row.wedges as u64)),
        ("est. error", |row| share(row.estimate_error)),
        ("kind", |row| kind(row.kind).into()),
    ];
    Columns::of(&report.rows, &SPARED, columns)
}

/// The smallest first: neighbours are those that may be compared.
fn once(report: &EvalReport) -> Columns {
    let mut rows: Vec<&OnceRow> = report.once.iter().collect();
    rows.sort_by(|one, two| left(one).total_cmp(&left(two)));
    let columns: &[Told<&OnceRow>] = &[
        ("candidate", |row| row.name.clone().into()),
        ("before", |row| thousands(row.tokens_before).into()),
        ("left", |row| thousands(row.tokens_after).into()),
        ("of before", |row| percent(left(row)).into()),
        ("facts", |row| thousands(row.facts).into()),
        ("kept", |row| kept_once(row)),
        ("invented", |row| faults(row.ungrounded)),
        ("kind", |row| kind(row.kind).into()),
    ];
    Columns::of(&rows, &["kind", "before"], columns)
}

/// The share of its tokens that a session still has.
fn left(row: &OnceRow) -> f64 {
    row.tokens_after as f64 / row.tokens_before.max(1) as f64
}

fn kind(kind: RowKind) -> &'static str {
    match kind {
        RowKind::None => "nothing left out",
        RowKind::Profile => "profile",
        RowKind::Engine => "engine",
        RowKind::Preset => "preset",
        RowKind::Recorded => "recorded",
    }
}

fn share(share: Option<f64>) -> Cell {
    share.map_or_else(|| "-".to_owned(), percent).into()
}

fn coverage(found: Option<f64>) -> Cell {
    match found {
        Some(share) if share >= GOOD_COVERAGE => Cell::styled(percent(share), GREEN),
        other => share(other),
    }
}

fn faults(count: u64) -> Cell {
    match count {
        0 => Cell::styled("0", GREEN),
        n => Cell::styled(thousands(n), RED),
    }
}

/// Coverage of the session compacted once; in brackets where the share was not reached.
fn kept_once(row: &OnceRow) -> Cell {
    if row.failed.is_some() {
        Cell::styled("failed", RED)
    } else if row.reached < row.sessions {
        row.coverage.map_or_else(|| "-".to_owned(), |c| format!("({})", percent(c))).into()
    } else {
        coverage(row.coverage)
    }
}

/// The comparison that may be made without looking at sizes.
fn equal_size(sums: &EqualSize) -> String {
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

/// The agent's own summaries and ours, a row each.
fn recorded(report: &EvalReport, sums: &EqualSize) -> Columns {
    let found = report.sessions.iter().flat_map(|session| &session.recorded);
    let mut rows: Vec<_> = found.flat_map(|found| [Line::Own(found), Line::Ours(found)]).collect();
    if sums.summaries > 1 {
        rows.extend([
            Line::Sum("all", "agent", sums.facts, sums.recorded),
            Line::Sum("", "ctx", sums.facts, sums.ctx),
        ]);
    }
    let columns: &[Told<Line<'_>>] = &[
        ("compaction", Line::compaction),
        ("messages", Line::messages),
        ("facts", Line::facts),
        ("summary", Line::by),
        ("tokens", Line::tokens),
        ("kept", Line::kept),
        ("invented", Line::invented),
    ];
    Columns::of(&rows, &["messages"], columns)
}

/// A row of the comparison at equal size.
enum Line<'a> {
    Own(&'a RecordedSummary),
    Ours(&'a RecordedSummary),
    Sum(&'static str, &'static str, u64, SummarySums),
}

impl Line<'_> {
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

    fn invented(&self) -> Cell {
        match self {
            Self::Sum(_, _, _, sums) => faults(sums.ungrounded),
            _ => faults(self.figures().map_or(0, |figures| figures.ungrounded.len() as u64)),
        }
    }
}

/// Why candidates did not get to the end. A reason is too long for a cell.
fn failures(report: &EvalReport, out: &Out) -> anyhow::Result<()> {
    let replayed = report.rows.iter().map(|row| ("replay", &row.name, &row.failed));
    let once = report.once.iter().map(|row| ("compacted once", &row.name, &row.failed));
    for (what, name, failed) in replayed.chain(once) {
        if let Some(why) = failed {
            let (name, why) = (harmless(name), shortened(why, REASON_CHARS));
            out.line(format!("{RED}failed:{RED:#} {name}, {what}: {why}"))?;
        }
    }
    Ok(())
}

fn heading(out: &Out, most: Option<usize>, text: &str) -> anyhow::Result<()> {
    out.line("")?;
    for line in wrapped(text, most) {
        out.line(format!("{BOLD}{line}{BOLD:#}"))?;
    }
    Ok(())
}

fn dimmed(out: &Out, most: Option<usize>, lead: &str, text: &str) -> anyhow::Result<()> {
    let room = most.map(|most| most.saturating_sub(lead.len()));
    for (at, line) in wrapped(text, room).into_iter().enumerate() {
        let lead = if at == 0 { lead.to_owned() } else { " ".repeat(lead.len()) };
        out.line(format!("{DIM}{lead}{line}{DIM:#}"))?;
    }
    Ok(())
}

/// A text in lines of a readable width. A number stays with its per cent sign.
fn wrapped(text: &str, most: Option<usize>) -> Vec<String> {
    let most = most.unwrap_or(TEXT_CHARS).min(TEXT_CHARS);
    let mut lines = vec![String::new()];
    let text = text.replace(" %", "\u{a0}%");
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < most => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_never_half_a_number() {
        let rows = [("recorded, ctx-extractive", 151_054_786_u64), ("nothing", 7)];
        let columns = || {
            let told: &[Told<(&str, u64)>] = &[
                ("candidate", |row| row.0.into()),
                ("requests", |row| thousands(row.1).into()),
                ("sent", |row| thousands(row.1).into()),
                ("kind", |_| "nothing left out".into()),
            ];
            Columns::of(&rows, &SPARED, told)
        };
        let gone = |most| columns().text(most).1;
        assert!(gone(None).is_empty() && gone(Some(68)).is_empty());
        assert_eq!(gone(Some(60)), ["kind"]);
        for (most, shown) in [(Some(68), 2), (Some(51), 2), (Some(38), 1), (Some(5), 1)] {
            let (text, _) = columns().text(most);
            assert_eq!(text.lines().count(), 3, "{text}");
            assert_eq!(text.matches("151,054,786").count(), shown, "{text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= most.max(Some(38)), "{widest:?} of {most:?}: {text}");
        }
    }
}
