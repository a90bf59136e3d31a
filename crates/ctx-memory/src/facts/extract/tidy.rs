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
    capital(&out)
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
