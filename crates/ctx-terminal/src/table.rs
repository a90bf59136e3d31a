//! Tables that fit the terminal. Text is wrapped at words. If the table is still too wide, columns
//! are dropped. An id or a number is never broken over lines.

use std::borrow::Cow;

use anstyle::Style;
use comfy_table::{CellAlignment, presets};
use terminal_size::{Width, terminal_size_of};

use crate::format::{shortened, wrapped};

/// The style of what matters less.
pub const DIM: Style = Style::new().dimmed();

/// Maximum length of a text in a table: an id can be a megabyte.
const CELL_CHARS: usize = 160;

/// The last column is wrapped at words, down to the width of its longest word, within these limits.
const LEAST_TEXT: std::ops::RangeInclusive<usize> = 24..=48;

/// A cell of a table: its text and style.
#[derive(Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Creates a cell in a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

impl Cell {
    /// Returns it with more text at its end.
    pub fn suffixed(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Whether a table truncates its text.
    pub fn is_cut(&self) -> bool {
        self.text.chars().count() > CELL_CHARS
    }

    /// Returns its width in terminal columns.
    fn columns(&self) -> usize {
        shortened(&self.text, CELL_CHARS).chars().count()
    }

    /// Returns the printed text, in lines of at most this width.
    fn printed(&self, columns: Option<usize>) -> String {
        let lines = wrapped(&shortened(&self.text, CELL_CHARS), [0, 0], columns);
        let Self { style, .. } = self;
        let lines = lines.iter().map(|line| format!("{style}{line}{style:#}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the width of the terminal, if there is one.
pub fn terminal_columns() -> Option<usize> {
    terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| usize::from(columns))
}

/// A heading, and the function that returns a row's cell under it.
pub type Column<T> = (&'static str, fn(&T) -> Cell);

/// A table without lines. Text of cells may come from a transcript, so control characters are escaped.
pub struct Table {
    header: Vec<Cow<'static, str>>,
    rows: Vec<Vec<Cell>>,
    /// The columns from the second to this one are aligned to the right.
    numbers: usize,
    spared: &'static [&'static str],
}

/// Formats a [`Table`] to fit the terminal.
pub fn table(header: &[&'static str], rows: Vec<Vec<Cell>>, numbers: usize) -> String {
    Table::new(header, rows, numbers).fitted()
}

impl Table {
    /// Creates a table whose columns from the second to `numbers` are aligned to the right.
    pub fn new(header: &[&'static str], rows: Vec<Vec<Cell>>, numbers: usize) -> Self {
        let header = header.iter().map(|heading| Cow::Borrowed(*heading));
        Self { header: header.collect(), rows, numbers, spared: &[] }
    }

    /// Creates a table of numbers under headings that depend on the data.
    pub fn of_numbers(header: Vec<Cow<'static, str>>, rows: Vec<Vec<Cell>>) -> Self {
        Self { numbers: header.len(), header, rows, spared: &[] }
    }

    /// Sets the columns dropped on a narrow terminal, in this order.
    pub fn without(self, spared: &'static [&'static str]) -> Self {
        Self { spared, ..self }
    }

    /// Creates a table from columns. All contain numbers, except the first and a `kind` at the end.
    pub fn of<T>(rows: &[T], spared: &'static [&'static str], columns: &[Column<T>]) -> Self {
        let header: Vec<_> = columns.iter().map(|column| Cow::Borrowed(column.0)).collect();
        let words = header.iter().rev().take_while(|heading| *heading == "kind").count();
        let cells = |row: &T| columns.iter().map(|column| column.1(row)).collect();
        Self {
            numbers: header.len() - words,
            rows: rows.iter().map(cells).collect(),
            header,
            spared,
        }
    }

    /// Returns the table fitted to the terminal, followed by the names of dropped columns.
    pub fn fitted(self) -> String {
        let (text, gone) = self.text(terminal_columns());
        match gone.is_empty() {
            true => text,
            false => {
                format!("{text}\n{DIM}omitted columns: {}; see --json{DIM:#}", gone.join(", "))
            }
        }
    }

    /// Returns the table in `most` terminal columns, if it can be that narrow, and the headings of
    /// dropped columns.
    pub fn text(mut self, most: Option<usize>) -> (String, Vec<&'static str>) {
        let mut gone = Vec::new();
        for name in self.spared {
            let [fixed, last, word] = self.widths();
            let least = last.min(word.clamp(*LEAST_TEXT.start(), *LEAST_TEXT.end()));
            if most.is_none_or(|most| fixed + least <= most) {
                break;
            }
            if let Some(at) = self.header.iter().position(|heading| heading == name) {
                self.drop(at);
                gone.push(*name);
            }
        }
        (self.drawn(most), gone)
    }

    fn drop(&mut self, at: usize) {
        self.header.remove(at);
        self.numbers -= usize::from(at < self.numbers);
        for row in self.rows.iter_mut().filter(|row| at < row.len()) {
            row.remove(at);
        }
    }

    /// Returns widths in terminal columns: of all columns but the last, including separators; of
    /// the last; and of its longest word.
    fn widths(&self) -> [usize; 3] {
        let len = self.rows.iter().map(Vec::len).chain([self.header.len()]).max().unwrap_or(0);
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(Cell::columns);
            cells.chain(self.header.get(at).map(|heading| heading.chars().count())).max()
        };
        let last = len.saturating_sub(1);
        let fixed = (0..last).map(|at| width(at).unwrap_or(0) + 2).sum();
        let words = self.rows.iter().filter_map(|row| {
            row.get(last)?.text.split(' ').map(|word| word.chars().count()).max()
        });
        [fixed, width(last).unwrap_or(0), words.max().unwrap_or(0)]
    }

    fn drawn(&self, most: Option<usize>) -> String {
        let [fixed, ..] = self.widths();
        let last = most.map(|most| most.saturating_sub(fixed).max(*LEAST_TEXT.start()));
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        if !self.header.is_empty() {
            table.set_header(&self.header);
        }
        for row in &self.rows {
            let end = row.len().saturating_sub(1);
            let cells = row.iter().enumerate();
            table.add_row(cells.map(|(at, cell)| cell.printed(last.filter(|_| at == end))));
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            if at == 0 {
                column.set_padding((0, 1));
            } else if at < self.numbers {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let text = table.to_string();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::thousands;

    const SPARED: [&str; 3] = ["kind", "est. error", "requests"];

    #[test]
    fn a_narrow_terminal_gets_fewer_columns_and_whole_numbers() {
        let rows = [("recorded, ctx-extractive", 151_054_786_u64), ("nothing", 7)];
        let columns = || {
            let told: &[Column<(&str, u64)>] = &[
                ("candidate", |row| row.0.into()),
                ("requests", |row| thousands(row.1).into()),
                ("sent", |row| thousands(row.1).into()),
                ("kind", |_| "nothing left out".into()),
            ];
            Table::of(&rows, &SPARED, told)
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

    #[test]
    fn text_is_wrapped_before_a_column_is_dropped_and_ids_are_never_broken() {
        let id = "agent:demo:explicit/t:a b/c";
        let why =
            "the newest whole groups that fit: crates/ctx-session/src/store/sessions.rs, 42 %";
        let told = || {
            let row =
                |id: &str| vec![id.into(), "1,234".into(), "user".into(), Cell::styled(why, DIM)];
            let header = ["entry", "tokens", "role", "why"];
            Table::new(&header, vec![row(id), row("e")], 2).without(&["role", "tokens"])
        };
        for (most, dropped) in [(120, 0), (84, 0), (80, 1), (75, 2), (60, 2)] {
            let (text, gone) = told().text(Some(most));
            assert_eq!(gone.len(), dropped, "{most}: {text}");
            assert!(
                text.contains(id) && text.contains("crates/ctx-session/src/store/sessions.rs,")
            );
            assert_eq!(
                (text.matches("42 %").count(), text.matches("whole").count()),
                (2, 2),
                "{text}"
            );
            if most >= 75 {
                let lines =
                    text.lines().map(anstream::adapter::strip_str).map(|line| line.to_string());
                let widest = lines.map(|line| line.chars().count()).max();
                assert!(widest <= Some(most), "{widest:?} of {most}: {text}");
            }
        }
        assert_eq!(told().text(None).0.lines().count(), 3);
    }
}
