//! Splits text into prose and code, and prose into sentences.

use crate::WordList;
use ctx_core::text::{Slice, tail_bytes};
use std::ops::Range;

use crate::fold::is_cjk;
use crate::span::is_month;

/// Words whose period does not end a sentence.
static ABBREVIATIONS: WordList = WordList::new("abbreviations");

/// Brackets that do not close within this many characters are ignored.
const BRACKETED: usize = 160;

/// A segment of a text: prose, or the content of a code fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its byte range; for a fence, the lines between its markers.
    pub range: Range<usize>,
    /// Whether it is code.
    pub is_code: bool,
}

/// Splits a text at its code fences. An unclosed fence extends to the end.
pub fn segments(text: &str) -> Vec<Segment> {
    let mut out = Vec::new();
    let mut fence: Option<(u8, usize)> = None;
    let (mut start, mut at) = (0, 0);
    let push = |out: &mut Vec<Segment>, range: Range<usize>, is_code| {
        if !range.is_empty() {
            out.push(Segment { range, is_code });
        }
    };
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        let mark = fence_mark(line);
        match (fence, mark) {
            (None, Some(open)) => {
                push(&mut out, start..at, false);
                (fence, start) = (Some(open), next);
            }
            (Some((byte, width)), Some((closing, length)))
                if byte == closing && length >= width && is_bare(line, closing) =>
            {
                push(&mut out, start..at, true);
                (fence, start) = (None, next);
            }
            _ => {}
        }
        at = next;
    }
    push(&mut out, start..text.len(), fence.is_some());
    out
}

/// Returns the character and width of a fence that a line opens or closes.
fn fence_mark(line: &str) -> Option<(u8, usize)> {
    let line = line.trim_start();
    let byte = *line.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
    let width = line.bytes().take_while(|&b| b == byte).count();
    let rest = line.slice(width..);
    (width >= 3 && !(byte == b'`' && rest.contains('`'))).then_some((byte, width))
}

fn is_bare(line: &str, mark: u8) -> bool {
    line.trim().bytes().all(|b| b == mark)
}

/// Returns the sentences of a prose segment, in order, trimmed, without bullets. A line break ends
/// a sentence, unless the next line clearly continues it.
pub fn sentences(prose: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for at in breaks(prose) {
        push_sentence(&mut out, prose.slice(start..at));
        start = at;
    }
    push_sentence(&mut out, prose.slice(start..));
    out
}

fn push_sentence<'a>(out: &mut Vec<&'a str>, piece: &'a str) {
    let piece = without_bullet(piece.trim());
    if piece.chars().any(char::is_alphanumeric) {
        out.push(piece);
    }
}

/// Returns a line without its list, quotation or heading marker.
fn without_bullet(line: &str) -> &str {
    static BULLETS: WordList = WordList::new("bullets");
    let bare = line.trim_start_matches(['>', '#', '•', '·', ' ', '\t']);
    let bare = BULLETS.iter().find_map(|mark| bare.strip_prefix(mark)).unwrap_or(bare);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits)
        && let Some(rest) = bare.get(digits..)
        && let Some(rest) = [". ", ") ", "、", "．"].iter().find_map(|mark| rest.strip_prefix(mark))
    {
        return rest.trim();
    }
    bare.trim()
}

/// Returns the positions where a sentence ends and the next one starts.
fn breaks(text: &str) -> Vec<usize> {
    let mut out = Vec::new();
    let mut word_start = 0;
    let mut open = 0i32;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let end = at + c.len_utf8();
        match c {
            '(' | '（' => open += 1,
            ')' | '）' => open -= i32::from(open > 0),
            '\n' => open = 0,
            _ => {}
        }
        match c {
            '\n' if !goes_on(text, at) => out.push(end),
            '。' | '！' | '？' | '；' if !next.is_some_and(closes) => out.push(end),
            '.' | '!' | '?' => {
                let quoted = next.is_some_and(closes);
                let after = if quoted {
                    text.get(end..).and_then(|rest| rest.chars().nth(1))
                } else {
                    next
                };
                let ends = after.is_none_or(char::is_whitespace)
                    && !(open > 0 && closes_later(text, end))
                    && !(c == '.' && is_abbreviation(text, word_start..at));
                if ends {
                    out.push(end + if quoted { next.map_or(0, char::len_utf8) } else { 0 });
                }
            }
            _ => {}
        }
        if c.is_whitespace() {
            word_start = end;
        }
    }
    out.dedup();
    out
}

/// Whether the open brackets at a position close soon in the same line: their content is not a
/// separate sentence.
fn closes_later(text: &str, at: usize) -> bool {
    let near = text.slice(at..).chars().take(BRACKETED);
    near.take_while(|c| !matches!(c, '\n' | '(' | '（')).any(|c| matches!(c, ')' | '）'))
}

fn closes(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '*' | '`')
}

/// Whether the word in this range, before a period, is `e.g.`, `vs.`, an initial, a list number, or
/// the day of a date: "12. Mai".
fn is_abbreviation(text: &str, range: Range<usize>) -> bool {
    let before = text.slice(..range.start).trim_end_matches([' ', '\t', '>']);
    let after = text.slice(range.end + 1..).trim_start();
    let month = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let word = text.slice(range).trim_start_matches(['(', '[', '"', '*']);
    if word.len() > 1 && word.len() <= 3 && word.bytes().all(|b| b.is_ascii_digit()) {
        return before.is_empty() || before.ends_with('\n') || is_month(month);
    }
    word.chars().count() <= 1 && word.chars().all(char::is_alphanumeric)
        || ABBREVIATIONS.contains(&word.to_ascii_lowercase().as_str())
}

/// Whether the line after the break at `at` continues the sentence, as in hard-wrapped text.
fn goes_on(text: &str, at: usize) -> bool {
    let before = text.slice(..at).chars().next_back();
    let after = text.slice(at + 1..);
    let line_long = text.get(..at).is_some_and(|t| {
        // Only a line near the maximum width was wrapped; a short part of its end is examined.
        let last = tail_bytes(t, 400);
        last.len() - last.rfind('\n').map_or(0, |i| i + 1) >= 50
    });
    line_long
        && before.is_some_and(|c| c.is_alphanumeric() || matches!(c, ',' | '`' | ')'))
        && after.chars().next().is_some_and(|c| c.is_lowercase() || matches!(c, '`' | '('))
}

/// Clips a sentence to at most `max` characters, after a clause, else after a word.
pub fn clip(sentence: &str, max: usize) -> &str {
    let Some((limit, _)) = sentence.char_indices().nth(max) else { return sentence };
    let head = sentence.get(..limit).unwrap_or(sentence);
    let (mut at_clause, mut at_word) = (None, None);
    let mut chars = head.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        // `a.rs:12` and `1,500` continue after their punctuation.
        let ends = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        match c {
            '，' | '；' | '：' | '、' | '。' => at_clause = Some(at),
            ',' | ';' | ':' if ends => at_clause = Some(at),
            _ if c.is_whitespace() => at_word = Some(at),
            // Chinese may be cut after any character, but not inside a name.
            _ if is_cjk(c) => at_word = Some(at + c.len_utf8()),
            _ => {}
        }
    }
    let end = at_clause.filter(|&at| at * 2 > limit).or(at_word);
    head.get(..end.unwrap_or(limit)).unwrap_or(head).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_marks_and_lines_but_not_inside_names() {
        for (text, expected) in [
            (
                "Fix src/a.rs. Then run v1.2.3 of it!",
                &["Fix src/a.rs.", "Then run v1.2.3 of it!"][..],
            ),
            ("First, e.g. this. Second", &["First, e.g. this.", "Second"]),
            ("- one\n- [ ] two\n3. three", &["one", "two", "three"]),
            ("第一句。第二句!第三句?好", &["第一句。", "第二句!第三句?好"]),
            ("第一句。第二句！第三句？", &["第一句。", "第二句！", "第三句？"]),
            ("He said \"stop.\" Then left.", &["He said \"stop.\"", "Then left."]),
            (
                "this line is wrapped by hand because it is so very long,\nand goes on here\nNew one",
                &[
                    "this line is wrapped by hand because it is so very long,\nand goes on here",
                    "New one",
                ],
            ),
            ("We run Node 18. It is old.", &["We run Node 18.", "It is old."]),
            ("---\n\n***", &[]),
            ("", &[]),
        ] {
            assert_eq!(sentences(text), expected, "{text}");
        }
    }

    #[test]
    fn code_stands_between_fences() {
        let text = "a\n```rust\nlet x;\n```\nb\n~~~\nnever closed\n```\n";
        let found: Vec<_> =
            segments(text).into_iter().map(|s| (text[s.range].to_owned(), s.is_code)).collect();
        let expected =
            [("a\n", false), ("let x;\n", true), ("b\n", false), ("never closed\n```\n", true)];
        assert_eq!(found, expected.map(|(text, code)| (text.to_owned(), code)));
    }

    #[test]
    fn a_clip_ends_with_a_clause_or_a_word() {
        for (text, max, expected) in [
            ("short", 10, "short"),
            ("keep this part, and then some more", 20, "keep this part"),
            ("edit src/main.rs:12 now", 18, "edit"),
            ("edit the src/main.rs:12 now", 20, "edit the"),
            ("不要修改配置文件", 4, "不要修改"),
        ] {
            let clipped = clip(text, max);
            assert_eq!(clipped, expected);
            assert!(clipped.chars().count() <= max);
        }
    }
}
