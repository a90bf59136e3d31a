//! Blocks between `-----BEGIN` and `-----END`: private keys go, public ones are no secret.

use super::span::{By, Spans};

/// The longest block. The largest RSA keys that are in use have a quarter of this.
const LONGEST: usize = 64 << 10;

/// Reads the block that begins at `start`. One without an end is cut off: what looks like its body
/// belongs to it.
pub(super) fn read(text: &str, start: usize, spans: &mut Spans<'_>) {
    if start < spans.formed() {
        return;
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
        Some(next) if window[next..].starts_with(b"-----END ") => {
            let rest = &window[next + 9..];
            let label = rest.iter().take(60).take_while(|b| **b != b'-' && **b != b'\n').count();
            let dashes = rest[label..].iter().take(5).take_while(|b| **b == b'-').count();
            next + 9 + label + dashes
        }
        next => torn(&window[..next.unwrap_or(window.len())]),
    };
    let from = start + "-----BEGIN ".len() + body;
    let longest = window[..length]
        .split(|b| !(b.is_ascii_alphanumeric() || b"+/=".contains(b)))
        .map(<[u8]>::len)
        .max();
    // Three dots between the two lines are an example.
    if longest.unwrap_or_default() < 16 {
        return;
    }
    if private {
        spans.secret(start..from + length, By::Form, "private-key");
    } else {
        spans.public(start..from + length);
    }
}

/// How much of what follows the first line is lines of base64, and headers before them.
fn torn(body: &[u8]) -> usize {
    let mut length = 0;
    let mut last = 0;
    // A line break may be written as `\n`, in JSON and in code.
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
