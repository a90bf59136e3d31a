//! A summary indexed for lookups.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use ctx_facts::{RequiredFact, citations};
use ctx_text::{
    Gist, NormalForm, Span, SpanKind, gist, is_cjk, joins, normal_form, spans, stands_alone,
};

use super::passage::collapse;

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// Where a summary keeps a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFact {
    /// The index of the line.
    pub line: usize,
    /// Whether it is there in the same words.
    pub is_exact: bool,
}

/// A line of a summary.
#[derive(Debug)]
pub(crate) struct Line {
    /// The identifiers and numbers outside of citations.
    tokens: Vec<Token>,
    /// The runs of letters, digits and underscores outside of citations.
    words: Vec<Range<usize>>,
    pub(super) gist: Gist,
    /// The normal forms of all identifiers and numbers, sorted.
    pub(super) forms: Vec<NormalForm>,
}

/// A [`Span`] of a line, without its text.
#[derive(Debug)]
struct Token {
    kind: SpanKind,
    range: Range<usize>,
    quoted: bool,
    is_count: bool,
    form: NormalForm,
}

/// The lines that were read. The texts of one compaction share most of their lines.
#[derive(Debug, Default)]
pub(crate) struct LineCache(RefCell<Map<String, Rc<Line>>>);

impl LineCache {
    /// Returns the lines of a text.
    pub(crate) fn lines(&self, text: &str) -> Vec<Rc<Line>> {
        let mut known = self.0.borrow_mut();
        let mut line = |text: &str| match known.get(text) {
            Some(line) => line.clone(),
            None => {
                let line = Rc::new(Line::of(text));
                known.insert(text.to_owned(), line.clone());
                line
            }
        };
        text.split('\n').map(&mut line).collect()
    }
}

impl Line {
    fn of(text: &str) -> Self {
        let cited = citations(text);
        let is_cited = |at: usize| cited.iter().any(|cited| cited.range.contains(&at));
        let token = |span: Span<'_>| Token {
            kind: span.kind,
            form: normal_form(span.kind, span.text),
            quoted: span.quoted,
            is_count: span.is_count,
            range: span.range,
        };
        let mut tokens: Vec<Token> = spans(text).into_iter().map(token).collect();
        let mut forms: Vec<NormalForm> = tokens.iter().map(|token| token.form.clone()).collect();
        forms.sort_unstable();
        forms.dedup();
        tokens.retain(|token| !is_cited(token.range.start));
        let words = runs(text).filter(|run| !is_cited(run.start)).collect();
        Self { tokens, words, gist: gist(text), forms }
    }
}

/// A summary with an index of its lines.
pub(crate) struct Sheet<'a> {
    summary: &'a str,
    pub(super) lines: &'a [Rc<Line>],
    /// The start of each line.
    starts: Vec<usize>,
    normal: Map<&'a NormalForm, usize>,
    /// The positions of each word.
    words: Map<&'a str, Vec<usize>>,
    /// For each content word, the lines that contain it.
    pub(super) sayers: Map<u64, Vec<u32>>,
    /// The text with each run of white space, line breaks included, as one space.
    pub(super) collapsed: String,
    /// The start of each line in `collapsed`.
    pub(super) collapsed_starts: Vec<usize>,
}

impl<'a> Sheet<'a> {
    /// Indexes a summary by its lines.
    pub(crate) fn of(summary: &'a str, lines: &'a [Rc<Line>]) -> Self {
        let mut sheet = Self {
            summary,
            lines,
            starts: Vec::with_capacity(lines.len()),
            normal: Map::default(),
            words: Map::default(),
            sayers: Map::default(),
            collapsed: String::with_capacity(summary.len()),
            collapsed_starts: Vec::with_capacity(lines.len()),
        };
        let mut start = 0;
        for ((at, line), text) in lines.iter().enumerate().zip(summary.split('\n')) {
            for token in &line.tokens {
                sheet.normal.entry(&token.form).or_insert(start + token.range.start);
            }
            for word in &line.words {
                let text = text.get(word.clone()).unwrap_or_default();
                sheet.words.entry(text).or_default().push(start + word.start);
            }
            for &word in &line.gist.words {
                sheet.sayers.entry(word).or_default().push(at as u32);
            }
            sheet.starts.push(start);
            sheet.collapsed_starts.push(sheet.collapsed.len());
            collapse(text, &mut sheet.collapsed);
            start += text.len() + 1;
        }
        sheet
    }

    /// Finds the line that keeps a fact.
    pub(crate) fn find(&self, fact: &RequiredFact) -> Option<FoundFact> {
        let Some(kind) = fact.kind.span() else { return self.passage(&fact.text) };
        let at = self.token(kind, &fact.text)?;
        let line = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
        Some(FoundFact { line, is_exact: true })
    }

    fn token(&self, kind: SpanKind, text: &str) -> Option<usize> {
        let form = normal_form(kind, text);
        if let Some(&at) = self.normal.get(&form) {
            return Some(at);
        }
        // A file path is kept without its line number.
        self.written(text, kind).or_else(|| self.written(form.text(), kind))
    }

    /// Finds words verbatim and on their own.
    fn written(&self, words: &str, kind: SpanKind) -> Option<usize> {
        // The longest word is the rarest; the whole can only occur where it does.
        let longest = runs(words).max_by_key(|run| run.len())?;
        let places = self.words.get(words.get(longest.clone())?)?;
        places.iter().find_map(|&at| {
            let start = at.checked_sub(longest.start)?;
            let range = start..start + words.len();
            let stands = self.summary.get(range.clone()) == Some(words);
            (stands && stands_alone(self.summary, &range, kind)).then_some(start)
        })
    }
}

/// Returns the tokens of a summary outside of its citations.
pub(super) fn tokens<'a>(
    summary: &'a str,
    lines: &'a [Rc<Line>],
) -> impl Iterator<Item = Span<'a>> {
    let mut start = 0;
    let starts = summary.split('\n').map(move |line| {
        let own = start;
        start += line.len() + 1;
        own
    });
    let tokens = lines.iter().zip(starts);
    let tokens = tokens.flat_map(|(line, start)| line.tokens.iter().map(move |it| (it, start)));
    tokens.map(|(token, start)| {
        let range = start + token.range.start..start + token.range.end;
        let text = summary.get(range.clone()).unwrap_or_default();
        let &Token { kind, quoted, is_count, .. } = token;
        Span { kind, text, range, quoted, is_count }
    })
}

/// Returns the runs of letters, digits and underscores in a text. Each Chinese character is a run.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.find(|&(_, c)| joins(c) || is_cjk(c))?;
        let mut end = start + first.len_utf8();
        while let Some((_, c)) = chars.next_if(|&(_, c)| joins(first) && joins(c)) {
            end += c.len_utf8();
        }
        Some(start..end)
    })
}
