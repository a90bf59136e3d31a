//! Long words that look like secrets, where nothing says what they are.
//!
//! What nothing explains and mixes capitals, small letters and digits as chance does is taken out.
//! Hexadecimal words are nearly always digests, so they need a word before them that tells of a
//! secret. Long stretches of base64 are pictures and files.

use super::judge::{bits, changes, is_hex, is_random};
use super::key::Told;
use super::span::{By, Spans, ceil};
use super::table::Table;

/// What is shorter is left alone: names, ids, abbreviated hashes.
const SHORTEST: usize = 32;

/// What is longer is content, unless a word before it says otherwise.
const CONTENT: usize = 200;

/// And what is longer than this is content in any case.
const LONGEST: usize = 1024;

/// How much of the line before a word is looked at.
const BEFORE: usize = 120;

/// How base64 begins of files that are often inlined: PNG, JPEG, GIF, WebP, SVG, PDF, icons,
/// fonts, gzip, zip, WebAssembly, executables; and of what is public of SSH and X.509.
const CONTENT_STARTS: [&str; 21] = [
    "iVBORw0KGgo",
    "/9j/",
    "R0lGOD",
    "UklGR",
    "PHN2Zy",
    "PD94b",
    "JVBERi0",
    "AAABAA",
    "d09GRg",
    "d09GMg",
    "H4sI",
    "UEsDB",
    "AGFzbQ",
    "TVqQ",
    "AAAAB3NzaC1",
    "AAAAC3NzaC1",
    "AAAAE2VjZHNh",
    "MII",
    "MFkw",
    "LS0tLS1CRUdJTiBDRVJU",
    "f0VMR",
];

/// Adds the long words of a text that look like secrets.
pub(super) fn find(text: &str, table: &Table, spans: &mut Spans<'_>) {
    let bytes = text.as_bytes();
    let settled = spans.settled();
    let mut next = 0;
    let mut at = 0;
    // The word before, to know the lines of a block of base64.
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
            spans.secret(start..end, By::Looks, "secret");
        }
    }
    spans.sort();
}

fn belongs(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-')
}

/// Whether a word stands alone on the line after another as long: a block of base64 or of hex.
fn is_next_line(bytes: &[u8], before: (usize, usize), word: (usize, usize)) -> bool {
    let between = bytes.get(before.1..word.0).unwrap_or_default();
    before.1 - before.0 + 1 >= word.1 - word.0
        && between.len() <= 40
        && between.iter().filter(|b| **b == b'\n').count() == 1
        && between.iter().all(|b| b"\n\r\t >*#|\"',\\=".contains(b))
}

/// Whether a line of the same length follows.
fn begins_block(bytes: &[u8], word: (usize, usize)) -> bool {
    let length = word.1 - word.0;
    let rest = bytes.get(word.1..(word.1 + length + 60).min(bytes.len())).unwrap_or_default();
    let gap = rest.iter().take(40).take_while(|b| b"\n\r\t >*#|\"',\\=".contains(b)).count();
    let between = rest.get(..gap).unwrap_or_default();
    let next = rest.get(gap..).unwrap_or_default().iter().take_while(|b| belongs(**b)).count();
    length >= 60 && between.iter().filter(|b| **b == b'\n').count() == 1 && next >= length
}

fn is_secret(text: &str, start: usize, word: &str, table: &Table) -> bool {
    let bare = word.trim_start_matches(['-', '_', '/', '+']);
    if bare.len() < SHORTEST
        || bare.len() > LONGEST
        || CONTENT_STARTS.iter().any(|s| word.starts_with(s))
    {
        return false;
    }
    // The names of functions in a binary.
    if bare.starts_with("ZN") && word.starts_with('_') {
        return false;
    }
    let mixed = is_mixed(bare);
    if !mixed && (bare.contains('/') || !is_random(bare)) {
        return false;
    }
    let line = line_before(text, start);
    // Part of an address: what a page is called is no secret, what opens it stands in its query.
    let joined = line.rsplit([' ', '\t', '"', '\'', '(', '<']).next().unwrap_or_default();
    if joined.contains("://") || joined.contains("www.") {
        return false;
    }
    let told = tells(line, table);
    if told == Some(false) || (is_cid(bare) && told.is_none()) {
        return false;
    }
    if bare.len() > CONTENT || !mixed {
        let dashes = bare.bytes().filter(|b| *b == b'-').count();
        return told == Some(true) && (dashes == 0 || mixed);
    }
    true
}

/// What stands before a place on its line.
fn line_before(text: &str, start: usize) -> &str {
    let from = ceil(text, start.saturating_sub(BEFORE));
    let before = text.get(from..start).unwrap_or_default();
    before.rsplit('\n').next().unwrap_or_default()
}

/// Whether the nearest word that tells anything tells of a secret. A digest is one wherever on the
/// line it is called so.
fn tells(line: &str, table: &Table) -> Option<bool> {
    let mut nearest = None;
    for found in table.context.find_iter(line) {
        match table.words.told(found.pattern().as_usize()) {
            Told::Digest => return Some(false),
            told => nearest = Some(told == Told::Secret),
        }
    }
    nearest
}

/// Capitals, small letters and digits as chance mixes them, and no words between slashes.
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

/// The address of a file in IPFS.
fn is_cid(word: &str) -> bool {
    (word.starts_with("Qm") && word.len() == 46) || word.starts_with("bafy")
}
