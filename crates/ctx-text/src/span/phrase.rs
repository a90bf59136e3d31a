//! Codes and ids of several words: `exit code 1`, `HTTP 404`, `port 8080`.

use crate::SpanKind;
use crate::WordList;

static ID_LEADS: WordList = WordList::new("number_leads.id");
static ERROR_LEADS: WordList = WordList::new("number_leads.error");

/// Words before and after an HTTP status.
static RETURNS: WordList = WordList::new("status_leads");
static RETURNS_ANYWHERE: WordList = WordList::new("status_leads_anywhere");
static FOLLOWS: WordList = WordList::new("status_follows");

static REASONS: WordList = WordList::new("output.status_reasons");

/// The kind and length of a phrase at the beginning of a text.
pub(super) type Phrase = (SpanKind, usize);

/// Parses a phrase that begins with `word`; `rest` is the text from that word on.
pub(super) fn phrase(word: &str, rest: &str) -> Option<Phrase> {
    if word.len() > 9 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let after = rest.get(word.len()..)?;
    let (kind, lead, most) = match lower.as_str() {
        "exit" | "exits" | "exited" | "exitcode" => (SpanKind::ErrorCode, 4, 3),
        "http" | "status" => (SpanKind::ErrorCode, 3, 3),
        "errno" | "error" | "sqlstate" | "code" => (SpanKind::ErrorCode, 2, 5),
        "port" | "issue" | "pr" | "ticket" | "mr" | "bug" | "rfc" | "adr" => (SpanKind::Id, 1, 7),
        "version" | "python" | "node" | "rust" | "go" | "java" | "php" | "ruby" | "ubuntu"
        | "debian" | "postgres" | "cuda" | "django" | "react" | "nginx" | "swift" | "kotlin" => {
            return version(word, after);
        }
        _ => return None,
    };
    let (at, digits) = number_after(after, &lower, lead)?;
    // "... is a bug" followed by a list that begins with 9 is not `bug 9`.
    if kind == SpanKind::Id && after.get(..at)?.contains('\n') {
        return None;
    }
    let number = after.get(at..at + digits)?;
    let wanted = match lower.as_str() {
        "exit" | "exits" | "exited" | "exitcode" => number != "0",
        "http" | "status" => digits == 3 && number.starts_with(['1', '2', '3', '4', '5']),
        "code" | "error" => number != "0" && (digits >= 3 || lower == "code"),
        "port" => (2..=5).contains(&digits),
        _ => digits <= most,
    };
    wanted.then_some((kind, word.len() + at + digits))
}

/// Returns the number after a keyword, with at most `words` words in between.
fn number_after(text: &str, keyword: &str, words: usize) -> Option<(usize, usize)> {
    let mut at = 0;
    for _ in 0..=words {
        let gap = gap(text.get(at..)?)?;
        at += gap;
        let rest = text.get(at..)?;
        let digits = rest.bytes().take(8).take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let end = rest.get(digits..)?.chars().next();
            let whole = end.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
                && !(end == Some('.')
                    && rest.get(digits + 1..)?.starts_with(|c: char| c.is_ascii_digit()));
            return (digits < 8 && whole).then_some((at, digits));
        }
        let letters = rest.bytes().take(8).take_while(u8::is_ascii_alphabetic).count();
        let word = rest.get(..letters)?.to_ascii_lowercase();
        let between = match keyword {
            "exit" | "exits" | "exited" => matches!(word.as_str(), "code" | "status" | "with"),
            "http" | "status" => matches!(word.as_str(), "status" | "code" | "error"),
            "error" => word == "code",
            _ => false,
        };
        if !between {
            return None;
        }
        at += letters;
    }
    None
}

/// Returns the length of spaces and a sign between a keyword and its number.
fn gap(text: &str) -> Option<usize> {
    let mut len = 0;
    for c in text.chars().take(4) {
        match c {
            ' ' | '=' | ':' | '#' | '_' | '(' | '"' | '：' | '\n' => len += c.len_utf8(),
            _ => return (len > 0).then_some(len),
        }
    }
    (len > 0).then_some(len)
}

/// Parses `Python 3.11`, `version 2.4`, `Node 18`.
fn version(word: &str, after: &str) -> Option<Phrase> {
    let rest = after.strip_prefix(' ')?;
    let lead = usize::from(rest.starts_with('v'));
    let digits =
        rest.bytes().skip(lead).take(16).take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let number = rest.get(lead..lead + digits)?.trim_end_matches('.');
    let end = rest.get(lead + number.len()..)?.chars().next();
    let proper = word.starts_with(|c: char| c.is_ascii_uppercase());
    let whole = end.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '%'));
    let named = number.contains('.') || (proper && (2..=3).contains(&number.len()) && word != "Go");
    (number.starts_with(|c: char| c.is_ascii_digit())
        && whole
        && named
        && number.split('.').all(|n| !n.is_empty()))
    .then_some((SpanKind::Id, word.len() + 1 + lead + number.len()))
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
