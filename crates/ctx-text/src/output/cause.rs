//! Finds the lines of an output that state why something failed.

use crate::pattern::pattern;
use crate::{WordList, collapsed};
use ctx_core::text::Slice;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::outcome::lines;

/// Beginnings of lines that end a panic message.
static ENDS: WordList = WordList::new("output.message_ends");

/// The number of lines after the error line that may belong to it.
const FOLLOWING: usize = 4;
/// A cause is truncated at a word beyond this many characters, to fit a line of a summary.
const LONGEST: usize = 300;

/// A line without any of these is not an error; most lines have none.
static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = WordList::new("output.error_signs");
    AhoCorasick::builder().ascii_case_insensitive(true).build(signs.iter()).ok()
});

/// Returns the cause of a failure in the words of its output: the error itself and its details (the
/// message of a panic, both sides of an assertion, the last of several causes), without the stack
/// and the summary of surrounding tools. Verbatim except for white space.
pub fn root_cause(output: &str) -> Option<String> {
    best(output).map(|(_, cause)| cause)
}

/// Returns the cause of a failure that the tool reports as success, if the output is unambiguous.
pub fn plain_cause(output: &str) -> Option<String> {
    best(output).filter(|(rank, _)| *rank >= 4).map(|(_, cause)| cause)
}

fn best(output: &str) -> Option<(u8, String)> {
    let signs = SIGNS.as_ref()?;
    if !signs.is_match(output) {
        return None;
    }
    let all: Vec<&str> = lines(output).collect();
    let mut best: Option<(u8, usize)> = None;
    let mut traced = false;
    let mut python = false;
    for (at, line) in all.iter().enumerate() {
        if line.trim_start().starts_with("Traceback (most recent call last)") {
            (traced, python) = (true, true);
            continue;
        }
        // The line below the frames of a traceback names the exception, whatever its type.
        let ends_trace = traced && !line.starts_with([' ', '\t']);
        traced &= !ends_trace;
        if !ends_trace && !signs.is_match(line) {
            continue;
        }
        let rank = if ends_trace { 4 } else { error_rank(line.trim()) };
        // Compilers print the cause first, Python last.
        let better = best.is_none_or(|(found, _)| rank > found || (python && rank == found));
        if rank > 0 && better {
            best = Some((rank, at));
        }
    }
    let (rank, at) = best?;
    let cause = with_following(&all, at);
    Some((rank, crate::clip(&cause, LONGEST).trim_end().to_owned()))
}

/// Joins the error line with the lines that complete it.
fn with_following(all: &[&str], at: usize) -> String {
    let first = all.get(at).map_or("", |line| line.trim());
    let rest = all.slice(at + 1..);
    let mut out = collapsed(first.strip_prefix("E   ").unwrap_or(first));
    let mut add = |line: &str| {
        out.push(' ');
        out.push_str(&collapsed(line));
    };
    if first.contains("panicked at ") || first.contains("assertion `") {
        let more = rest.iter().map(|line| line.trim());
        let more = more.take_while(|line| !ENDS.begins(line)).take(FOLLOWING);
        more.for_each(add);
    } else if first.starts_with("Expected: ") || first.starts_with("--- FAIL") {
        let detail = rest.first().filter(|line| line.starts_with([' ', '\t', 'R']));
        detail.into_iter().for_each(|line| add(line));
    } else if let Some(causes) = rest.iter().take(2).position(|line| line.trim() == "Caused by:") {
        let causes = rest.iter().skip(causes);
        let below = causes.clone().skip(1).take_while(|line| line.starts_with([' ', '\t'])).count();
        causes.take(1 + below).for_each(|line| add(line));
    }
    out
}

/// Whether a line is part of a log, or an error as programs print it.
pub(crate) fn is_logged(line: &str) -> bool {
    static LEVELS: WordList = WordList::new("output.log_levels");
    static STARTS: WordList = WordList::new("output.logged_starts");
    let line = line.trim_start();
    let mut words =
        line.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let stamped = line.trim_start_matches(['[', '(']).starts_with(|c: char| c.is_ascii_digit());
    let levels = words.by_ref().take(if stamped { 4 } else { 1 });
    let levelled = levels.into_iter().any(|word| LEVELS.contains(word));
    levelled || is_exception(line) || STARTS.begins(line)
}

fn error_rank(line: &str) -> u8 {
    static STARTS: WordList = WordList::new("output.error_starts");
    static PARTS: [(u8, WordList); 4] = [
        (4, WordList::new("output.errors")),
        (3, WordList::new("output.likely_errors")),
        (2, WordList::new("output.possible_errors")),
        (1, WordList::new("output.warnings")),
    ];
    let lower = line.to_lowercase();
    if lower.contains("panicked at ") || line.starts_with("E   ") || lower.starts_with("expected: ")
    {
        return 5;
    }
    if is_exception(line) || STARTS.begins(&lower) {
        return 4;
    }
    let found = PARTS.iter().find(|(_, parts)| parts.iter().any(|part| lower.contains(part)));
    found.map_or(0, |(rank, _)| *rank)
}

/// `TypeError: x`, `java.lang.IllegalStateException: x`, `Uncaught Error: x`.
fn is_exception(line: &str) -> bool {
    static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| pattern("exception"));
    (line.contains("Error:") || line.contains("Exception:")) && EXCEPTION.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_cause_is_one_line() {
        for (output, expected) in [
            (
                "   Compiling x\nerror[E0308]: mismatched types\n  --> src/a.rs:3:5\nerror: could not compile `x`",
                Some("error[E0308]: mismatched types"),
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: first\nDuring handling\nKeyError: 'x'",
                Some("KeyError: 'x'"),
            ),
            (
                "node:fs:443\n  return binding\n\nError: ENOENT: no such file or directory, open '/a'\n    at readFileSync (node:fs)",
                Some("Error: ENOENT: no such file or directory, open '/a'"),
            ),
            (
                "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nnpm ERR! code ELIFECYCLE",
                Some("src/a.ts(3,1): error TS2304: Cannot find name 'x'."),
            ),
            ("all fine", None),
        ] {
            assert_eq!(root_cause(output).as_deref(), expected);
        }
    }
}
