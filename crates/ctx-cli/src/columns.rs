//! Tables that leave columns out where the terminal is narrow: a number that is broken over lines is
//! none.

use crate::out::{Cell, table_within};

/// Columns of words. They stand behind the numbers, which are aligned to the right.
const WORDS: [&str; 4] = ["kind", "project", "id", "transcript"];

/// A column: its heading, and a cell for each row.
type Column = (&'static str, Vec<Cell>);

/// A table by columns, and those of them that it can do without.
pub(crate) struct Columns {
    columns: Vec<Column>,
    spared: &'static [&'static str],
}

impl Columns {
    pub(crate) fn of<T>(rows: &[T], spared: &'static [&'static str], columns: &[Told<T>]) -> Self {
        let cells = |told: &Told<T>| (told.0, rows.iter().map(told.1).collect());
        Self { columns: columns.iter().map(cells).collect(), spared }
    }

    /// The table in `most` columns of the terminal, if it can be had so narrow, and the headings of
    /// what had to go for that.
    pub(crate) fn text(mut self, most: Option<usize>) -> (String, Vec<&'static str>) {
        let mut gone = Vec::new();
        for name in self.spared {
            if most.is_none_or(|most| self.width() <= most) {
                break;
            }
            self.columns.retain(|(heading, _)| heading != name);
            gone.push(*name);
        }
        let header: Vec<&str> = self.columns.iter().map(|(heading, _)| *heading).collect();
        let is_words = |column: &&Column| WORDS.contains(&column.0);
        let words = self.columns.iter().rev().take_while(is_words).count();
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
pub(crate) type Told<T> = (&'static str, fn(&T) -> Cell);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::thousands;

    const SPARED: [&str; 3] = ["kind", "est. error", "requests"];

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
