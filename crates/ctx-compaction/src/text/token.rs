//! Tokens that stand or do not: paths, URLs, ids, error codes, numbers with units, names in code.

use std::ops::Range;

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
}

/// The tokens of a text, in order, none inside another.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = Vec::new();
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_matches(|c: char| c.is_whitespace() || ",.;:!?()`'\"".contains(c));
        let kind = if bare.contains("://") {
            Some(FactKind::Url)
        } else if bare.contains('/') && bare.len() > 2 {
            Some(FactKind::Path)
        } else {
            None
        };
        if let Some(kind) = kind {
            let start = at + word.find(bare).unwrap_or(0);
            out.push(Token { kind, text: bare, range: start..start + bare.len(), quoted: false });
        }
        at += word.len();
    }
    out
}
