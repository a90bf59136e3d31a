//! The lines of an output that are read, listings, stack frames, and rejected calls.

use std::sync::LazyLock;

use ctx_core::text::Slice;
use ctx_core::{Chars, text};
use regex::Regex;

use crate::WordList;
use crate::pattern::pattern;

/// Whether a line may be a part of a listing: a single word, a branch of a tree, `ls -l`.
pub(crate) fn is_listed(line: &str) -> bool {
    static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern("listed"));
    LISTED.is_match(line)
}

/// Whether a line is a stack frame.
pub fn is_frame(line: &str) -> bool {
    static FRAME: LazyLock<Regex> = LazyLock::new(|| pattern("frame"));
    FRAME.is_match(line)
}

/// Whether a stack frame is in library code.
pub fn is_foreign(line: &str) -> bool {
    static LIBRARIES: WordList = WordList::new("output.library_frames");
    LIBRARIES.is_in(line)
}

/// The lengths of an output's beginning and end that are read; totals are at the end.
const HEAD: Chars = Chars(40_000);
const TAIL: Chars = Chars(20_000);

/// Returns the lines of the beginning and the end of an output, without colours and overlong lines.
pub(super) fn lines(output: &str) -> impl Iterator<Item = &str> {
    let first = text::head(output, HEAD);
    let last = text::tail(output.slice(first.len()..), TAIL);
    first
        .lines()
        .chain(last.lines())
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && line.len() < 1_000)
}

/// Whether a tool result says that the user rejected the call, and quotes the user.
pub fn is_rejection(result: &str) -> bool {
    static STARTS: WordList = WordList::new("output.refusals");
    STARTS.begins(result)
}
