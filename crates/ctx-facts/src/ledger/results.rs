//! Required facts of a tool result: errors at their root cause, and ids of what was created.

use ctx_text::{Span, SpanKind, WordList, spans};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use ctx_core::ToolResult;

use ctx_text::output::{is_foreign, is_frame};

/// The number of lines examined at each end of an output. Errors are at its end, or at its start.
const LINES: usize = 150;
/// The maximum number of different errors of one result that are facts.
const MOST_ERRORS: usize = 3;
const LONGEST_LINE: usize = 600;

static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs = WordList::new("output.signs");
    AhoCorasick::builder().ascii_case_insensitive(true).build(signs.iter()).ok()
});

/// Returns the tokens of a result that are facts, as kind and text.
pub(super) fn of_result(result: &ToolResult, command: Option<&str>) -> Vec<(SpanKind, String)> {
    let text = result.plain_text();
    let mut out = Vec::new();
    if let Some(command) = command {
        made(command, &text, &mut out);
    }
    let shows = command.is_some_and(only_shows);
    if result.is_error || (command.is_some() && !shows) {
        errors(&text, &mut out);
    }
    out
}

/// Whether a command prints file contents, so that errors in its output are not its own.
pub(super) fn only_shows(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| word.contains('=')).peekable();
    if words.peek() == Some(&"cd") {
        let after = command.split_once("&&").map_or("", |(_, rest)| rest);
        return shows(after.split_whitespace());
    }
    shows(words)
}

/// Whether the first of these words is a program that prints file contents.
fn shows<'a>(mut words: impl Iterator<Item = &'a str>) -> bool {
    static SHOW: WordList = WordList::new("command.shows");
    match words.next().unwrap_or_default() {
        "git" => matches!(words.next(), Some("diff" | "show" | "log" | "grep" | "blame")),
        first => SHOW.contains(first),
    }
}

/// Adds the ids of what a command created: a commit, a pull request.
fn made(command: &str, text: &str, out: &mut Vec<(SpanKind, String)>) {
    if command.contains("gh ") || command.contains("git push") {
        let urls = text.lines().take(20).flat_map(spans).filter(|t| t.kind == SpanKind::Url);
        let made = urls.filter(|t| {
            ["/pull/", "/issues/", "/merge_requests/", "/runs/"]
                .iter()
                .any(|part| t.text.contains(part))
        });
        out.extend(made.take(3).map(|t| (t.kind, t.text.to_owned())));
    }
}

/// Adds error codes, and the first location in the project's own code. Of a stack trace, only the
/// root cause counts: frames are skipped.
fn errors(text: &str, out: &mut Vec<(SpanKind, String)>) {
    let Some(signs) = SIGNS.as_ref() else { return };
    let mut codes: Vec<String> = Vec::new();
    let mut place: Option<String> = None;
    for line in ends_of(text) {
        if line.len() > LONGEST_LINE {
            continue;
        }
        let framed = is_frame(line);
        if !framed && !signs.is_match(line) {
            continue;
        }
        let found: Vec<Span<'_>> = spans(line);
        if !framed {
            let errors = found.iter().filter(|t| t.kind == SpanKind::ErrorCode);
            for error in errors {
                if !codes.iter().any(|code| code == error.text) {
                    codes.push(error.text.to_owned());
                }
            }
        }
        if !codes.is_empty() && place.is_none() && !is_foreign(line) {
            let path = found.iter().find(|t| t.kind == SpanKind::Path && t.text.contains(':'));
            place = path.map(|t| t.text.to_owned());
        }
    }
    // The first error is often the cause of the others; the last one is the outcome.
    if codes.len() > MOST_ERRORS {
        codes.drain(1..codes.len() + 1 - MOST_ERRORS);
    }
    out.extend(codes.into_iter().map(|code| (SpanKind::ErrorCode, code)));
    out.extend(place.map(|path| (SpanKind::Path, path)));
}

/// Returns the first and the last lines of a text.
fn ends_of(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let middle = LINES..lines.len().saturating_sub(LINES);
    let numbered = lines.into_iter().enumerate();
    numbered.filter(move |(n, _)| !middle.contains(n)).map(|(_, line)| line)
}
