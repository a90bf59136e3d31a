//! Splits files into chunks.

use ctx_core::text::{Slice, head};
use std::ops::Range;

use ctx_core::{Chars, Counter, Tokens};
use serde::{Deserialize, Serialize};

/// The first and the last line of a chunk, counted from 1; a pair in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineRange(pub(super) u32, pub(super) u32);

/// Consecutive lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub(super) lines: LineRange,
    pub(super) text: &'a str,
}

/// Splits a text into chunks, as [`ranges`] does.
pub(super) fn chunks<'a>(text: &'a str, most: Tokens, counter: &Counter) -> Vec<Chunk<'a>> {
    let all = ranges(text, most, counter).into_iter();
    all.map(|(lines, at)| Chunk { lines, text: text.get(at).unwrap_or_default() }).collect()
}

/// Returns the ranges of the chunks of a text, each of at most `most` tokens, cut between lines. A
/// longer line is split into several chunks. Blank chunks are dropped.
pub(super) fn ranges(
    text: &str,
    most: Tokens,
    counter: &Counter,
) -> Vec<(LineRange, Range<usize>)> {
    let mut chunks = Vec::new();
    let mut put = |from: usize, to: usize, lines: LineRange| {
        let text = text.slice(from..to);
        if !text.trim().is_empty() {
            chunks.push((lines, from..to));
        }
    };
    // The start of the open chunk, its first line, and its tokens so far.
    let (mut from, mut first, mut used) = (0, 1, Tokens::ZERO);
    let (mut at, mut number) = (0, 0);
    for line in text.split_inclusive('\n') {
        number += 1;
        let end = at + line.len();
        // A line counted alone is rounded up, so the lines together never exceed the sum.
        let tokens = counter.text(line);
        if used + tokens > most && from < at {
            put(from, at, LineRange(first, number - 1));
            (from, first, used) = (at, number, Tokens::ZERO);
        }
        if tokens > most {
            for part in parts(line, most, counter) {
                put(at, at + part.len(), LineRange(number, number));
                at += part.len();
            }
            (from, first, used) = (end, number + 1, Tokens::ZERO);
        } else {
            used += tokens;
        }
        at = end;
    }
    put(from, at, LineRange(first, number));
    chunks
}

/// Splits a line that is too long.
fn parts<'a>(line: &'a str, most: Tokens, counter: &Counter) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let mut chars = most.0.saturating_mul(4).max(2);
        let mut part = head(rest, Chars(chars));
        while counter.text(part) > most && chars > 2 {
            chars = (chars / 2).max(2);
            part = head(rest, Chars(chars));
        }
        // Any character fits into two units, so a part is never empty.
        let length = part.len().max(1);
        let Some((part, after)) = rest.split_at_checked(length) else { break };
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use ctx_core::CounterKind;

    use super::*;

    fn of(text: &str, most: u32) -> Vec<Chunk<'_>> {
        chunks(text, Tokens(most), &Counter::new(CounterKind::Chars4))
    }

    #[test]
    fn chunks_end_with_lines_and_make_up_the_text() {
        let text: String = (1..=100).map(|n| format!("line {n} of a hundred\n")).collect();
        let chunks = of(&text, 64);
        assert_eq!(chunks.iter().map(|chunk| chunk.text).collect::<String>(), text);
        let mut next = 1;
        for chunk in &chunks {
            assert_eq!(chunk.lines.0, next);
            assert!(chunk.text.starts_with(&format!("line {next} ")), "{chunk:?}");
            assert!(Counter::default().text(chunk.text) <= Tokens(64));
            next = chunk.lines.1 + 1;
        }
        assert_eq!(next, 101);
        assert!(chunks.len() < 15, "chunks are filled: {}", chunks.len());
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_keeps_its_number() {
        let long = "图".repeat(5_000);
        let text = format!("a\n{long}\nb\nc");
        for kind in [CounterKind::Chars4, CounterKind::Cjk] {
            let counter = Counter::new(kind);
            let chunks = chunks(&text, Tokens(100), &counter);
            // A remaining line break alone is not a chunk.
            let all: String = chunks.iter().map(|chunk| chunk.text).collect();
            assert_eq!(all.replace('\n', ""), text.replace('\n', ""));
            assert_eq!((chunks[0].lines, chunks[1].lines), (LineRange(1, 1), LineRange(2, 2)));
            assert_eq!(chunks.last().unwrap().lines, LineRange(3, 4));
            assert!(chunks.iter().all(|chunk| counter.text(chunk.text) <= Tokens(100)));
        }
    }

    #[test]
    fn a_blank_text_has_no_chunks() {
        for text in ["", "\n\n\n", "  \n\t"] {
            assert_eq!(of(text, 512), [], "{text:?}");
        }
        assert_eq!(of("one", 512)[0].lines, LineRange(1, 1));
        assert_eq!(of("one\r\ntwo\r\n", 512)[0].lines, LineRange(1, 2));
    }
}
