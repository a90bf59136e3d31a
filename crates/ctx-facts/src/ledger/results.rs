//! Required facts of a tool result: errors at their root cause, and ids of what was created.

use ctx_text::{SpanKind, WordList, spans};

use ctx_core::ToolResult;

use crate::command::{essence, url};
use ctx_text::output::is_frame;

/// The number of lines examined at each end of an output. Errors are at its end, or at its start.
const LINES: usize = 150;
/// The maximum number of different errors of one result that are facts.
const MOST_ERRORS: usize = 3;
const LONGEST_LINE: usize = 600;

/// Words of lines that state an error.
static SIGNS: WordList = WordList::new("output.signs");

/// Returns the tokens of a result that are facts, as kind and text.
pub(super) fn of_result(result: &ToolResult, command: Option<&str>) -> Vec<(SpanKind, String)> {
    let text = result.plain_text();
    let mut out = Vec::new();
    if let Some(command) = command {
        made(command, &text, &mut out);
    }
    let shows = command.is_some_and(|line| only_shows(&essence(line)));
    if result.is_error || (command.is_some() && !shows) {
        errors(&text, &mut out);
    }
    out
}

/// Whether a command prints file contents, so that errors in its output are not its own.
pub(super) fn only_shows(essence: &str) -> bool {
    static SHOW: WordList = WordList::new("command.shows");
    let mut words = essence.split_whitespace().skip_while(|word| word.contains('='));
    match words.next().unwrap_or_default() {
        "git" => matches!(words.next(), Some("diff" | "show" | "log" | "grep" | "blame")),
        first => SHOW.contains(first),
    }
}

/// Adds what a command created on a server: a pull request, an issue.
fn made(command: &str, text: &str, out: &mut Vec<(SpanKind, String)>) {
    let parts = ["/pull/", "/issues/", "/merge_requests/", "/runs/"];
    let is_made = |url: &&str| parts.iter().any(|part| url.contains(part));
    if command.contains("gh ") || command.contains("git push") {
        out.extend(url(text).filter(is_made).map(|url| (SpanKind::Url, url.to_owned())));
    }
}

/// Adds error codes, and the first location after one.
fn errors(text: &str, out: &mut Vec<(SpanKind, String)>) {
    let mut codes: Vec<&str> = Vec::new();
    let mut place = None;
    for line in ends_of(text).filter(|line| line.len() <= LONGEST_LINE) {
        let is_frame = is_frame(line);
        if !is_frame && !SIGNS.is_in(&line.to_ascii_lowercase()) {
            continue;
        }
        let found = spans(line);
        for error in found.iter().filter(|t| t.kind == SpanKind::ErrorCode && !is_frame) {
            if !codes.contains(&error.text) {
                codes.push(error.text);
            }
        }
        if !codes.is_empty() && place.is_none() {
            place =
                found.iter().find(|t| t.kind == SpanKind::Path && t.text.contains(':')).cloned();
        }
    }
    // The first error is often the cause of the others; the last one is the outcome.
    if codes.len() > MOST_ERRORS {
        codes.drain(1..codes.len() + 1 - MOST_ERRORS);
    }
    out.extend(codes.into_iter().map(|code| (SpanKind::ErrorCode, code.to_owned())));
    out.extend(place.map(|path| (SpanKind::Path, path.text.to_owned())));
}

/// Returns the first and the last lines of a text.
fn ends_of(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let middle = LINES..lines.len().saturating_sub(LINES);
    let numbered = lines.into_iter().enumerate();
    numbered.filter(move |(n, _)| !middle.contains(n)).map(|(_, line)| line)
}
