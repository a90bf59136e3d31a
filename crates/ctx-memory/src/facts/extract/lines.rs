//! Extracts the lines of prose from a message: no code, output, table or quotation.

use ctx_text::WordList;

/// A longer line was not typed by a person.
const LINE_MAX: usize = 4_000;

/// This many consecutive lines that look like output are output, and so are short lines between
/// them.
const PASTED: usize = 3;

/// The list marker of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    Item,
    Open,
    Done,
}

/// A line of prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) mark: Mark,
    /// The heading, or the line ending in a colon, above it.
    pub(super) under: &'a str,
}

/// Returns the lines of prose, in order.
pub(super) fn prose(text: &str) -> Vec<Line<'_>> {
    let mut out: Vec<Line<'_>> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut under = "";
    let mut pasted = 0;
    for line in text.lines() {
        let bare = line.trim();
        if let Some(mark) = fence {
            if bare.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = Some(mark);
            continue;
        }
        if bare.is_empty() {
            pasted = 0;
            continue;
        }
        if let Some(heading) = heading(bare) {
            (under, pasted) = (heading, 0);
            continue;
        }
        if line.len() > LINE_MAX || is_output(line, bare) {
            pasted += 1;
            if pasted == PASTED {
                under = "";
            }
            continue;
        }
        let (words, mark) = without_marker(bare);
        if pasted >= PASTED && mark == Mark::Plain && bare.len() < 30 {
            continue;
        }
        pasted = 0;
        if mark == Mark::Plain && words.ends_with([':', '：']) {
            under = words.trim_end_matches([':', '：']);
            continue;
        }
        if mark == Mark::Plain {
            under = "";
        }
        out.push(Line { text: words, mark, under });
    }
    out
}

fn heading(line: &str) -> Option<&str> {
    let hashes = line.trim_start_matches('#');
    if hashes.len() < line.len() && hashes.starts_with(' ') {
        return Some(hashes.trim());
    }
    let inner = line.strip_prefix("**")?.trim_end_matches([':', '：']).strip_suffix("**")?;
    (!inner.contains("**")).then(|| inner.trim_end_matches([':', '：']))
}

fn without_marker(line: &str) -> (&str, Mark) {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < line.len() && line.len() - digits.len() < 4)
        .then(|| digits.strip_prefix(['.', ')', '、']))
        .flatten();
    let bulleted = line.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with(' '));
    let (words, mark) = match numbered.or(bulleted) {
        Some(rest) => (rest.trim_start(), Mark::Item),
        None => (line, Mark::Plain),
    };
    for (sign, state) in [
        ("[ ]", Mark::Open),
        ("[x]", Mark::Done),
        ("[X]", Mark::Done),
        ("⬜", Mark::Open),
        ("☐", Mark::Open),
        ("✅", Mark::Done),
        ("☑", Mark::Done),
    ] {
        if let Some(rest) = words.strip_prefix(sign) {
            return (rest.trim_start_matches(['\u{fe0f}', ' ']), state);
        }
    }
    (words, mark)
}

/// Whether a line was printed by a program, quoted, or is code.
fn is_output(line: &str, bare: &str) -> bool {
    static STARTS: WordList = WordList::new("output.line_starts");
    // `Step 1: ...` and `At first ...` are prose; stack frames have brackets.
    let starts = STARTS.iter().any(|start| bare.starts_with(start))
        && (!bare.starts_with("at ") || bare.contains(['(', ':']));
    let ends = bare.ends_with(['{', '}', ';', '\\', '=']) || bare.ends_with("=>");
    let field = bare.split_once(": ").is_some_and(|(key, value)| {
        key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '"' | '\''))
            && (value.ends_with(',') || value.starts_with(['\'', '"', '{', '[']))
    });
    let stamped = bare.get(..4).is_some_and(|year| year.bytes().all(|b| b.is_ascii_digit()))
        && bare.get(4..5) == Some("-");
    let escaped = bare.matches("\\n").count() >= 2 || bare.matches("\":").count() >= 2;
    let indented = line.starts_with("        ") || line.starts_with("\t\t");
    starts || ends || field || stamped || escaped || indented || is_call(bare) || is_dense(bare)
}

/// Whether a line is a tool call as the archive writes it: `bash({"command":"ls"})`.
fn is_call(line: &str) -> bool {
    let Some((name, _)) = line.split_once("({") else { return false };
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Whether a line is mostly symbols.
fn is_dense(line: &str) -> bool {
    let (mut letters, mut signs, mut blanks) = (0u32, 0u32, 0u32);
    for c in line.chars().take(400) {
        match c {
            ' ' | '\t' => blanks += 1,
            c if c.is_alphabetic() => letters += 1,
            '`' | '*' | '\'' | '"' | ',' | '.' | '_' | '/' | '-' | '(' | ')' => {}
            c if c.is_ascii_digit() => {}
            c if c.is_ascii() => signs += 1,
            _ => {}
        }
    }
    letters == 0 || signs * 4 > letters || (blanks == 0 && letters > 100 && line.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_output_tables_and_quotations_are_passed_over() {
        let text = "We use Redis.\n```\nport = 1\n```\n> quoted\n| a | b |\n    at f (a.js:1)\n\
                    {\"a\": 1}\n2024-01-01 00:00 started\n## Next\n- [ ] write docs\n1. tag it\n\
                    let x = 1;\nbash({\"command\":\"echo we use MySQL\"})";
        let found: Vec<_> = prose(text).iter().map(|l| (l.text, l.mark, l.under)).collect();
        assert_eq!(
            found,
            [
                ("We use Redis.", Mark::Plain, ""),
                ("write docs", Mark::Open, "Next"),
                ("tag it", Mark::Item, "Next"),
            ]
        );
    }
}
