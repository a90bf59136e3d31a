//! A summary indexed for lookups.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::passage::Lines;
use ctx_facts::RequiredFact;
use ctx_facts::citations;
use ctx_text::{NormalForm, Span, SpanKind, normal_form, spans, stands_alone};

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// Where a summary keeps a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFact {
    /// The index of the line.
    pub line: usize,
    /// Whether it is there in the same words.
    pub is_exact: bool,
}

/// A summary with a word index.
pub(crate) struct Sheet<'a> {
    summary: &'a str,
    /// The tokens of the text, without the ids in its citations.
    tokens: Vec<Span<'a>>,
    normal: Map<NormalForm, usize>,
    /// The positions of each word: a run of letters, digits and underscores.
    words: Map<&'a str, Vec<usize>>,
    /// The start of each line.
    lines: Vec<usize>,
    /// Built on first use; only an audit of facts needs it.
    passages: OnceCell<Lines>,
}

impl<'a> Sheet<'a> {
    /// Indexes a summary.
    pub(crate) fn of(summary: &'a str) -> Self {
        let cited = citations(summary);
        let inside = |at: usize| {
            let next = cited.partition_point(|c| c.range.end <= at);
            cited.get(next).is_some_and(|c| c.range.start <= at)
        };
        let tokens: Vec<Span<'a>> =
            spans(summary).into_iter().filter(|token| !inside(token.range.start)).collect();
        let mut normal = Map::default();
        for token in &tokens {
            normal.entry(normal_form(token.kind, token.text)).or_insert(token.range.start);
        }
        let mut words: Map<&'a str, Vec<usize>> = Map::default();
        for (at, word) in runs(summary) {
            if !inside(at) {
                words.entry(word).or_default().push(at);
            }
        }
        let mut lines = vec![0];
        lines.extend(memchr::memchr_iter(b'\n', summary.as_bytes()).map(|at| at + 1));
        Self { summary, tokens, normal, words, lines, passages: OnceCell::new() }
    }

    /// Returns the summary.
    pub(crate) fn summary(&self) -> &'a str {
        self.summary
    }

    /// Returns the tokens of the summary without its citations.
    pub(crate) fn tokens(&self) -> &[Span<'a>] {
        &self.tokens
    }

    /// Finds the line that keeps a fact.
    pub(crate) fn find(&self, fact: &RequiredFact) -> Option<FoundFact> {
        if fact.kind.is_passage() {
            return self.passages.get_or_init(|| Lines::of(self.summary)).find(&fact.text);
        }
        let at = self.token(fact)?;
        let line = self.lines.partition_point(|&start| start <= at).saturating_sub(1);
        Some(FoundFact { line, is_exact: true })
    }

    fn token(&self, fact: &RequiredFact) -> Option<usize> {
        let kind = fact.kind.span()?;
        let form = normal_form(kind, &fact.text);
        if let Some(&at) = self.normal.get(&form) {
            return Some(at);
        }
        let written = |words: &str| self.written(words, kind);
        // A file path is kept without its line number, and a status by its number.
        written(&fact.text)
            .or_else(|| written(form.text()))
            .or_else(|| form.bare_status().and_then(written))
    }

    /// Finds words verbatim and on their own.
    fn written(&self, words: &str, kind: SpanKind) -> Option<usize> {
        // The longest word is the rarest; the whole can only occur where it does.
        let (offset, longest) = runs(words).max_by_key(|(_, run)| run.len())?;
        let places = self.words.get(longest)?;
        places.iter().find_map(|&at| {
            let start = at.checked_sub(offset)?;
            let range = start..start + words.len();
            let stands = self.summary.get(range.clone()) == Some(words);
            (stands && stands_alone(self.summary, &range, kind)).then_some(start)
        })
    }
}

/// Returns the runs of letters, digits and underscores in a text. Each Chinese character is a run.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let joins = |c: char| (c.is_alphanumeric() && !ctx_text::is_cjk(c)) || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let c = rest.chars().next()?;
            let start = at;
            if joins(c) {
                let len = rest.find(|c: char| !joins(c)).unwrap_or(rest.len());
                at += len;
                return Some((start, rest.get(..len)?));
            }
            at += c.len_utf8();
            if ctx_text::is_cjk(c) {
                return Some((start, rest.get(..c.len_utf8())?));
            }
        }
    })
}
