//! Cutting text at character boundaries.

use std::ops::{Bound, RangeBounds};

use crate::Chars;

/// Slices by offsets that the caller has verified: found in the same text, or counted in it.
///
/// A wrong offset is a bug: it panics in debug builds, where tests and fuzzing detect it. Release
/// builds use the nearest valid offset before it, so that no text is lost.
pub trait Slice {
    /// Returns the part between two offsets.
    #[must_use]
    fn slice(&self, range: impl RangeBounds<usize>) -> &Self;
}

impl Slice for str {
    #[track_caller]
    fn slice(&self, range: impl RangeBounds<usize>) -> &Self {
        let (start, end) = offsets(&range, self.len());
        match self.get(start..end) {
            Some(part) => part,
            None => {
                debug_assert!(
                    false,
                    "invalid range {start}..{end} in a text of {} bytes",
                    self.len()
                );
                let head = head_bytes(self, end);
                head.split_at(head_bytes(head, start).len()).1
            }
        }
    }
}

impl<T> Slice for [T] {
    #[track_caller]
    fn slice(&self, range: impl RangeBounds<usize>) -> &Self {
        let (start, end) = offsets(&range, self.len());
        match self.get(start..end) {
            Some(part) => part,
            None => {
                debug_assert!(false, "invalid range {start}..{end} in {} items", self.len());
                let (head, _) = self.split_at(end.min(self.len()));
                head.split_at(start.min(head.len())).1
            }
        }
    }
}

fn offsets(range: &impl RangeBounds<usize>, length: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(end) => end.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => length,
    };
    (start, end)
}

/// Returns the longest prefix of `text` of at most `max` UTF-16 units, without splitting a pair.
#[must_use]
pub fn head(text: &str, max: Chars) -> &str {
    if text.len() <= max.0 as usize {
        return text;
    }
    let mut units = 0u32;
    for (at, c) in text.char_indices() {
        units += c.len_utf16() as u32;
        if units > max.0 {
            return &text[..at];
        }
    }
    text
}

/// Returns the longest suffix of `text` of at most `max` UTF-16 units, without splitting a pair.
#[must_use]
pub fn tail(text: &str, max: Chars) -> &str {
    if text.len() <= max.0 as usize {
        return text;
    }
    let mut units = 0u32;
    for (at, c) in text.char_indices().rev() {
        units += c.len_utf16() as u32;
        if units > max.0 {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Returns the first `max` characters of `text`.
#[must_use]
pub fn head_chars(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

/// Returns the first `max` characters of `text`, with `…` after them if more follow.
#[must_use]
pub fn clip(text: &str, max: usize) -> String {
    let head = head_chars(text, max);
    if head.len() < text.len() { format!("{head}…") } else { text.to_owned() }
}

/// Returns the longest prefix of `text` of at most `max` bytes. A character is not split.
#[must_use]
pub fn head_bytes(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the longest suffix of `text` of at most `max` bytes. A character is not split.
#[must_use]
pub fn tail_bytes(text: &str, max: usize) -> &str {
    let mut start = text.len().saturating_sub(max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// A longer run of characters is a hash or a blob rather than a word, and may be cut inside.
const LONGEST_WORD: usize = 64;

/// Returns the last offset at or before byte `at` that is not inside a word. Words are separated by
/// blanks; each ideograph is one word.
#[must_use]
pub fn word_end(text: &str, at: usize) -> usize {
    let at = head_bytes(text, at).len();
    let (before, after) = text.split_at(at);
    if after.starts_with(is_in_word) { at - word_bytes(before.chars().rev()) } else { at }
}

/// Returns the first offset at or after byte `at` that is not inside a word.
#[must_use]
pub fn word_start(text: &str, at: usize) -> usize {
    let at = text.len() - tail_bytes(text, text.len().saturating_sub(at)).len();
    let (before, after) = text.split_at(at);
    if before.ends_with(is_in_word) { at + word_bytes(after.chars()) } else { at }
}

/// Returns the length in bytes of the word that begins here; 0 if the word is too long.
fn word_bytes(chars: impl Iterator<Item = char>) -> usize {
    let word = chars.take_while(|c| is_in_word(*c)).take(LONGEST_WORD + 1);
    let (chars, bytes) = word.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.len_utf8()));
    if chars > LONGEST_WORD { 0 } else { bytes }
}

/// Whether a character can be part of a longer word.
fn is_in_word(c: char) -> bool {
    let is_ideograph =
        matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..);
    !c.is_whitespace() && !is_ideograph
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_offsets_return_the_exact_slice() {
        assert_eq!("añb".slice(1..3), "ñ");
        assert_eq!(["añb".slice(..), "añb".slice(3..=3), "añb".slice(4..)], ["añb", "b", ""]);
        assert_eq!([1, 2, 3].slice(1..), [2, 3]);
        assert!([0u8; 2].slice(2..).is_empty());
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "invalid range 2..9 in a text of 4 bytes")
    )]
    fn wrong_offsets_are_a_bug_that_loses_no_text() {
        assert_eq!("añb".slice(2..9), "ñb");
    }

    #[test]
    fn ends_keep_whole_characters() {
        assert_eq!(head("a😀b", Chars(2)), "a");
        assert_eq!(head("a😀b", Chars(3)), "a😀");
        assert_eq!(tail("a😀b", Chars(2)), "b");
        assert_eq!(tail("ab", Chars(9)), "ab");
        let heads = [0, 1, 4, 5, 6, 9].map(|bytes| head_bytes("a😀b", bytes));
        assert_eq!(heads, ["", "a", "a", "a😀", "a😀b", "a😀b"]);
        let tails = [0, 1, 4, 5, 6, 9].map(|bytes| tail_bytes("a😀b", bytes));
        assert_eq!(tails, ["", "b", "b", "😀b", "a😀b", "a😀b"]);
        let clipped = [0, 2, 3].map(|chars| clip("a😀b", chars));
        assert_eq!(clipped, ["…", "a😀…", "a😀b"]);
    }

    #[test]
    fn a_cut_between_words_keeps_them_whole() {
        let text = "time comes in as an argument, from the edge: `now: u64`. 时间作为参数传入";
        for at in 0..=text.len() {
            let (end, start) = (word_end(text, at), word_start(text, at));
            assert!(end <= at && start >= at, "{at}: {end} {start}");
            for place in [end, start] {
                let (before, after) = text.split_at(place);
                assert!(
                    !(before.ends_with(is_in_word) && after.starts_with(is_in_word)),
                    "{before}"
                );
            }
        }
        let blob = "x".repeat(300);
        assert_eq!((word_end(&blob, 100), word_start(&blob, 100)), (100, 100));
    }
}
