//! Splits prose into sentences.

use crate::WordList;
use ctx_core::text::{Slice, tail_bytes};
use std::ops::Range;

use crate::fold::is_cjk;
use crate::span::is_month;

/// Words whose period does not end a sentence.
static ABBREVIATIONS: WordList = WordList::new("abbreviations");

/// Brackets that do not close within this many characters are ignored.
const BRACKETED: usize = 160;

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
    let bare = piece.trim().trim_start_matches(['>', '#', ' ', '\t']);
    let words = bullet(bare).map_or(bare, |(_, words)| words);
    if words.chars().any(char::is_alphanumeric) {
        out.push(words);
    }
}

/// The marker of a list item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bullet<'a> {
    /// Its number.
    pub number: Option<&'a str>,
    /// Whether its check box is checked.
    pub checked: Option<bool>,
}

/// Returns the marker and the words of a list item.
///
/// ```
/// assert_eq!(ctx_text::bullet("- [ ] test it").unwrap().1, "test it");
/// assert!(ctx_text::bullet("-1 is less").is_none());
/// ```
pub fn bullet(line: &str) -> Option<(Bullet<'_>, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = line.split_at(digits);
    let words = match digits {
        0 => after.strip_prefix(['-', '*', '+', '•', '·']).filter(|rest| rest.starts_with(' ')),
        1..=3 => after
            .strip_prefix(['、', '．'])
            .or_else(|| after.strip_prefix(['.', ')']).filter(|rest| rest.starts_with(' '))),
        _ => None,
    };
    let checked = ["[x]", "[X]", "✅", "✓", "☑"].map(|sign| (sign, true));
    let open = ["[ ]", "[-]", "⬜", "☐"].map(|sign| (sign, false));
    let inner = words.unwrap_or(line).trim_start();
    let boxed = checked.into_iter().chain(open).find_map(|(sign, checked)| {
        let rest = inner.strip_prefix(sign)?;
        Some((Some(checked), rest.trim_start_matches(['\u{fe0f}', ' '])))
    });
    let (checked, inner) = boxed.or_else(|| words.map(|_| (None, inner)))?;
    Some((Bullet { number: (digits > 0 && words.is_some()).then_some(number), checked }, inner))
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
        || ABBREVIATIONS.contains(word.to_ascii_lowercase().as_str())
}

/// Whether the line after the break at `at` continues the sentence, as in hard-wrapped text.
pub(crate) fn goes_on(text: &str, at: usize) -> bool {
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
