//! Reads a text once: its blocks, their sentences and their spans.
//!
//! Line by line, and not by a parser of Markdown, because agents and people write what Markdown does not
//! know: bullets such as `•` and `1、`, pasted logs, lists of paths.

use std::cell::OnceCell;
use std::ops::Range;

use ctx_core::text::Slice;

use crate::output::{Pasted, escaped_breaks, is_data, is_frame, is_listed};
use crate::sentences::{bullet, goes_on};
use crate::{Marks, Span, is_cjk, marks, sentences, spans};

/// The number of consecutive lines of a listing.
const LISTING: usize = 12;
/// The maximum number of sentences of a text that are classified.
const MOST_SENTENCES: usize = 2_000;
/// The characters of a sentence that show whether it is language.
const EXAMINED: usize = 400;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Lines of prose.
    Paragraph,
    /// A heading.
    Heading,
    /// A list item.
    Item,
    /// Lines in a code fence.
    Code,
    /// A long run of single words, or of branches of a tree.
    Listing,
    /// A log, a pasted error.
    Log,
    /// JSON, a tool call.
    Data,
    /// Stack frames.
    Frames,
}

/// A part of a text of one kind.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// Its kind.
    pub kind: BlockKind,
    /// Its text, without fences.
    pub text: &'a str,
    /// The number of lines of the code fence that contains it.
    pub fenced: Option<usize>,
    spans: OnceCell<Vec<Span<'a>>>,
}

impl<'a> Block<'a> {
    /// Returns its spans.
    pub fn spans(&self) -> &[Span<'a>] {
        self.spans.get_or_init(|| spans(self.text))
    }

    /// Whether a person or a model wrote it as prose, unlike code and what programs print.
    pub fn is_prose(&self) -> bool {
        use BlockKind::{Heading, Item, Paragraph};
        self.fenced.is_none() && matches!(self.kind, Paragraph | Heading | Item)
    }
}

/// A sentence and its classes.
#[derive(Clone, Copy, Debug)]
pub struct Sentence<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its classes.
    pub marks: Marks,
}

/// A text that was read. Sentences and spans are found when they are first asked for.
#[derive(Clone, Debug, Default)]
pub struct Reading<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The blocks, in order. Blank lines and fences are in none.
    pub blocks: Vec<Block<'a>>,
    sentences: OnceCell<Vec<Sentence<'a>>>,
}

impl<'a> Reading<'a> {
    /// Returns the sentences of the prose, at most 2,000.
    pub fn sentences(&self) -> &[Sentence<'a>] {
        self.sentences.get_or_init(|| {
            let prose = self.blocks.iter().filter(|block| block.is_prose());
            let all = prose.flat_map(|block| sentences(block.text));
            let all = all.filter(|sentence| is_language(sentence)).take(MOST_SENTENCES);
            all.map(|text| Sentence { text, marks: marks(text) }).collect()
        })
    }
}

/// Reads a text.
///
/// ```
/// use ctx_text::{BlockKind, read};
///
/// let text = "Run it:\n```sh\nmake test\n```\n- never push\n";
/// let blocks = read(text).blocks;
/// let texts: Vec<&str> = blocks.iter().map(|block| block.text.trim()).collect();
/// assert_eq!(texts, ["Run it:", "make test", "- never push"]);
/// assert_eq!(blocks[1].kind, BlockKind::Code);
/// ```
#[must_use]
pub fn read(text: &str) -> Reading<'_> {
    let mut reader = Reader { text, lines: Vec::new() };
    let mut fence: Option<&str> = None;
    let (mut start, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        let at = end;
        end += line.len();
        let mark = fence_mark(line);
        let closes = |open| mark.is_some_and(|m| m.starts_with(open) && m == line.trim());
        if fence.map_or(mark.is_some(), closes) {
            reader.read(start..at, fence.is_some());
            (fence, start) = (mark.filter(|_| fence.is_none()), end);
        }
    }
    // A fence that is never closed extends to the end.
    reader.read(start..end, fence.is_some());
    Reading { text, blocks: reader.blocks(), sentences: OnceCell::new() }
}

/// Returns the mark of a line that opens or closes a code fence.
fn fence_mark(line: &str) -> Option<&str> {
    let line = line.trim();
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let mark = line.slice(..line.len() - rest.len());
    (mark.len() >= 3 && !(sign == '`' && rest.contains(sign))).then_some(mark)
}

/// A line, and the kind of its block.
struct Line {
    kind: BlockKind,
    range: Range<usize>,
    /// Whether a block begins here.
    begins: bool,
    fenced: Option<usize>,
}

struct Reader<'a> {
    text: &'a str,
    lines: Vec<Line>,
}

impl<'a> Reader<'a> {
    /// Reads the lines of a code fence, or of the text between two.
    fn read(&mut self, range: Range<usize>, is_code: bool) {
        let text = self.text.slice(range.clone());
        let fenced = is_code.then(|| text.lines().count());
        let mut pasted = Pasted::default();
        let (mut last, mut listed, mut end) = (None, 0, range.start);
        for line in text.split_inclusive('\n') {
            let start = end;
            end += line.len();
            let is_pasted = !is_code && pasted.holds(line);
            if line.trim().is_empty() {
                last = last.filter(|_| is_code);
                continue;
            }
            let kind = match line {
                _ if is_frame(line) => BlockKind::Frames,
                _ if is_pasted => BlockKind::Log,
                _ if is_data(line) => BlockKind::Data,
                _ if is_code => BlockKind::Code,
                _ => self.prose(line, start, last),
            };
            if is_listed(line) {
                listed += 1;
            } else {
                self.end_listing(listed);
                listed = 0;
            }
            let is_one_line = kind == BlockKind::Heading
                || kind == BlockKind::Item && bullet(line.trim()).is_some();
            let begins = is_one_line || last != Some(kind);
            self.lines.push(Line { kind, range: start..end, begins, fenced });
            last = Some(kind);
        }
        self.end_listing(listed);
    }

    /// Returns the kind of a line of prose. `last` is the kind of the line above.
    fn prose(&self, line: &str, start: usize, last: Option<BlockKind>) -> BlockKind {
        let is_wrapped =
            || line.starts_with([' ', '\t']) || start > 0 && goes_on(self.text, start - 1);
        if is_heading(line.trim()) {
            BlockKind::Heading
        } else if bullet(line.trim()).is_some() || last == Some(BlockKind::Item) && is_wrapped() {
            BlockKind::Item
        } else {
            BlockKind::Paragraph
        }
    }

    /// Makes the last lines a listing if they are many.
    fn end_listing(&mut self, count: usize) {
        let from = self.lines.len() - count;
        for (n, line) in self.lines.iter_mut().skip(from).enumerate().filter(|_| count >= LISTING) {
            (line.kind, line.begins) = (BlockKind::Listing, n == 0);
        }
    }

    /// Joins the lines of each block.
    fn blocks(self) -> Vec<Block<'a>> {
        let mut joined: Vec<Line> = Vec::new();
        for line in self.lines {
            match joined.last_mut().filter(|last| !line.begins && last.kind == line.kind) {
                Some(last) => last.range.end = line.range.end,
                None => joined.push(line),
            }
        }
        let block = |Line { kind, range, fenced, .. }| Block {
            kind,
            text: self.text.slice(range),
            fenced,
            spans: OnceCell::new(),
        };
        joined.into_iter().map(block).collect()
    }
}

/// Whether a line is a heading: `## Next steps`, or all bold: `**Next steps**:`.
fn is_heading(line: &str) -> bool {
    let hashes = line.trim_start_matches('#');
    let bold = line.strip_prefix("**").map(|rest| rest.trim_end_matches([':', '：']));
    let bold = bold.and_then(|rest| rest.strip_suffix("**"));
    hashes.len() < line.len() && hashes.starts_with(' ')
        || bold.is_some_and(|inner| !inner.contains("**") && inner.len() < 80)
}

/// Whether a sentence consists mostly of letters: not a line of a log, a table or code.
fn is_language(sentence: &str) -> bool {
    let (mut letters, mut all) = (0usize, 0usize);
    // "The audit is on 2027-03-30." is a sentence, "2027-03-30 INFO up" is a line of a log.
    let has_words = sentence.starts_with(char::is_alphabetic);
    for c in sentence.chars().take(EXAMINED) {
        if !(c.is_whitespace() || has_words && c.is_ascii_digit()) {
            all += 1;
            // A Chinese character says as much as two letters.
            letters += usize::from(c.is_alphabetic()) + usize::from(is_cjk(c));
        }
    }
    all >= 3
        && letters * 10 >= all * 6
        && !sentence.starts_with(['{', '}', '|', '<', '$'])
        && escaped_breaks(sentence) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<(BlockKind, &str)> {
        read(text).blocks.iter().map(|block| (block.kind, block.text.trim())).collect()
    }

    #[test]
    fn blocks_are_told_apart() {
        use BlockKind::{Code, Data, Frames, Heading, Item, Log, Paragraph};
        for (text, expected) in [
            ("a\nb\n\nc", &[(Paragraph, "a\nb"), (Paragraph, "c")][..]),
            (
                "# a\nb\n**c**:\n#d",
                &[(Heading, "# a"), (Paragraph, "b"), (Heading, "**c**:"), (Paragraph, "#d")],
            ),
            (
                "- a\n  b\n1. c\n\n• d\ne",
                &[(Item, "- a\n  b"), (Item, "1. c"), (Item, "• d"), (Paragraph, "e")],
            ),
            (
                "a\n```rust\nlet x;\n\ny\n```\nb",
                &[(Paragraph, "a"), (Code, "let x;\n\ny"), (Paragraph, "b")],
            ),
            ("```\na\n```\n```\nb\n```\n```\n```", &[(Code, "a"), (Code, "b")]),
            ("- a\n  ~~~\n  b\n  ~~~\n- c", &[(Item, "- a"), (Code, "b"), (Item, "- c")]),
            ("~~~\nnever closed\n```", &[(Code, "never closed\n```")]),
            ("a\n\n    indented", &[(Paragraph, "a"), (Paragraph, "indented")]),
            (
                "ERROR no room\n  at x\n- b\nc",
                &[(Log, "ERROR no room\n  at x"), (Item, "- b"), (Paragraph, "c")],
            ),
            (
                "bash({\"command\":\"ls\"})\nc",
                &[(Data, "bash({\"command\":\"ls\"})"), (Paragraph, "c")],
            ),
            (
                "c\n    at f (a.js:1)\nat noon",
                &[(Paragraph, "c"), (Frames, "at f (a.js:1)"), (Paragraph, "at noon")],
            ),
        ] {
            assert_eq!(blocks(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_listing_is_no_prose() {
        let long: String = (0..20).map(|n| format!("src/file{n}.rs\n")).collect();
        let text = format!("Look here:\n{long}\nSo it is.");
        let kinds: Vec<_> = blocks(&text).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [BlockKind::Paragraph, BlockKind::Listing, BlockKind::Paragraph]);
        assert_eq!(blocks("Look at\nsrc/a.rs\nsrc/b.rs\n").len(), 1);
    }

    #[test]
    fn any_text_is_read_in_linear_time() {
        for unit in ["- ", "* a\n  ", "`", "```\n", "[a](", "**a*", "# "] {
            let text = unit.repeat(50_000);
            let read = read(&text);
            let all: usize = read.blocks.iter().map(|block| block.text.len()).sum();
            assert!(all <= text.len());
        }
    }
}
