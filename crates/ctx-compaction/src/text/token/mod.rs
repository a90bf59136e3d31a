//! Tokens that stand or do not: paths, URLs, ids, error codes, numbers with units, names in code.
//!
//! One pass over the text, word by word, without regular expressions; what a word is follows from
//! its shape. Words of plain letters, most of any text, are passed over at once.

mod bounds;
mod code;
mod date;
mod edges;
mod lists;
mod normal;
mod number;
mod path;
mod phrase;
mod scan;

use std::ops::Range;

pub(crate) use bounds::stands_alone;
pub(crate) use date::day_len;
pub(crate) use normal::{NormalForm, normal_form};
pub(crate) use number::number;
pub(crate) use path::split_line;
use scan::Scan;

use crate::FactKind;

/// An identifier or a number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// What it is; never a passage.
    pub(crate) kind: FactKind,
    /// Its text.
    pub(crate) text: &'a str,
    /// Where it stands.
    pub(crate) range: Range<usize>,
    /// Whether it stands in backticks or quotes.
    pub(crate) quoted: bool,
    /// Whether it is a number that only counts things, or has no unit at all.
    pub(crate) is_count: bool,
}

/// The tokens of a text, in order. Only the words of a quoted command stand inside another token.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    Scan::new(text).run()
}

/// Chinese, Japanese and Korean letters, which stand side by side without blanks.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests;
