//! Generated lines: listings and stack frames.

use std::sync::LazyLock;

use regex::Regex;

use crate::WordList;
use crate::pattern::pattern;

static LIBRARIES: WordList = WordList::new("output.library_frames");

/// The number of consecutive lines of one kind that make a listing.
const LISTING: usize = 12;

/// Returns the parts of a text between its listings and logs.
pub fn prose_lines(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut run_start, mut run, mut at) = (0, 0, 0, 0);
    let close = |out: &mut Vec<_>, start: &mut usize, run_start, run, at| {
        if run >= LISTING {
            out.extend(text.get(*start..run_start).filter(|part| !part.is_empty()));
            *start = at;
        }
    };
    for line in text.split_inclusive('\n') {
        if LISTED.is_match(line) {
            if run == 0 {
                run_start = at;
            }
            run += 1;
        } else if !line.trim().is_empty() {
            close(&mut out, &mut start, run_start, run, at);
            run = 0;
        }
        at += line.len();
    }
    close(&mut out, &mut start, run_start, run, at);
    out.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    out
}

/// A part of a listing: a single word, a branch of a tree, `ls -l`.
static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern("listed"));

/// Whether a line is data, not prose: JSON, a log with escaped line breaks, a tool call such as
/// `bash({"command":"ls"})`.
pub fn is_data(line: &str) -> bool {
    let near = ctx_core::text::head(line, ctx_core::Chars(2_000));
    let call = near.split_once("({\"").is_some_and(|(name, _)| !name.contains(' '));
    call || near.matches("\":").count() >= 2 || near.matches("\\n").count() >= 2
}

/// Whether a line is a stack frame.
pub fn is_frame(line: &str) -> bool {
    static FRAME: LazyLock<Regex> = LazyLock::new(|| pattern("frame"));
    FRAME.is_match(line)
}

/// Whether a stack frame is in library code.
pub fn is_foreign(line: &str) -> bool {
    LIBRARIES.iter().any(|part| line.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_listing_is_passed_over_and_a_short_one_is_read() {
        let long: String = (0..20).map(|n| format!("src/file{n}.rs\n")).collect();
        assert_eq!(
            prose_lines(&format!("Look here:\n{long}So it is.")),
            ["Look here:\n", "So it is."]
        );
        let short = "Look at\nsrc/a.rs\nsrc/b.rs\n";
        assert_eq!(prose_lines(short), [short]);
        assert_eq!(prose_lines(""), [] as [&str; 0]);
    }

    #[test]
    fn a_tool_call_is_data() {
        assert!(is_data("bash({\"command\":\"echo we use MySQL\"})"));
        assert!(!is_data("We call bash({\"command\":\"ls\"}) here."));
    }
}
