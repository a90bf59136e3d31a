//! Truncating a text in its middle.

use crate::text::{head, tail, word_end, word_start};
use crate::{Chars, Tokens};

use super::Counter;

impl Counter {
    /// Truncates `text` to at most `max` tokens by replacing its middle with `marker` on a line of
    /// its own. Two thirds of the kept text come from the beginning. If the marker does not fit,
    /// only the beginning is kept, and for zero tokens nothing. A text that fits is unchanged.
    #[must_use]
    pub fn truncate_middle(&self, text: &str, marker: &str, max: Tokens) -> String {
        self.truncate_by(text, marker, max, |first, last| (first, last))
    }

    /// Like [`Counter::truncate_middle`], but cuts between words, at [`word_end`] and
    /// [`word_start`].
    #[must_use]
    pub fn truncate_middle_words(&self, text: &str, marker: &str, max: Tokens) -> String {
        self.truncate_by(text, marker, max, |first, last| {
            let from = word_start(text, text.len() - last.len());
            (text[..word_end(text, first.len())].trim_end(), text[from..].trim_start())
        })
    }

    fn truncate_by<'t>(
        &self,
        text: &'t str,
        marker: &str,
        max: Tokens,
        trimmed: impl Fn(&'t str, &'t str) -> (&'t str, &'t str),
    ) -> String {
        if self.text(text) <= max {
            return text.to_owned();
        }
        let units = Chars::of(text).0;
        let with_marker = |keep: u32| {
            let first = keep / 3 * 2;
            let (start, end) = trimmed(head(text, Chars(first)), tail(text, Chars(keep - first)));
            format!("{start}\n{marker}\n{end}")
        };
        let cut = longest(units, |keep| self.text(&with_marker(keep)) <= max);
        if let Some(keep) = cut {
            return with_marker(keep);
        }
        let bare = longest(units, |keep| self.text(head(text, Chars(keep))) <= max);
        trimmed(head(text, Chars(bare.unwrap_or(0))), "").0.to_owned()
    }
}

/// Returns the largest `n <= most` for which `fits` returns true; `None` if it does not for 0.
/// Requires that `fits`, once false, stays false. With a vocabulary this is nearly true: the result
/// always fits, and is nearly the largest. The search gallops up from below, so its cost depends on
/// the result and not on `most`.
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

    #[test]
    fn a_cut_between_words_keeps_them_whole() {
        let text = "time comes in as an argument, from the edge: `now: u64`. 时间作为参数传入";
        let counter = Counter::default();
        let words: Vec<&str> = text.split_whitespace().collect();
        for max in 3..20 {
            let cut = counter.truncate_middle_words(text, "[...]", Tokens(max));
            assert!(counter.text(&cut) <= Tokens(max), "{max}: {cut}");
            let kept = cut.split_whitespace().filter(|word| *word != "[...]" && word.is_ascii());
            kept.for_each(|word| assert!(words.contains(&word), "{max}: {word}"));
        }
    }

    #[test]
    fn the_middle_is_removed_and_the_result_fits() {
        let counter = Counter::default();
        let text = "0123456789".repeat(100);
        for max in [0, 1, 3, 10, 100, 249, 250] {
            let cut = counter.truncate_middle(&text, "[cut]", Tokens(max));
            assert!(counter.text(&cut) <= Tokens(max), "{max}: {cut}");
        }
        let cut = counter.truncate_middle(&text, "[cut]", Tokens(20));
        assert!(cut.starts_with("01234") && cut.contains("\n[cut]\n") && cut.ends_with("789"));
        assert_eq!(counter.truncate_middle(&text, "[cut]", Tokens(250)), text);
    }
}
