//! Generated lines: listings and stack frames.

use std::sync::LazyLock;

use regex::Regex;

use crate::WordList;
use crate::pattern::pattern;

/// Whether a line may be a part of a listing: a single word, a branch of a tree, `ls -l`.
pub(crate) fn is_listed(line: &str) -> bool {
    static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern("listed"));
    LISTED.is_match(line)
}

/// Whether a line is data, not prose: JSON, a log with escaped line breaks, a tool call such as
/// `bash({"command":"ls"})`.
pub(crate) fn is_data(line: &str) -> bool {
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
    static LIBRARIES: WordList = WordList::new("output.library_frames");
    LIBRARIES.is_in(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_call_is_data() {
        assert!(is_data("bash({\"command\":\"echo we use MySQL\"})"));
        assert!(!is_data("We call bash({\"command\":\"ls\"}) here."));
    }
}
