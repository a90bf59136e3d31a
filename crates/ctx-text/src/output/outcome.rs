//! Finds the decisive line of a program's output.

use crate::WordList;
use ctx_core::text::Slice;
use ctx_core::{Chars, text};

/// The lengths of an output's beginning and end that are read; totals are at the end.
const HEAD: Chars = Chars(40_000);
const TAIL: Chars = Chars(20_000);

/// Returns the lines of the beginning and the end of an output, without colours and overlong lines.
pub(super) fn lines(output: &str) -> impl DoubleEndedIterator<Item = &str> {
    let first = text::head(output, HEAD);
    let last = text::tail(output.slice(first.len()..), TAIL);
    first
        .lines()
        .chain(last.lines())
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && line.len() < 1_000)
}

/// Returns the line with the totals of a test run, a compiler or a linter.
pub fn totals(output: &str) -> Option<&str> {
    let mut last = None;
    for line in lines(output).map(str::trim).rev().take(60).filter(|line| is_sum(line)) {
        // One failing package matters more than the last passing one.
        if says_failed(line) {
            return Some(line);
        }
        last = last.or(Some(line));
    }
    last
}

fn is_sum(line: &str) -> bool {
    // Words of totals with a number, beginnings of totals, and totals that need no number.
    static SUMS: WordList = WordList::new("output.sums");
    static STARTS: WordList = WordList::new("output.sum_starts");
    static IN_WORDS: WordList = WordList::new("output.sums_in_words");
    let lower = line.to_lowercase();
    let counted = lower.chars().any(|c| c.is_ascii_digit());
    (counted && SUMS.is_in(&lower))
        || STARTS.begins(&lower)
        || IN_WORDS.is_in(&lower)
        || (lower.starts_with("finished ") && lower.contains("target(s)"))
        || (counted && lower.contains(" error") && lower.starts_with("found "))
        || lower == "pass"
        || lower == "fail"
}

/// Whether a line with totals reports a failure.
pub fn says_failed(line: &str) -> bool {
    static ZERO: WordList = WordList::new("output.no_failures");
    let lower = line.to_lowercase();
    let none = ZERO.iter().any(|word| {
        lower.find(word).is_some_and(|at| !lower[..at].ends_with(|c: char| c.is_ascii_digit()))
    });
    !none && ["fail", "error", "失败"].iter().any(|word| lower.contains(word))
}

/// Whether a tool result says that the user rejected the call, and quotes the user.
pub fn is_rejection(result: &str) -> bool {
    static STARTS: WordList = WordList::new("output.refusals");
    STARTS.begins(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_found_and_understood() {
        for (output, line, failed) in [
            (
                "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored",
                "test result: ok. 3 passed; 0 failed; 0 ignored",
                false,
            ),
            (
                "test result: FAILED. 1 passed; 10 failed",
                "test result: FAILED. 1 passed; 10 failed",
                true,
            ),
            ("=== 2 failed, 5 passed in 0.3s ===", "=== 2 failed, 5 passed in 0.3s ===", true),
            ("ok  \tgithub.com/x/y\t0.3s", "ok  \tgithub.com/x/y\t0.3s", false),
        ] {
            assert_eq!(totals(output), Some(line));
            assert_eq!(says_failed(line), failed, "{line}");
        }
        assert_eq!(totals("nothing"), None);
    }
}
