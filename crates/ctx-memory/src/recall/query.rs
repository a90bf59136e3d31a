//! What to search for.

use super::is_recalled;
use crate::text::weight;

/// Queries that say less, by [`weight`], search for nothing: "y" and "ok" fit everything.
const MIN_WEIGHT: usize = 3;

/// Whether a query says enough to search for: three letters, or two characters of Chinese.
#[must_use]
pub fn is_query(text: &str) -> bool {
    weight(text) >= MIN_WEIGHT
}

/// The user messages that make a query.
const MESSAGES: usize = 3;

/// The newest ones matter; of a text that is pasted in, its beginning says what it is about.
const LONGEST_PART: usize = 2_000;

/// The query that the user's messages make, oldest first: the last two or three of them, without
/// what a gateway put in front. `None` where they say too little to search for.
pub fn query_of<'a>(user_messages: impl DoubleEndedIterator<Item = &'a str>) -> Option<String> {
    let mut parts: Vec<&str> = user_messages
        .rev()
        .filter(|text| !is_recalled(text))
        .map(said)
        .filter(|text| !text.is_empty())
        .take(MESSAGES)
        .collect();
    let newest = parts.first()?;
    // A question of its own needs no older ones; a short one is about what was said before.
    if newest.chars().count() >= 200 {
        parts.truncate(2);
    }
    parts.reverse();
    let query = parts.join("\n");
    is_query(&query).then_some(query)
}

/// The message without system prefixes, and not longer than a query needs.
pub(crate) fn said(text: &str) -> &str {
    let text = without_prefixes(text);
    match text.char_indices().nth(LONGEST_PART) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Leaves out what gateways put before a user's words: lines such as
/// `System: [2026-02-10 14:31 UTC] Feishu message in group`, and bracketed envelopes such as
/// `[Feishu Ada id:ou_1 2026-02-10 14:31]`.
pub(crate) fn without_prefixes(mut text: &str) -> &str {
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

/// The length of a bracketed envelope in front of the text: one that holds a date or an id.
fn envelope(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find([']', '\n'])?;
    let is_envelope = inner[end..].starts_with(']')
        && end <= 200
        && (inner[..end].contains("id:") || has_date(&inner[..end]));
    is_envelope.then_some(end + 2)
}

/// Whether a text holds something like `2026-02-10`.
fn has_date(text: &str) -> bool {
    text.as_bytes().windows(10).any(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(messages: &[&str]) -> Option<String> {
        query_of(messages.iter().copied())
    }

    #[test]
    fn the_last_three_messages_of_the_user_make_it_oldest_first() {
        assert_eq!(
            query(&["a one", "b two", "c three", "d four"]).unwrap(),
            "b two\nc three\nd four"
        );
        let long = "why does it fail? ".repeat(20);
        assert!(query(&["a one", "b two", &long]).unwrap().starts_with("b two\nwhy"));
    }

    #[test]
    fn too_little_is_no_query() {
        for messages in [&[][..], &["y"], &["ok"], &["  "], &["好"], &["👍"], &["👍🏽"]] {
            assert_eq!(query(messages), None, "{messages:?}");
        }
        assert_eq!(query(&["幂等"]).as_deref(), Some("幂等"));
        assert_eq!(query(&["which database?", "y"]).unwrap(), "which database?\ny");
    }

    #[test]
    fn what_a_gateway_put_in_front_is_left_out() {
        for text in [
            "System: [2026-02-10 14:31] Feishu message in group\nfix the port",
            "[Feishu Ada id:ou_12 2026-02-10 14:31] fix the port",
            "System: one\nSystem: two\n\n[Slack 2026-02-10] fix the port",
        ] {
            assert_eq!(query(&[text]).unwrap(), "fix the port");
        }
        assert_eq!(query(&["[x] fix the port"]).unwrap(), "[x] fix the port");
        assert_eq!(query(&["System: nothing but this"]), None);
    }

    #[test]
    fn what_was_recalled_is_not_searched_for_again() {
        assert_eq!(query(&["<recalled-context source=\"memory-context\">\n"]), None);
    }

    #[test]
    fn a_pasted_text_counts_by_its_beginning() {
        let pasted = format!("see this: {}", "é".repeat(100_000));
        assert_eq!(query(&[&pasted]).unwrap().chars().count(), LONGEST_PART);
    }
}
