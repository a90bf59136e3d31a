//! The part of a message that is a question to search for.

use ctx_core::text::head_chars;
use ctx_text::width;

/// The minimum [`width`] of a query: "y" and "ok" match everything.
const MIN_WIDTH: usize = 3;

/// Whether a query is long enough to search for: three letters, or two Chinese characters.
#[must_use]
pub fn is_query(text: &str) -> bool {
    width(text.trim()) >= MIN_WIDTH
}

/// The number of characters used of a message: the beginning of a pasted text shows its topic.
const LONGEST_PART: usize = 2_000;

/// Returns the message without system prefixes, truncated to the length a query needs.
pub fn query_text(text: &str) -> &str {
    head_chars(without_prefixes(text), LONGEST_PART)
}

/// Removes gateway prefixes: lines such as `System: [2026-02-10 14:31 UTC] Feishu message in
/// group`, and bracketed envelopes such as `[Feishu Ada id:ou_1 2026-02-10 14:31]`.
pub fn without_prefixes(mut text: &str) -> &str {
    loop {
        text = text.trim();
        let rest = if text.starts_with("System:") {
            text.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(envelope) = envelope(text) {
            &text[envelope..]
        } else {
            return text;
        };
        text = rest;
    }
}

/// Returns the length of a bracketed envelope with a date or an id at the beginning of the text.
fn envelope(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find([']', '\n'])?;
    let is_envelope = inner[end..].starts_with(']')
        && end <= 200
        && (inner[..end].contains("id:") || has_date(&inner[..end]));
    is_envelope.then_some(end + 2)
}

/// Whether a text holds a date such as `2026-02-10`.
fn has_date(text: &str) -> bool {
    text.as_bytes().windows(10).any(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })
}
