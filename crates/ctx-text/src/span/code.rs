//! Recognises error codes, ids and names in code by the shape of one word.

use std::sync::LazyLock;

use regex::Regex;

use crate::pattern::pattern;
use crate::{SpanKind, WordList};

/// Parts before the slash in branch names.
pub(super) static BRANCH_PREFIXES: WordList = WordList::new("spans.branch_prefixes");
/// Mixed-case names of products and formats.
static BRANDS: WordList = WordList::new("spans.brands");
/// Error symbols of the C library and of operating systems.
static ERRNOS: WordList = WordList::new("spans.errnos");
/// Words that are often in backticks without being names.
static PLAIN_WORDS: WordList = WordList::new("spans.plain_words");
/// Names of standards, with a hyphen and a number.
static STANDARDS: WordList = WordList::new("spans.standards");
/// Top-level domains.
static TOP_DOMAINS: WordList = WordList::new("spans.top_domains");

static ERROR: LazyLock<Regex> = LazyLock::new(|| pattern("error"));
static ID: LazyLock<Regex> = LazyLock::new(|| pattern("id"));
static HASH: LazyLock<Regex> = LazyLock::new(|| pattern("hash"));
static TICKET: LazyLock<Regex> = LazyLock::new(|| pattern("ticket"));
static OPAQUE: LazyLock<Regex> = LazyLock::new(|| pattern("opaque"));
static CODE_NAME: LazyLock<Regex> = LazyLock::new(|| pattern("code_name"));
static DOTTED: LazyLock<Regex> = LazyLock::new(|| pattern("dotted"));
static CAMEL: LazyLock<Regex> = LazyLock::new(|| pattern("camel"));
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern("host"));
static COMMON_DOMAIN: LazyLock<Regex> = LazyLock::new(|| pattern("common_domain"));

/// The length of a UUID, which may be all letters.
const UUID: usize = 36;

/// Classifies a word by its shape.
pub(super) fn by_shape(word: &str, quoted: bool) -> Option<SpanKind> {
    if ERRNOS.contains(word) || may_be_error(word) && ERROR.is_match(word) {
        return Some(SpanKind::ErrorCode);
    }
    if is_id(word) {
        return Some(SpanKind::Id);
    }
    let is_name = is_code_name(word) || (quoted && is_quoted_name(word));
    is_name.then_some(SpanKind::CodeName)
}

/// Whether a word begins and ends as an error may. Like the tests beside the other expressions, it is
/// made because they are slow, and most words match none.
fn may_be_error(word: &str) -> bool {
    let ends = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    word.ends_with("Error")
        || word.ends_with("Exception")
        || word.starts_with("0x8")
        || word.starts_with(|c: char| c.is_ascii_uppercase()) && word.ends_with(ends)
}

/// Whether a word is an address without a scheme: `example.com/a`, `www.example.com`.
pub(super) fn is_host(word: &str) -> bool {
    if !word.contains('.') {
        return false;
    }
    let Some(found) = HOST.captures(word) else { return false };
    let (_, [name, top, rest]) = found.extract();
    TOP_DOMAINS.contains(top)
        && has_letter(name)
        && (name.contains('.') || rest.contains('/') || COMMON_DOMAIN.is_match(top))
        && !matches!(name, "self" | "this")
}

fn is_id(word: &str) -> bool {
    if let Some((first, rest)) = word.split_once('/')
        && BRANCH_PREFIXES.contains(first)
    {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b"-_/.#".contains(&b);
        return !rest.is_empty() && rest.bytes().all(is_part);
    }
    let may_be_id =
        word.len() == UUID || word.bytes().any(|b| b.is_ascii_digit() || matches!(b, b'#' | b'@'));
    may_be_id && ID.is_match(word) || is_hash(word) || is_ticket(word) || is_opaque(word)
}

/// Whether a word is hexadecimal with letters and digits, at least as long as git's short hashes.
fn is_hash(word: &str) -> bool {
    let word = word.strip_prefix("sha256:").unwrap_or(word);
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    (1..word.len()).contains(&letters)
        && HASH.is_match(word)
        // `1000000b` is a number.
        && !(letters == 1 && word.len() < 12 && word.ends_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_ticket(word: &str) -> bool {
    let Some((_, rest)) = word.split_once('-') else { return false };
    let digits = count_digits(rest);
    word.len() <= 64
        && digits > 0
        && TICKET.is_match(word)
        && !STANDARDS.contains(&word.to_ascii_lowercase())
}

fn is_opaque(word: &str) -> bool {
    let last = word.rsplit(['_', '-']).next().unwrap_or(word);
    let digits = count_digits(last);
    last.len() >= 8 && digits >= 3 && last.len() - digits >= 2 && OPAQUE.is_match(word)
}

/// `retry_after`, `getUser`, `UserService`, `std::fs::read`, `--no-verify`, `login()`, `$HOME`.
fn is_code_name(word: &str) -> bool {
    if word.len() > 100 {
        return false;
    }
    let may_be_code =
        word.starts_with(['-', '$', '@']) || word.ends_with("()") || word.contains("::");
    if may_be_code && CODE_NAME.is_match(word) {
        return true;
    }
    let inner = word.trim_matches('_');
    let last = word.rsplit('.').next().unwrap_or(word);
    let is_joined = inner.contains('_') && !inner.contains("__")
        || word.starts_with("__") && word.ends_with("__");
    let is_camel = last.len() >= 4
        && last.bytes().any(|b| b.is_ascii_uppercase())
        && CAMEL.is_match(last)
        && !BRANDS.contains(&word.to_ascii_lowercase());
    (inner.len() >= 3 && is_joined || is_camel) && has_letter(word) && DOTTED.is_match(word)
}

/// Whether a word counts as a name because it is in backticks.
fn is_quoted_name(word: &str) -> bool {
    (2..=100).contains(&word.len())
        && !PLAIN_WORDS.contains(word)
        && has_letter(word)
        && word.bytes().all(|b| b.is_ascii_graphic())
}

fn has_letter(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_alphabetic())
}

fn count_digits(word: &str) -> usize {
    word.bytes().filter(u8::is_ascii_digit).count()
}
