//! Lines, and the pointers that replace them.

use std::hash::{BuildHasher, RandomState};

use ctx_core::Chars;

/// Starts every pointer.
const POINTER: &str = "[ctx: lines ";

/// A line of a tool result. Some tools write its number at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The hash of the line without its number.
    pub(crate) hash: u64,
    pub(crate) number: Option<u32>,
    pub(crate) chars: u32,
}

impl Line {
    /// Reads the lines of a text.
    pub(crate) fn all(text: &str, hasher: &RandomState) -> Vec<Self> {
        let line = |line: &str| {
            let (number, rest) = without_number(line);
            Self { hash: hasher.hash_one(rest), number, chars: Chars::of(line).0 + 1 }
        };
        text.split('\n').map(line).collect()
    }

    /// Returns by how much its number is higher than that of `other`, an equal line; `None` if the
    /// lines are not equal.
    pub(crate) fn shift(&self, other: &Self) -> Option<i64> {
        match (self.number, other.number) {
            _ if self.hash != other.hash => None,
            (Some(own), Some(other)) => Some(i64::from(own) - i64::from(other)),
            (own, other) => (own == other).then_some(0),
        }
    }

    /// Whether it continues a run. Lines without numbers continue any run.
    pub(crate) fn continues(&self, other: &Self, shift: i64) -> bool {
        self.shift(other).is_some_and(|found| found == shift || self.number.is_none())
    }
}

/// Splits the number off a line: digits before an arrow or a tab, as tools number files.
fn without_number(line: &str) -> (Option<u32>, &str) {
    let rest = line.trim_start_matches(' ');
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match (rest[..end].parse(), rest[end..].chars().next()) {
        (Ok(number), Some('→' | '\t')) => (Some(number), &rest[end..]),
        _ => (None, line),
    }
}

/// Whether a text contains what looks like a pointer. Such a text is left alone.
pub(crate) fn looks_pointed(text: &str) -> bool {
    text.contains(POINTER)
}

/// Returns the line that replaces lines that stand in the result of `call`. `lines` are those of
/// that result, from 0; `shift` is by how much the replaced ones are numbered higher.
pub(crate) fn pointer(lines: std::ops::Range<usize>, shift: i64, call: &str, what: &str) -> String {
    let (first, last) = (lines.start + 1, lines.end);
    let numbered = match shift {
        0 => String::new(),
        1.. => format!(", numbered {shift} higher"),
        _ => format!(", numbered {} lower", -shift),
    };
    format!(
        "{POINTER}{first}-{last} of the result of call {call} ({what}) stand here again{numbered}]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_split_off() {
        for (line, number, rest) in [
            ("    12→fn main() {", Some(12), "→fn main() {"),
            ("7\tx", Some(7), "\tx"),
            ("12: x", None, "12: x"),
            ("  x", None, "  x"),
            ("99999999999→x", None, "99999999999→x"),
            ("", None, ""),
        ] {
            assert_eq!(without_number(line), (number, rest), "{line}");
        }
    }

    #[test]
    fn equal_lines_have_a_shift() {
        let hasher = RandomState::new();
        let lines = Line::all("1→a\n5→a\n1→b\na\n→a", &hasher);
        let shift = |own: usize, other: usize| lines[own].shift(&lines[other]);
        assert_eq!([shift(1, 0), shift(0, 1), shift(0, 0)], [Some(4), Some(-4), Some(0)]);
        assert_eq!([shift(0, 2), shift(0, 3), shift(0, 4), shift(3, 4)], [None; 4]);
        assert!(looks_pointed(&pointer(0..3, -2, "c1", "read")));
        let text =
            "[ctx: lines 1-3 of the result of call c1 (read) stand here again, numbered 2 lower]";
        assert_eq!(pointer(0..3, -2, "c1", "read"), text);
    }
}
