//! Tokens: paths, URLs, ids, error codes, numbers with units, names in code.
//!
//! The text is scanned in one pass, word by word, without regular expressions; a word is classified
//! by its shape. Words of plain letters, the bulk of any text, are skipped at once.

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
    /// Its kind; never that of a passage.
    pub(crate) kind: FactKind,
    /// Its text.
    pub(crate) text: &'a str,
    /// Its byte range.
    pub(crate) range: Range<usize>,
    /// Whether it is in backticks or quotes.
    pub(crate) quoted: bool,
    /// Whether it is a number that only counts things, or has no unit.
    pub(crate) is_count: bool,
}

/// Returns the tokens of a text, in order. Only those of a quoted command are inside another one.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    Scan::new(text).run()
}

/// Whether a character is Chinese, Japanese or Korean, written without spaces between words.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests;
