//! Cutting text without breaking characters.

use crate::{Chars, Counter, Tokens};

/// The longest beginning of `text` of at most `max` UTF-16 units. A surrogate pair is not split.
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

/// The longest end of `text` of at most `max` UTF-16 units. A surrogate pair is not split.
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

/// The longest beginning of `text` of at most `max` bytes. A character is not split.
#[must_use]
pub fn head_bytes(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Shortens `text` to at most `max` tokens by taking out its middle and putting `marker` there on
/// a line of its own. Two thirds of what stays are from the beginning. Where not even the marker
/// fits, the beginning alone is kept, and for zero tokens nothing. A text that fits comes back as
/// it is.
#[must_use]
pub fn without_middle(text: &str, marker: &str, max: Tokens, counter: &Counter) -> String {
    without_middle_by(text, marker, max, counter, |first, last| (first, last))
}

/// The same between words: what stays is whole words, by [`word_end`] and [`word_start`].
#[must_use]
pub fn without_middle_words(text: &str, marker: &str, max: Tokens, counter: &Counter) -> String {
    without_middle_by(text, marker, max, counter, |first, last| {
        let from = word_start(text, text.len() - last.len());
        (text[..word_end(text, first.len())].trim_end(), text[from..].trim_start())
    })
}

fn without_middle_by<'t>(
    text: &'t str,
    marker: &str,
    max: Tokens,
    counter: &Counter,
    trimmed: impl Fn(&'t str, &'t str) -> (&'t str, &'t str),
) -> String {
    if counter.text(text) <= max {
        return text.to_owned();
    }
    let units = Chars::of(text).0;
    let with_marker = |keep: u32| {
        let first = keep / 3 * 2;
        let (start, end) = trimmed(head(text, Chars(first)), tail(text, Chars(keep - first)));
        format!("{start}\n{marker}\n{end}")
    };
    let cut = longest(units, |keep| counter.text(&with_marker(keep)) <= max);
    if let Some(keep) = cut {
        return with_marker(keep);
    }
    let bare = longest(units, |keep| counter.text(head(text, Chars(keep))) <= max);
    trimmed(head(text, Chars(bare.unwrap_or(0))), "").0.to_owned()
}

/// A longer run of characters is cut as if it were no word: a hash, a blob.
const LONGEST_WORD: usize = 64;

/// The last place at or before byte `at` that is not inside a word. A word is what stands between
/// blanks; an ideograph is one by itself.
#[must_use]
pub fn word_end(text: &str, at: usize) -> usize {
    let at = head_bytes(text, at).len();
    let (before, after) = text.split_at(at);
    if after.starts_with(is_in_word) { at - word_bytes(before.chars().rev()) } else { at }
}

/// The first place at or after byte `at` that is not inside a word.
#[must_use]
pub fn word_start(text: &str, at: usize) -> usize {
    let at = (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (before, after) = text.split_at(at);
    if before.ends_with(is_in_word) { at + word_bytes(after.chars()) } else { at }
}

/// How long the word is that begins here; 0 for one that is too long.
fn word_bytes(chars: impl Iterator<Item = char>) -> usize {
    let word = chars.take_while(|c| is_in_word(*c)).take(LONGEST_WORD + 1);
    let (chars, bytes) = word.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.len_utf8()));
    if chars > LONGEST_WORD { 0 } else { bytes }
}

/// Whether a character is part of a word of several.
fn is_in_word(c: char) -> bool {
    let is_ideograph =
        matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..);
    !c.is_whitespace() && !is_ideograph
}

/// The largest `n <= most` for which `fits` holds, if it holds for 0 and, once false, stays false.
/// A vocabulary is only nearly monotonic; the answer always fits, and is then nearly the largest.
/// The search gallops up from below, so that its cost follows the answer and not `most`.
fn longest(most: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if !fits(0) {
        return None;
    }
    let mut good = 0u32;
    let mut step = 64u32;
    let mut bad = loop {
        let next = good.saturating_add(step).min(most);
        if !fits(next) {
            break next;
        }
        if next == most {
            return Some(most);
        }
        good = next;
        step = step.saturating_mul(2);
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CounterKind;

    #[test]
    fn ends_keep_whole_characters() {
        assert_eq!(head("a😀b", Chars(2)), "a");
        assert_eq!(head("a😀b", Chars(3)), "a😀");
        assert_eq!(tail("a😀b", Chars(2)), "b");
        assert_eq!(tail("ab", Chars(9)), "ab");
        let heads = [0, 1, 4, 5, 6, 9].map(|bytes| head_bytes("a😀b", bytes));
        assert_eq!(heads, ["", "a", "a", "a😀", "a😀b", "a😀b"]);
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
        let counter = Counter::new(CounterKind::Chars4);
        let words: Vec<&str> = text.split_whitespace().collect();
        for max in 3..20 {
            let cut = without_middle_words(text, "[...]", Tokens(max), &counter);
            assert!(counter.text(&cut) <= Tokens(max), "{max}: {cut}");
            let kept = cut.split_whitespace().filter(|word| *word != "[...]" && word.is_ascii());
            kept.for_each(|word| assert!(words.contains(&word), "{max}: {word}"));
        }
        let blob = "x".repeat(300);
        assert_eq!((word_end(&blob, 100), word_start(&blob, 100)), (100, 100));
    }

    #[test]
    fn the_middle_goes_and_the_result_fits() {
        let counter = Counter::new(CounterKind::Chars4);
        let text = "0123456789".repeat(100);
        for max in [0, 1, 3, 10, 100, 249, 250] {
            let cut = without_middle(&text, "[cut]", Tokens(max), &counter);
            assert!(counter.text(&cut) <= Tokens(max), "{max}: {cut}");
        }
        let cut = without_middle(&text, "[cut]", Tokens(20), &counter);
        assert!(cut.starts_with("01234") && cut.contains("\n[cut]\n") && cut.ends_with("789"));
        assert_eq!(without_middle(&text, "[cut]", Tokens(250), &counter), text);
    }
}
