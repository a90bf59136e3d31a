//! Span boundaries.

use ctx_core::text::Slice;
use std::ops::Range;

use crate::SpanKind;
use crate::fold::is_cjk;

/// Whether the text at `range` is the whole token and not a part of a longer one: `src/a.rs` does
/// not occur in `src/a.rs.bak`, `lib/src/a.rs` or `src/a.rss`. A bare file name occurs in its path,
/// and a short hash in the full one.
pub fn stands_alone(text: &str, range: &Range<usize>, kind: SpanKind) -> bool {
    let token = text.get(range.clone()).unwrap_or_default();
    begins(text.slice(..range.start), token, kind) && ends(text.slice(range.end..), token, kind)
}

/// Whether a character belongs to a name, so that no name ends beside it.
pub fn joins(c: char) -> bool {
    (c.is_alphanumeric() && !is_cjk(c)) || c == '_'
}

fn begins(before: &str, token: &str, kind: SpanKind) -> bool {
    let mut chars = before.chars().rev();
    let Some(last) = chars.next() else { return true };
    let opens_with_name = token.chars().next().is_some_and(joins);
    if opens_with_name && joins(last) {
        return false;
    }
    let inner = chars.next().is_some_and(joins);
    match kind {
        SpanKind::Path if token.contains('/') => match last {
            // `./src/a.rs` equals `src/a.rs`.
            '/' => before.ends_with("./") && !before.ends_with("../") && !token.starts_with('/'),
            '.' | '~' | '\\' => false,
            '-' | '@' => !inner,
            _ => !(token.starts_with('/') && (joins(last) || last == '*')),
        },
        SpanKind::Path => !matches!(last, '-' | '.') || !inner,
        SpanKind::Number => !(matches!(last, '.' | ',' | '-') && inner),
        SpanKind::Id | SpanKind::ErrorCode => !(matches!(last, '-' | '.') && inner),
        _ => last != '-' || !(inner || token.starts_with('-')),
    }
}

fn ends(after: &str, token: &str, kind: SpanKind) -> bool {
    let mut chars = after.chars();
    let Some(first) = chars.next() else { return true };
    let closes_with_name = token.chars().next_back().is_some_and(joins);
    let hash = kind == SpanKind::Id
        && token.len() >= 7
        && token.bytes().all(|b| b.is_ascii_hexdigit())
        && token.bytes().any(|b| b.is_ascii_alphabetic());
    if closes_with_name && joins(first) {
        // A full hash contains its short form.
        let run = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        return hash && after.bytes().take(run).all(|b| b.is_ascii_hexdigit());
    }
    let inner = chars.next().is_some_and(joins);
    match kind {
        SpanKind::Path if token.ends_with('/') => !joins(first),
        SpanKind::Path => !(matches!(first, '.' | '-' | '/' | '\\') && inner),
        SpanKind::Url => {
            !(matches!(first, '.' | '-' | '?' | '&' | '=' | '#' | '/' | ':' | '%' | '~') && inner)
        }
        SpanKind::Id | SpanKind::ErrorCode => !(matches!(first, '.' | '-') && inner),
        SpanKind::Number => {
            !(matches!(first, '.' | ',')
                && inner
                && after.get(1..2).is_some_and(|c| c.starts_with(|c: char| c.is_ascii_digit())))
        }
        _ => !(first == '-' && inner),
    }
}
