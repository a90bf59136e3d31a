//! Tokens: paths, URLs, ids, error codes, numbers with units, names in code.
//!
//! The text is scanned in one pass, word by word; a word is classified by its shape, with the regular
//! expressions of `words/patterns.toml`.

mod bounds;
mod code;
mod date;
mod edges;
mod normal;
mod number;
mod path;
mod phrase;
mod scan;

use std::ops::Range;

pub use bounds::{joins, stands_alone};
pub(crate) use date::is_month;
pub use date::{day_len, is_time};
pub use normal::{NormalForm, normal_form, trailing_digits};
pub use number::{Number, number};
pub(crate) use path::is_on_windows;
pub use path::split_line;
use scan::Scan;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// An error code, an exception type, an exit status.
    ErrorCode,
    /// A file or folder.
    Path,
    /// A URL.
    Url,
    /// A hash, a UUID, an issue, a version, an address.
    Id,
    /// A number with its unit, a date.
    Number,
    /// A name in code, or a quoted command.
    CodeName,
}

/// An identifier or a number in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span<'a> {
    /// Its kind; never that of a passage.
    pub kind: SpanKind,
    /// Its text.
    pub text: &'a str,
    /// Its byte range.
    pub range: Range<usize>,
    /// Whether it is in backticks.
    pub quoted: bool,
    /// Whether it is a number that only counts things, or has no unit.
    pub is_count: bool,
}

/// Returns the tokens of a text, in order. Only those of a quoted command are inside another one.
pub fn spans(text: &str) -> Vec<Span<'_>> {
    Scan::new(text).run()
}

#[cfg(test)]
mod tests;
