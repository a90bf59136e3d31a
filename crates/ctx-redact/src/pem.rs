//! PEM blocks between `-----BEGIN` and `-----END`, even incomplete blocks. Private keys are
//! redacted. Public keys are not.

use ctx_core::text::tail_bytes;

use crate::span::{By, Spans};

/// The maximum length of a block: four times the largest RSA keys in use.
const LONGEST: usize = 64 << 10;

/// The minimum length of a line of a key, except the last.
const SHORTEST: usize = 16;

const END: &str = "-----END ";

/// Reads the block that begins at `start`. If its end is missing, everything that looks like its
/// body belongs to it.
pub(crate) fn read(text: &str, start: usize, spans: &mut Spans<'_>) {
    if start < spans.formed() {
        return;
    }
    if text.get(start..start + END.len()).is_some_and(|at| at.eq_ignore_ascii_case(END)) {
        return read_backwards(text, start, spans);
    }
    let Some(rest) = text.get(start + "-----BEGIN ".len()..) else { return };
    let bytes = rest.as_bytes();
    let label =
        bytes.iter().take(60).take_while(|b| b.is_ascii_alphanumeric() || **b == b' ').count();
    if !rest[label..].starts_with("-----") {
        return;
    }
    let private = rest[..label].contains("PRIVATE KEY");
    let body = label + 5;
    let window = &bytes[body..bytes.len().min(body + LONGEST)];
    let length = match memchr::memmem::find(window, b"-----") {
        Some(next) if window[next..].starts_with(END.as_bytes()) => {
            let rest = &window[next + 9..];
            let label = rest.iter().take(60).take_while(|b| **b != b'-' && **b != b'\n').count();
            let dashes = rest[label..].iter().take(5).take_while(|b| **b == b'-').count();
            next + 9 + label + dashes
        }
        next => length_without_end(&window[..next.unwrap_or(window.len())]),
    };
    let from = start + "-----BEGIN ".len() + body;
    let longest = window[..length]
        .split(|b| !(b.is_ascii_alphanumeric() || b"+/=".contains(b)))
        .map(<[u8]>::len)
        .max();
    // A block without a long line, such as one whose body is `...`, is an example.
    if longest.unwrap_or_default() < SHORTEST {
        return;
    }
    if private {
        spans.secret(start..from + length, By::Form, "private-key");
    } else {
        spans.public(start..from + length);
    }
}

/// Reads a private key backwards from its end, if its beginning is not in this text.
fn read_backwards(text: &str, start: usize, spans: &mut Spans<'_>) {
    let label = text[start + END.len()..].split_once("-----").map_or("", |(label, _)| label);
    if label.len() > 60 || !label.ends_with("PRIVATE KEY") {
        return;
    }
    let (mut at, mut from) = (start, start);
    let before = tail_bytes(&text[..start], LONGEST);
    // A line break may be escaped, as `\r\n`; its letter then begins the line.
    for line in before.rsplit(['\n', '\\']) {
        let end = line.trim_end().len();
        let is_base64 = |b: &&u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
        let length = line.as_bytes()[..end].iter().rev().take_while(is_base64).count();
        let begin = at - line.len();
        at = begin.saturating_sub(1);
        if line.trim().len() < 2 {
            continue;
        }
        if length == 0 || length < SHORTEST && from < start {
            break;
        }
        from = begin + end - length;
        // Text before the key on the same line is not part of it.
        if line.trim().len() > length {
            break;
        }
    }
    if start - from >= SHORTEST {
        spans.secret(from..start + END.len() + label.len() + 5, By::Form, "private-key");
    }
}

/// Returns the length of the base64 lines and headers that follow the first line.
fn length_without_end(body: &[u8]) -> usize {
    let mut length = 0;
    let mut last = 0;
    // A line break may be escaped, as `\n`, in JSON and in code.
    for (nth, line) in body.split_inclusive(|b| *b == b'\n').enumerate() {
        let mut whole = true;
        for part in line.split(|b| *b == b'\\' || *b == b'"' || *b == b'\'') {
            let part = part.trim_ascii();
            let part = part.strip_prefix(b"n").filter(|rest| rest.len() >= 16).unwrap_or(part);
            let part = match part {
                [b'+' | b'-' | b'>' | b'#' | b'*' | b'|', rest @ ..] if nth > 0 => {
                    rest.trim_ascii()
                }
                part => part,
            };
            let base64 = part.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b));
            let header = nth < 6 && part.contains(&b':') && part.len() < 100;
            let filler = part.len() < 3;
            if !(base64 || header || filler) {
                whole = false;
                break;
            }
        }
        if !whole {
            break;
        }
        length += line.len();
        if line.iter().filter(|b| b.is_ascii_alphanumeric()).count() >= 4 {
            last = length - line.iter().rev().take_while(|b| b.is_ascii_whitespace()).count();
        }
    }
    last
}
