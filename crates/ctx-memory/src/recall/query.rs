//! Makes the search query.

use ctx_search::block::is_recalled;
use ctx_search::question::{is_query, query_text};

/// The number of user messages in a query.
const MESSAGES: usize = 3;

/// Returns the query made from the user's messages (oldest first): the last two or three of them,
/// without gateway prefixes. Returns `None` if they are too short to search for.
pub(crate) fn query_of<'a>(
    user_messages: impl DoubleEndedIterator<Item = &'a str>,
) -> Option<String> {
    let mut parts: Vec<&str> = user_messages
        .rev()
        .filter(|text| !is_recalled(text))
        .map(query_text)
        .filter(|text| !text.is_empty())
        .take(MESSAGES)
        .collect();
    let newest = parts.first()?;
    // A long question needs no older messages; a short one depends on them.
    if newest.chars().count() >= 200 {
        parts.truncate(2);
    }
    parts.reverse();
    let query = parts.join("\n");
    is_query(&query).then_some(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(messages: &[&str]) -> Option<String> {
        query_of(messages.iter().copied())
    }

    #[test]
    fn a_query_has_the_last_three_user_messages_oldest_first() {
        assert_eq!(
            query(&["a one", "b two", "c three", "d four"]).unwrap(),
            "b two\nc three\nd four"
        );
        let long = "why does it fail? ".repeat(20);
        assert!(query(&["a one", "b two", &long]).unwrap().starts_with("b two\nwhy"));
    }

    #[test]
    fn a_short_text_is_not_a_query() {
        for messages in [&[][..], &["y"], &["ok"], &["  "], &["好"], &["👍"], &["👍🏽"]] {
            assert_eq!(query(messages), None, "{messages:?}");
        }
        assert_eq!(query(&["幂等"]).as_deref(), Some("幂等"));
        assert_eq!(query(&["which database?", "y"]).unwrap(), "which database?\ny");
    }

    #[test]
    fn gateway_prefixes_are_removed() {
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
    fn recalled_text_is_not_searched_for_again() {
        assert_eq!(query(&["<recalled-context source=\"memory-context\">\n"]), None);
    }

    #[test]
    fn only_the_beginning_of_a_pasted_text_counts() {
        let pasted = format!("see this: {}", "é".repeat(100_000));
        assert_eq!(query(&[&pasted]).unwrap().chars().count(), 2_000);
    }
}
