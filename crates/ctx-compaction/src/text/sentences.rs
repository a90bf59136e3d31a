//! Prose and code, and the sentences of the prose.

use std::ops::Range;

use super::is_cjk;

/// Brackets that close later than after so many characters are none.
const BRACKETED: usize = 160;

/// A stretch of a text: prose, or what stands in a code fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it stands; of a fence, the lines between its marks.
    pub(crate) range: Range<usize>,
    /// Whether it is code.
    pub(crate) is_code: bool,
}

/// Splits a text at its code fences. A fence that is never closed reaches to the end.
pub(crate) fn segments(text: &str) -> Vec<Segment> {
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

/// The character and width of a fence that a line opens or closes.
fn fence_mark(line: &str) -> Option<(u8, usize)> {
    let line = line.trim_start();
    let byte = *line.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
    let width = line.bytes().take_while(|&b| b == byte).count();
    let rest = line.get(width..).unwrap_or_default();
    (width >= 3 && !(byte == b'`' && rest.contains('`'))).then_some((byte, width))
}

fn is_bare(line: &str, mark: u8) -> bool {
    line.trim().bytes().all(|b| b == mark)
}

/// The sentences of a stretch of prose, in order, trimmed, without bullets. Lines end a sentence,
/// unless the next one plainly goes on with it.
pub(crate) fn sentences(prose: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for at in breaks(prose) {
        push_sentence(&mut out, prose.get(start..at).unwrap_or_default());
        start = at;
    }
    push_sentence(&mut out, prose.get(start..).unwrap_or_default());
    out
}

fn push_sentence<'a>(out: &mut Vec<&'a str>, piece: &'a str) {
    let piece = without_bullet(piece.trim());
    if piece.chars().any(char::is_alphanumeric) {
        out.push(piece);
    }
}

/// A line without the mark of a list, a quotation or a heading.
fn without_bullet(line: &str) -> &str {
    let bare = line.trim_start_matches(['>', '#', '•', '·', ' ', '\t']);
    let bare = ["- [ ] ", "- [x] ", "- [X] ", "- ", "* ", "+ "]
        .iter()
        .find_map(|mark| bare.strip_prefix(mark))
        .unwrap_or(bare);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits)
        && let Some(rest) = bare.get(digits..)
        && let Some(rest) = [". ", ") ", "、", "．"].iter().find_map(|mark| rest.strip_prefix(mark))
    {
        return rest.trim();
    }
    bare.trim()
}

/// Where a sentence ends and the next one starts.
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
                    && !(c == '.' && is_abbreviation(text.get(word_start..at).unwrap_or_default()));
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

/// Whether the brackets that are open at a place close soon in its line: what stands in them is
/// no sentence that could stand alone.
fn closes_later(text: &str, at: usize) -> bool {
    let near = text.get(at..).unwrap_or_default().chars().take(BRACKETED);
    near.take_while(|c| !matches!(c, '\n' | '(' | '（')).any(|c| matches!(c, ')' | '）'))
}

fn closes(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '*' | '`')
}

/// `e.g.`, `vs.`, initials and the numbers of a list.
fn is_abbreviation(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '[', '"', '*']);
    let short = word.chars().count() <= 1 && word.chars().all(char::is_alphanumeric);
    short
        || (word.len() <= 3 && word.bytes().all(|b| b.is_ascii_digit()))
        || matches!(
            word.to_ascii_lowercase().as_str(),
            "e.g"
                | "i.e"
                | "eg"
                | "ie"
                | "vs"
                | "cf"
                | "approx"
                | "incl"
                | "mr"
                | "mrs"
                | "dr"
                | "no"
                | "nr"
                | "fig"
                | "al"
        )
}

/// Whether the line after the break at `at` goes on with the sentence: text wrapped by hand.
fn goes_on(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().chars().next_back();
    let after = text.get(at + 1..).unwrap_or_default();
    let line_long = text.get(..at).is_some_and(|t| {
        // Only a line that fills its measure was wrapped; looked at from its end, a little way.
        let tail = t.len().saturating_sub(400);
        let tail = (tail..t.len()).find(|&i| t.is_char_boundary(i)).unwrap_or(t.len());
        let last = t.get(tail..).unwrap_or_default();
        last.len() - last.rfind('\n').map_or(0, |i| i + 1) >= 50
    });
    line_long
        && before.is_some_and(|c| c.is_alphanumeric() || matches!(c, ',' | '`' | ')'))
        && after.chars().next().is_some_and(|c| c.is_lowercase() || matches!(c, '`' | '('))
}

/// The beginning of a sentence of at most `max` characters, cut where a clause or else a word ends.
pub(crate) fn clip(sentence: &str, max: usize) -> &str {
    let Some((limit, _)) = sentence.char_indices().nth(max) else { return sentence };
    let head = sentence.get(..limit).unwrap_or(sentence);
    let (mut at_clause, mut at_word) = (None, None);
    let mut chars = head.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        // `a.rs:12` and `1,500` go on behind their marks.
        let ends = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        match c {
            '，' | '；' | '：' | '、' | '。' => at_clause = Some(at),
            ',' | ';' | ':' if ends => at_clause = Some(at),
            _ if c.is_whitespace() => at_word = Some(at),
            // Chinese may be cut behind any character, but not a name within it.
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
