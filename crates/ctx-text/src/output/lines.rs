//! Generated lines: listings and stack frames.

use crate::WordList;

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
        if is_listed(line) {
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

/// Whether a line looks like part of a listing: a single word, a branch of a tree, `ls -l`, grep.
fn is_listed(line: &str) -> bool {
    let bare = line.trim().trim_start_matches(['├', '└', '│', '─', ' ', '\u{a0}']);
    if bare.is_empty() {
        return false;
    }
    if bare.len() < line.trim().len() {
        return true;
    }
    let mut words = bare.split_whitespace();
    let first = words.next().unwrap_or_default();
    let single = words.next().is_none();
    let mode = first.len() == 10
        && first.starts_with(['-', 'd', 'l'])
        && first.bytes().skip(1).all(|b| matches!(b, b'r' | b'w' | b'x' | b'-' | b's' | b't'));
    (single && first.is_ascii()) || mode
}

/// Whether a line is data, not prose: JSON, a log with escaped line breaks, a tool call such as
/// `bash({"command":"ls"})`.
pub fn is_data(line: &str) -> bool {
    let near = ctx_core::text::head(line, ctx_core::Chars(2_000));
    let call = near.split_once("({\"").is_some_and(|(name, _)| !name.contains(' '));
    call || near.matches("\":").count() >= 2 || near.matches("\\n").count() >= 2
}

/// Whether a line is a stack frame.
pub fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let numbered =
        line.trim_start_matches('#').split_once([':', ' ']).is_some_and(|(number, rest)| {
            !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit())
                && (line.starts_with('#')
                    || rest.trim_start().starts_with("0x")
                    || rest.contains("::"))
        });
    line.starts_with("at ")
        || line.starts_with("File \"")
        || line.starts_with("from /")
        || (line.starts_with("goroutine ") && line.contains('['))
        || numbered
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
