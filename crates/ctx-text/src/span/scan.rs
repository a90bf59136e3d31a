//! Scans a text word by word.

use ctx_core::text::{Slice, head_bytes};
use std::ops::Range;

use super::edges::{ends_word, group_len, is_command, leading};
use super::{Span, SpanKind, code, date, number, path, phrase};
use crate::fold::is_cjk;

/// Longer words are data, not names.
const LONGEST_WORD: usize = 300;
const LONGEST_URL: usize = 2_000;

/// Characters that end a URL, besides white space and Chinese ones.
const NOT_IN_URL: &str = r#""<>`\|{}^“”，。；、）（」"#;
/// The maximum length of text in backticks that is examined.
const LONGEST_QUOTE: usize = 160;

/// The state of a scan.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: Vec<Span<'a>>,
}

impl<'a> Scan<'a> {
    /// Creates a scan of all of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, out: Vec::new() }
    }

    /// Returns the tokens found.
    pub(super) fn run(mut self) -> Vec<Span<'a>> {
        self.until(self.text.len(), false);
        self.out
    }

    fn until(&mut self, limit: usize, in_backticks: bool) {
        while self.at < limit {
            let Some(c) = self.rest().chars().next() else { return };
            if c == '`' && !in_backticks {
                self.backticks();
            } else if ends_word(c) || is_cjk(c) && !self.begins_file_name() {
                self.at += c.len_utf8();
            } else {
                let end = self.word_end(limit);
                let start = self.at;
                self.word(start..end, in_backticks);
                self.at = self.at.max(end);
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.slice(self.at..)
    }

    /// Reads a quotation in backticks, if there is one; otherwise skips the backticks.
    fn backticks(&mut self) {
        let rest = self.rest();
        let width = rest.bytes().take_while(|&b| b == b'`').count();
        let inner = rest.slice(width..);
        let near = head_bytes(inner, LONGEST_QUOTE + width);
        let line = near.split('\n').next().unwrap_or_default();
        let close = (width <= 2).then(|| line.find(if width == 1 { "`" } else { "``" })).flatten();
        self.at += width;
        let Some(len) = close.filter(|&len| len > 0) else { return };
        let (start, end) = (self.at, self.at + len);
        let quoted = self.text.slice(start..end);
        let is_phrase = quoted.trim().contains(' ');
        if is_phrase && is_command(quoted) {
            let lead = quoted.len() - quoted.trim_start().len();
            let range = start + lead..start + quoted.trim_end().len();
            self.push(SpanKind::CodeName, range, true, false);
        }
        // The words of a command are not names of their own, but its paths are paths.
        let inner = self.out.len();
        self.until(end, true);
        if is_phrase {
            let words = self.out.split_off(inner);
            self.out.extend(words.into_iter().filter(|word| word.kind != SpanKind::CodeName));
        }
        self.at = end + width;
    }

    fn word_end(&self, limit: usize) -> usize {
        let rest = self.text.slice(self.at..limit);
        let mut is_url = false;
        let mut previous = ' ';
        let mut open = 0u32;
        let mut skip = 0;
        for (at, c) in rest.char_indices() {
            if at < skip {
                continue;
            }
            if c == '/'
                && previous == '/'
                && rest.get(..at - 1).is_some_and(|lead| lead.ends_with(':'))
            {
                is_url = true;
            }
            let ends = if is_url {
                // A closing parenthesis belongs to the URL if it was opened in it.
                open += u32::from(c == '(');
                let closes = c == ')' && open == 0;
                open = open.saturating_sub(u32::from(c == ')'));
                closes || is_cjk(c) || c.is_whitespace() || NOT_IN_URL.contains(c)
            } else if matches!(c, '(' | '[') && (previous == '/' || c == '(') {
                match group_len(rest.slice(at..), previous) {
                    Some(len) => {
                        skip = at + len;
                        false
                    }
                    None => true,
                }
            } else if is_cjk(c) {
                match self.name_run(at, rest, previous) {
                    Some(len) => {
                        skip = at + len;
                        false
                    }
                    None => true,
                }
            } else {
                ends_word(c)
            };
            if ends {
                return self.at + at;
            }
            previous = c;
        }
        self.at + rest.len()
    }

    /// Returns the length of the Chinese part of a file name that continues at `at`.
    fn name_run(&self, at: usize, rest: &str, previous: char) -> Option<usize> {
        if at > 0 && !matches!(previous, '/' | '_' | '-' | '.') {
            return None;
        }
        let run: usize =
            rest.get(at..)?.chars().take(40).take_while(|&c| is_cjk(c)).map(char::len_utf8).sum();
        let next = rest.get(at + run..)?.chars().next()?;
        matches!(next, '/' | '.' | '_' | '-').then_some(run)
    }

    /// Whether a Chinese word here is the name of a file: `设计.md`.
    fn begins_file_name(&self) -> bool {
        let before = self.text.slice(..self.at).chars().next_back();
        before.is_none_or(ends_word) && self.name_run(0, self.rest(), ' ').is_some()
    }

    fn push(&mut self, kind: SpanKind, range: Range<usize>, quoted: bool, is_count: bool) {
        if let Some(text) = self.text.get(range.clone())
            && !text.is_empty()
        {
            self.out.push(Span { kind, text, range, quoted, is_count });
        }
    }

    /// Classifies a word. A unit or the number of a code may follow it.
    fn word(&mut self, range: Range<usize>, quoted: bool) {
        let raw = self.text.get(range.clone()).unwrap_or_default();
        let lead = leading(raw);
        let bare = raw.slice(lead..);
        let bare = bare.trim_end_matches(['.', ',', ':', ';', '!', '?', '*', '…', '-', '=', '\'']);
        let start = range.start + lead;
        let end = start + bare.len();
        if bare.is_empty() {
            return;
        }
        let text = self.text;
        if bare.contains("://") {
            if bare.len() <= LONGEST_URL && !bare.starts_with(':') && !bare.ends_with("://") {
                self.push(SpanKind::Url, start..end, quoted, false);
            }
            return;
        }
        if bare.len() > LONGEST_WORD {
            return;
        }
        // `@src/a.rs` mentions a file, `@scope/name` is a package.
        let mentioned =
            bare.strip_prefix('@').filter(|path| path.contains('.') && !path.contains('@'));
        if let Some(len) = mentioned.and_then(|path| path::path_len(path, false)) {
            self.push(SpanKind::Path, start + 1..start + 1 + len, quoted, false);
            return;
        }
        let rest = text.slice(start..);
        if bare.bytes().all(|b| b.is_ascii_lowercase()) && !quoted {
            self.phrase(rest, start, quoted);
            return;
        }
        if let Some(len) = date::day_len(rest) {
            self.push(SpanKind::Number, start..start + len, quoted, false);
            self.at = start + len;
            return;
        }
        if let Some(kind) = Self::whole_word(bare, quoted) {
            self.push(kind.0, start..start + kind.1, quoted, false);
            return;
        }
        if self.phrase(rest, start, quoted) {
            return;
        }
        self.number(bare, start, quoted);
    }

    /// Classifies the word on its own, and returns how much of it counts.
    fn whole_word(bare: &str, quoted: bool) -> Option<(SpanKind, usize)> {
        let digit = bare.starts_with(|c: char| c.is_ascii_digit());
        if digit && date::is_time(bare) {
            return Some((SpanKind::Number, bare.len()));
        }
        if code::is_host(bare) && path::path_len(bare, false).is_none_or(|_| bare.contains('/')) {
            return Some((SpanKind::Url, bare.len()));
        }
        if let Some(len) = path::path_len(bare, quoted) {
            return Some((SpanKind::Path, len));
        }
        // `getUser()` is the name `getUser`, but `run` is a name only as `run()`.
        let name = bare.strip_suffix("()").filter(|name| code::by_shape(name, false).is_some());
        let bare = name.unwrap_or(bare);
        let kind = code::by_shape(bare, quoted);
        // `12` in backticks is a number, and `500ms` has a unit.
        let kind = kind.filter(|&kind| kind != SpanKind::CodeName || !digit)?;
        Some((kind, bare.len()))
    }

    fn phrase(&mut self, rest: &str, start: usize, quoted: bool) -> bool {
        let Some((kind, len)) = phrase::phrase(rest) else { return false };
        self.push(kind, start..start + len, quoted, false);
        self.at = start + len;
        true
    }

    fn number(&mut self, bare: &str, start: usize, quoted: bool) {
        if !bare
            .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '$' | '€' | '£' | '¥' | '￥'))
        {
            return;
        }
        let text = self.text;
        let Some(number) = number(text.slice(start..)) else { return };
        let end = start + number.len;
        let before = text.slice(..start);
        if number.unit.is_empty() {
            if phrase::is_status(&number.value, before) {
                self.push(SpanKind::ErrorCode, start..end, quoted, false);
            } else if let Some(lead) = phrase::chinese_lead(before) {
                self.push(SpanKind::Id, start - lead..end, quoted, false);
            } else if is_numeral(before, text.slice(end..), &number.value) {
                let is_count = !number.value.contains('.') && !bare.contains(',');
                self.push(SpanKind::Number, start..end, quoted, is_count);
            }
        } else {
            self.push(SpanKind::Number, start..end, quoted, number.is_count);
        }
        self.at = self.at.max(end);
    }
}

/// Whether a number without a unit is significant: a fraction or four digits, but not the number of a
/// heading, nor a part of a date.
fn is_numeral(before: &str, after: &str, value: &str) -> bool {
    let line = before.trim_end_matches([' ', '#', '-', '*']);
    let is_heading = line.is_empty() || line.ends_with('\n');
    !is_heading && (value.contains('.') || value.len() >= 4) && !after.starts_with(['-', '/'])
}
