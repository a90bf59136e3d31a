//! Long words that look like secrets, without a name or form that identifies them.
//!
//! A word that mixes capitals, small letters and digits at random is redacted unless its context
//! shows that it is not a secret. Hexadecimal words are nearly always digests, so they are redacted
//! only after a word that indicates a secret. Long runs of base64 are images and files.

use crate::check::{bits, changes, is_hex, is_random};
use crate::name::FieldHint;
use crate::span::{By, Spans};
use crate::table::Table;
use ctx_core::text::{Slice, tail_bytes};
use ctx_text::WordList;

/// Shorter words are ignored: names, ids, abbreviated hashes.
const SHORTEST: usize = 32;

/// Longer words are content, unless a word before indicates a secret.
const CONTENT: usize = 200;

/// Longer words are always content.
const LONGEST: usize = 1024;

/// The maximum number of bytes examined before a word, on its line.
const BEFORE: usize = 120;

/// The base64 beginnings of files that are often inlined: PNG, JPEG, GIF, WebP, SVG, PDF, icons,
/// fonts, gzip, zip, WebAssembly, executables; and of public SSH and X.509 data.
static CONTENT_STARTS: WordList = WordList::new("base64_starts");

/// Adds the long words of a text that look like secrets.
pub(crate) fn find(text: &str, table: &Table, spans: &mut Spans<'_>) {
    let bytes = text.as_bytes();
    let settled = spans.settled();
    let mut next = 0;
    let mut at = 0;
    // The previous word, to recognise the lines of a block of base64.
    let mut last: Option<(usize, usize)> = None;
    while at < bytes.len() {
        if !belongs(bytes[at]) {
            at += 1;
            continue;
        }
        let length = bytes[at..].iter().take_while(|b| belongs(**b)).count();
        let (start, end) = (at, at + length);
        at = end + 1;
        if length < SHORTEST {
            continue;
        }
        let block = last.is_some_and(|before| is_next_line(bytes, before, (start, end)))
            || begins_block(bytes, (start, end));
        last = Some((start, end));
        while settled.get(next).is_some_and(|range| range.end <= start) {
            next += 1;
        }
        let known = settled.get(next).is_some_and(|range| range.start < end);
        if !known
            && !block
            && let Some(word) = text.get(start..end)
            && is_secret(text, start, word, table)
        {
            let end = end + bytes[end..].iter().take(2).take_while(|b| **b == b'=').count();
            spans.secret(start..end, By::Entropy, "secret");
        }
    }
    spans.sort();
}

fn belongs(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-')
}

/// Whether a word is the next line of a block of base64 or hex: it is at most one byte longer than
/// the previous line.
fn is_next_line(bytes: &[u8], before: (usize, usize), word: (usize, usize)) -> bool {
    let between = bytes.slice(before.1..word.0);
    before.1 - before.0 + 1 >= word.1 - word.0
        && between.len() <= 40
        && between.iter().filter(|b| **b == b'\n').count() == 1
        && between.iter().all(|b| b"\n\r\t >*#|\"',\\=".contains(b))
}

/// Whether a long word begins such a block: the next line is at least as long.
fn begins_block(bytes: &[u8], word: (usize, usize)) -> bool {
    let length = word.1 - word.0;
    let rest = bytes.slice(word.1..(word.1 + length + 60).min(bytes.len()));
    let gap = rest.iter().take(40).take_while(|b| b"\n\r\t >*#|\"',\\=".contains(b)).count();
    let between = rest.slice(..gap);
    let next = rest.slice(gap..).iter().take_while(|b| belongs(**b)).count();
    length >= 60 && between.iter().filter(|b| **b == b'\n').count() == 1 && next >= length
}

fn is_secret(text: &str, start: usize, word: &str, table: &Table) -> bool {
    let bare = word.trim_start_matches(['-', '_', '/', '+']);
    if bare.len() < SHORTEST || bare.len() > LONGEST || CONTENT_STARTS.begins(word) {
        return false;
    }
    // A mangled C++ or Rust symbol.
    if bare.starts_with("ZN") && word.starts_with('_') {
        return false;
    }
    let mixed = is_mixed(bare);
    if !mixed && (bare.contains('/') || !is_random(bare)) {
        return false;
    }
    let line = line_before(text, start);
    // Part of a URL: a path is not a secret, and a query parameter is found by its name.
    let joined = line.rsplit([' ', '\t', '"', '\'', '(', '<']).next().unwrap_or_default();
    if joined.contains("://") || joined.contains("www.") {
        return false;
    }
    let hint = context_hint(line, table);
    if hint == Some(false) || (is_cid(bare) && hint.is_none()) {
        return false;
    }
    if bare.len() > CONTENT || !mixed {
        let dashes = bare.bytes().filter(|b| *b == b'-').count();
        return hint == Some(true) && (dashes == 0 || mixed);
    }
    true
}

/// Returns the text before a position on its line.
fn line_before(text: &str, start: usize) -> &str {
    let before = tail_bytes(text.slice(..start), BEFORE);
    before.rsplit('\n').next().unwrap_or_default()
}

/// Whether the nearest context word indicates a secret. A word for a digest anywhere on the line
/// takes precedence.
fn context_hint(line: &str, table: &Table) -> Option<bool> {
    let mut nearest = None;
    for found in table.context.find_iter(line) {
        match table.words.hint(found.pattern().as_usize()) {
            FieldHint::Digest => return Some(false),
            hint => nearest = Some(hint == FieldHint::Secret),
        }
    }
    nearest
}

/// Whether capitals, small letters and digits are mixed at random, without words between slashes.
fn is_mixed(word: &str) -> bool {
    let any = |class: fn(&u8) -> bool| word.bytes().filter(class).count();
    let lower_words = word
        .split(['/', '-', '_', '+'])
        .filter(|part| part.len() >= 4 && part.bytes().all(|b| b.is_ascii_lowercase()))
        .count();
    any(u8::is_ascii_digit) >= 2
        && any(u8::is_ascii_uppercase) >= 3
        && any(u8::is_ascii_lowercase) >= 3
        && lower_words == 0
        && !is_hex(word)
        && changes(word) > 0.4
        && bits(word) > 3.9
}

/// Whether it is an IPFS content id.
fn is_cid(word: &str) -> bool {
    (word.starts_with("Qm") && word.len() == 46) || word.starts_with("bafy")
}
