//! Generated lines: listings and stack frames.

use std::sync::LazyLock;

use regex::Regex;

use crate::WordList;
use crate::pattern::pattern;
use crate::span::is_on_windows;

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
    call || near.matches("\":").count() >= 2 || escaped_breaks(near) >= 2
}

/// Counts the escaped line breaks of a text: `a\nb`. Those in a path of Windows are none: `C:\net\new`.
pub(crate) fn escaped_breaks(text: &str) -> usize {
    // `\s` is an escape in no text.
    let is_escape =
        |rest: &str| rest.is_empty() || rest.starts_with(['n', 'r', 't', 'b', 'f', 'u', '"', '/']);
    let breaks = |word: &str| {
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric() && !"\\%.".contains(c));
        let is_path = is_on_windows(word) || word.split('\\').skip(1).any(|rest| !is_escape(rest));
        if is_path { 0 } else { word.matches("\\n").count() }
    };
    if text.contains("\\n") { text.split_whitespace().map(breaks).sum() } else { 0 }
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

    #[test]
    fn a_path_has_no_line_breaks() {
        for (text, breaks) in [
            (r"error: no such file\nin main\\nend", 2),
            (r"`C:\net\new.txt`, (..\node\n.rs) and \\nas\new", 0),
            (r"C:\Users\Ann Lee\src\net\notes.md and a\nb", 1),
            ("net and node", 0),
        ] {
            assert_eq!(escaped_breaks(text), breaks, "{text}");
        }
        assert!(!is_data(r"Copy C:\net\new.txt to D:\net\new.txt."));
    }
}
