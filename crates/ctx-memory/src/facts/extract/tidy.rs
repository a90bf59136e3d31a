//! Shortens a clause to the text of a fact.

use ctx_core::text::{Slice, head_chars};
use ctx_text::WordList;

/// Beginnings that say who asks for something, not what.
static LEADS: WordList = WordList::new("clause.leads");

/// A longer fact is cut at the end of one of its clauses.
const LONG: usize = 140;

/// Words at which a long fact is cut.
static JOINTS: WordList = WordList::new("clause.joints");

/// Returns the text of the fact, without Markdown, introductions and trailing additions.
pub(super) fn tidy(text: &str) -> String {
    capital(&bare(text))
}

/// Like [`tidy`], but keeps the case of the first letter.
pub(super) fn bare(text: &str) -> String {
    let flat = without_links(text)
        .replace("**", "")
        .replace("__", "")
        .replace('’', "'")
        .replace(" -> ", " → ");
    let mut bare = flat.trim().trim_matches('*').trim();
    for (open, close) in [('"', '"'), ('“', '”')] {
        bare = bare.strip_prefix(open).and_then(|b| b.strip_suffix(close)).unwrap_or(bare);
    }
    for _ in 0..3 {
        let lead = LEADS.iter().find(|lead| {
            bare.get(..lead.len()).is_some_and(|start| start.eq_ignore_ascii_case(lead))
        });
        match lead.and_then(|lead| bare.get(lead.len()..)) {
            Some(rest) => bare = rest.trim_start_matches([',', ' ']),
            None => break,
        }
    }
    let mut out = bare
        .trim_end_matches(['.', ',', ';', ':', '!', '。', '，', '；', '：', '！', ' ', '*'])
        .to_owned();
    if out.chars().count() > LONG {
        let least = head_chars(&out, 40).len();
        let most = head_chars(&out, LONG).len();
        let cut = JOINTS
            .iter()
            .filter_map(|joint| {
                let at = out.get(least..most)?.rfind(joint)? + least;
                balanced(out.get(..at)?).then_some(at)
            })
            .next();
        if let Some(at) = cut {
            out.truncate(at);
            out.truncate(out.trim_end_matches([',', ';', '，', ' ']).len());
        }
    }
    out
}

/// Replaces `[text](address)` by `text`.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let (Some(open), Some(close)) = (before.rfind('['), after.find(')')) else { break };
        out.push_str(before.slice(..open));
        out.push_str(before.slice(open + 1..));
        rest = after.slice(close + 1..);
    }
    out.push_str(rest);
    out
}

/// Whether all brackets and backticks are closed.
fn balanced(text: &str) -> bool {
    text.matches('`').count().is_multiple_of(2)
        && text.matches('(').count() == text.matches(')').count()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Whether a text names code: something in backticks, a path, a call, a camelCase or snake_case
/// name.
pub(super) fn names_code(text: &str) -> bool {
    if text.matches('`').count() >= 2 {
        return true;
    }
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| matches!(c, ',' | '.' | ';' | ':' | '"' | '\''));
        let path = word.contains('/')
            && word.len() > 3
            && !word.starts_with("and/")
            && word.contains(|c: char| {
                matches!(c, '.' | '_') || word.starts_with('/') || word.matches('/').count() > 1
            });
        let call = word.ends_with("()");
        let snake = word.contains('_') && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        let humps = word.is_ascii()
            && word
                .as_bytes()
                .windows(2)
                .filter(|w| matches!(w, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
                .count()
                > 0
            && word.bytes().all(|b| b.is_ascii_alphanumeric());
        let file = word.rsplit_once('.').is_some_and(|(stem, ext)| {
            !stem.is_empty()
                && (1..=5).contains(&ext.len())
                && ext.bytes().all(|b| b.is_ascii_lowercase())
                && stem.len() > 1
                && !word.starts_with("http")
        });
        path || call || snake || humps || file
    })
}
