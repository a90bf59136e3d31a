//! Lines, and the pointers that replace them.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use ctx_core::{CallId, Chars};

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
    /// A line that a pointer replaced: no line is equal to it.
    pub(crate) const REPLACED: Self = Self { hash: 0, number: Some(0), chars: 0 };

    /// Reads the lines of a text. A pointer becomes as many lines as it replaces.
    pub(crate) fn all(text: &str, hasher: &RandomState) -> Vec<Self> {
        let mut lines = Vec::new();
        for line in text.split('\n') {
            if let Some(count) = replaced_by(line) {
                lines.extend(std::iter::repeat_n(Self::REPLACED, count));
            } else {
                let (number, rest) = without_number(line);
                let hash = hasher.hash_one(rest);
                lines.push(Self { hash, number, chars: Chars::of(line).0 + 1 });
            }
        }
        lines
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

/// Returns the number of lines that a line replaces, if it is a pointer.
fn replaced_by(line: &str) -> Option<usize> {
    let (first, last) = line.strip_prefix(POINTER)?.split_once(" are ")?.0.split_once('-')?;
    (last.parse::<usize>().ok()? + 1).checked_sub(first.parse().ok()?)
}

/// Whether a text contains what looks like a pointer. Such a text is left alone.
pub(crate) fn looks_pointed(text: &str) -> bool {
    text.contains(POINTER)
}

/// Lines of a result that stand in an earlier one.
#[derive(Debug)]
pub(crate) struct Run {
    /// The lines of the new result.
    pub(crate) lines: Range<usize>,
    /// By how much their numbers are higher than those of the earlier ones.
    pub(crate) shift: i64,
    /// The first of the earlier lines.
    pub(crate) first: usize,
    /// The position of the earlier result, and its call.
    pub(crate) at: usize,
    pub(crate) call: CallId,
}

/// Returns the line that replaces the lines of a run, all counted from 0. `what` describes the call
/// of the earlier result.
pub(crate) fn pointer(run: &Run, what: &str) -> String {
    let Run { lines, first, shift, call, .. } = run;
    let (start, end) = (lines.start + 1, lines.end);
    let (first, last) = (first + 1, first + lines.len());
    let numbered = match shift {
        0 => String::new(),
        1.. => format!(", numbered {shift} higher"),
        _ => format!(", numbered {} lower", -shift),
    };
    format!(
        "{POINTER}{start}-{end} are lines {first}-{last} of the result of call {call} \
         ({what}){numbered}]"
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
        assert!(lines.iter().all(|line| line.shift(&Line::REPLACED).is_none()));
        let run = Run { lines: 4..7, shift: -2, first: 0, at: 0, call: "c1".into() };
        let text =
            "[ctx: lines 5-7 are lines 1-3 of the result of call c1 (read), numbered 2 lower]";
        assert_eq!(pointer(&run, "read"), text);
        assert!(looks_pointed(text) && replaced_by(text) == Some(3));
    }
}
