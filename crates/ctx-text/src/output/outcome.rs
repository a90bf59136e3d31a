//! Finds the decisive line of a program's output.

use ctx_core::Chars;
use ctx_core::text;
use ctx_core::text::Slice;

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
    let sums = || lines(output).map(str::trim).rev().take(60).filter(|line| is_sum(line));
    // One failing package matters more than the last passing one.
    sums().find(|line| says_failed(line)).or_else(|| sums().next())
}

fn is_sum(line: &str) -> bool {
    let lower = line.to_lowercase();
    let counted = lower.chars().any(|c| c.is_ascii_digit());
    (counted
        && ["passed", "failed", " passing", " failing", "tests:", "test result", "通过", "失败"]
            .iter()
            .any(|word| lower.contains(word)))
        || [
            "ok  \t",
            "fail\t",
            "--- fail",
            "build failed",
            "build succeeded",
            "compiled successfully",
        ]
        .iter()
        .any(|word| lower.starts_with(word))
        || ["0 issues", "no issues", "0 errors", "all checks passed", "found 0 ", "no errors"]
            .iter()
            .any(|word| lower.contains(word))
        || (lower.starts_with("finished ") && lower.contains("target(s)"))
        || (counted && lower.contains(" error") && lower.starts_with("found "))
        || lower == "pass"
        || lower == "fail"
}

/// Whether a line with totals reports a failure.
pub fn says_failed(line: &str) -> bool {
    let lower = line.to_lowercase();
    let zero =
        ["0 failed", "failed: 0", "0 failing", "0 errors", "no errors", "0 failures", "0 error"];
    let none = zero.iter().any(|word| {
        lower.find(word).is_some_and(|at| !lower[..at].ends_with(|c: char| c.is_ascii_digit()))
    });
    !none && ["fail", "error", "失败"].iter().any(|word| lower.contains(word))
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
