//! Codes and ids of several words: `exit code 1`, `HTTP 404`, `port 8080`.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;
use crate::{SpanKind, WordList};

static ERROR_PHRASE: LazyLock<Regex> = LazyLock::new(|| pattern("error_phrase"));
static ID_PHRASE: LazyLock<Regex> = LazyLock::new(|| pattern("id_phrase"));

static ID_LEADS: WordList = WordList::new("number_leads.id");
static ERROR_LEADS: WordList = WordList::new("number_leads.error");

/// Words before and after an HTTP status.
static RETURNS: WordList = WordList::new("status_leads");
static RETURNS_ANYWHERE: WordList = WordList::new("status_leads_anywhere");
static FOLLOWS: WordList = WordList::new("status_follows");

static REASONS: WordList = WordList::new("output.status_reasons");

/// The kind and length of a phrase at the beginning of a text.
pub(super) type Phrase = (SpanKind, usize);

/// Parses a phrase at the beginning of a text.
pub(super) fn phrase(text: &str) -> Option<Phrase> {
    let patterns = [(SpanKind::ErrorCode, &ERROR_PHRASE), (SpanKind::Id, &ID_PHRASE)];
    patterns.into_iter().find_map(|(kind, pattern)| {
        let found = pattern.captures(text)?;
        // A second group is more of the number, which is then another one.
        found.get(2).is_none().then_some((kind, found.get(1)?.end()))
    })
}

/// HTTP statuses that are errors.
static STATUSES: WordList = WordList::new("statuses");

/// Whether a number of three digits is an HTTP status, judging by the surrounding text.
pub(super) fn is_status(number: &str, before: &str, after: &str) -> bool {
    let known = STATUSES.contains(&number);
    if !known {
        return false;
    }
    let after = after.trim_start_matches([' ', '`']);
    if REASONS.iter().any(|reason| after.starts_with(reason)) {
        return true;
    }
    let ends = after.is_empty()
        || after.starts_with(|c: char| !c.is_ascii_alphanumeric() && c != '%')
        || FOLLOWS.iter().any(|next| after.starts_with(next));
    let before = before.trim_end();
    let last = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    (ends && RETURNS.contains(&last.to_ascii_lowercase().as_str()))
        || RETURNS_ANYWHERE.iter().any(|lead| before.ends_with(lead))
}

/// Finds Chinese words before the number of a port or of an issue.
pub(super) fn chinese_lead(before: &str) -> Option<(SpanKind, usize)> {
    let bare = before.trim_end_matches([' ', ':', '：']);
    let leads = |list: &WordList| list.iter().find(|lead| bare.ends_with(**lead)).copied();
    let id = leads(&ID_LEADS).map(|lead| (lead, SpanKind::Id));
    let (lead, kind) = id.or_else(|| Some((leads(&ERROR_LEADS)?, SpanKind::ErrorCode)))?;
    Some((kind, before.len() - bare.len() + lead.len()))
}
