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

/// Shortens `text` to at most `max` tokens by taking out its middle and putting `marker` there on
/// a line of its own. Two thirds of what stays are from the beginning. Where not even the marker
/// fits, the beginning alone is kept, and for zero tokens nothing. A text that fits comes back as
/// it is.
#[must_use]
pub fn without_middle(text: &str, marker: &str, max: Tokens, counter: &Counter) -> String {
    if counter.text(text) <= max {
        return text.to_owned();
    }
    let units = Chars::of(text).0;
    let with_marker = |keep: u32| {
        let first = keep / 3 * 2;
        let (start, end) = (head(text, Chars(first)), tail(text, Chars(keep - first)));
        format!("{start}\n{marker}\n{end}")
    };
    let cut = longest(units, |keep| counter.text(&with_marker(keep)) <= max);
    if let Some(keep) = cut {
        return with_marker(keep);
    }
    let bare = longest(units, |keep| counter.text(head(text, Chars(keep))) <= max);
    head(text, Chars(bare.unwrap_or(0))).to_owned()
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
