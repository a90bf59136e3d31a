//! Codes and ids of several words: `exit code 1`, `HTTP 404`, `port 8080`.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;
use crate::{SpanKind, WordList};

static ERROR_PHRASE: LazyLock<Regex> = LazyLock::new(|| pattern("error_phrase"));
static ID_PHRASE: LazyLock<Regex> = LazyLock::new(|| pattern("id_phrase"));

/// The kind and length of a phrase at the beginning of a text.
pub(super) type Phrase = (SpanKind, usize);

/// Parses a phrase at the beginning of a text.
pub(super) fn phrase(text: &str) -> Option<Phrase> {
    let patterns = [(SpanKind::ErrorCode, &ERROR_PHRASE), (SpanKind::Id, &ID_PHRASE)];
    patterns.into_iter().find_map(|(kind, pattern)| {
        // Most texts do not match, which is found faster than the groups of a match.
        let found = pattern.is_match(text).then(|| pattern.captures(text))??;
        // A second group is more of the number, which is then another one.
        found.get(2).is_none().then_some((kind, found.get(1)?.end()))
    })
}

/// Finds Chinese words before the number of a port or of an issue, and returns their length.
pub(super) fn chinese_lead(before: &str) -> Option<usize> {
    static LEADS: WordList = WordList::new("number_leads");
    let bare = before.trim_end_matches([' ', ':', '：']);
    let lead = LEADS.iter().find(|lead| bare.ends_with(**lead))?;
    Some(before.len() - bare.len() + lead.len())
}

/// HTTP statuses that are errors.
static STATUSES: WordList = WordList::new("statuses");
/// Words before a status.
static RETURNS: WordList = WordList::new("status_leads");
static RETURNS_ANYWHERE: WordList = WordList::new("status_leads_anywhere");

/// Whether a number is an HTTP status, judging by the word before it.
pub(super) fn is_status(number: &str, before: &str) -> bool {
    let before = before.trim_end();
    let last = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let is_returned = RETURNS.contains(last.to_ascii_lowercase().as_str())
        || RETURNS_ANYWHERE.iter().any(|lead| before.ends_with(lead));
    is_returned && STATUSES.contains(number)
}
