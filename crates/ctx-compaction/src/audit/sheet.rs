//! A summary, ready to be asked what stands in it.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::passage::Lines;
use crate::Fact;
use crate::grounds::citations;
use crate::text::{NormalForm, Token, normal_form, stands_alone, tokens};

type Map<K, V> = HashMap<K, V, foldhash::fast::FixedState>;

/// A summary with an index over its words.
pub(crate) struct Sheet<'a> {
    summary: &'a str,
    /// Those of the text; the ids of its citations are none.
    tokens: Vec<Token<'a>>,
    normal: Map<NormalForm, usize>,
    /// Where each word stands: words are runs of letters, digits and underscores.
    words: Map<&'a str, Vec<usize>>,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Only an audit of facts needs them.
    passages: OnceCell<Lines>,
}

impl<'a> Sheet<'a> {
    /// Reads a summary.
    pub(crate) fn of(summary: &'a str) -> Self {
        let cited = citations(summary);
        let inside = |at: usize| {
            let next = cited.partition_point(|c| c.range.end <= at);
            cited.get(next).is_some_and(|c| c.range.start <= at)
        };
        let tokens: Vec<Token<'a>> =
            tokens(summary).into_iter().filter(|token| !inside(token.range.start)).collect();
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

    /// The summary.
    pub(crate) fn summary(&self) -> &'a str {
        self.summary
    }

    /// The tokens of the summary, citations aside.
    pub(crate) fn tokens(&self) -> &[Token<'a>] {
        &self.tokens
    }

    /// The line, from 0, in which a fact is kept.
    pub(crate) fn line_of(&self, fact: &Fact) -> Option<usize> {
        if fact.kind.is_passage() {
            return self.passages.get_or_init(|| Lines::of(self.summary)).line_of(&fact.text);
        }
        self.token(fact)
            .map(|at| self.lines.partition_point(|&start| start <= at).saturating_sub(1))
    }

    fn token(&self, fact: &Fact) -> Option<usize> {
        let form = normal_form(fact.kind, &fact.text);
        if let Some(&at) = self.normal.get(&form) {
            return Some(at);
        }
        let written = |words: &str| self.written(words, fact);
        // A file is kept without the line in it, and a status by its number.
        written(&fact.text)
            .or_else(|| written(form.text()))
            .or_else(|| form.bare_status().and_then(written))
    }

    /// Where words stand exactly, and by themselves.
    fn written(&self, words: &str, fact: &Fact) -> Option<usize> {
        // The longest word is the rarest; only where it stands can the whole stand.
        let (offset, longest) = runs(words).max_by_key(|(_, run)| run.len())?;
        let places = self.words.get(longest)?;
        places.iter().find_map(|&at| {
            let start = at.checked_sub(offset)?;
            let range = start..start + words.len();
            let stands = self.summary.get(range.clone()) == Some(words);
            (stands && stands_alone(self.summary, &range, fact.kind)).then_some(start)
        })
    }
}

/// The runs of letters, digits and underscores of a text. Chinese stands letter by letter.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let joins = |c: char| (c.is_alphanumeric() && !crate::text::is_cjk(c)) || c == '_';
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
            if crate::text::is_cjk(c) {
                return Some((start, rest.get(..c.len_utf8())?));
            }
        }
    })
}
