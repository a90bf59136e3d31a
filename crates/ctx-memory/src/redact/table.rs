//! The patterns and words that redaction goes by.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use ctx_core::{Error, ErrorKind, Result};
use regex::Regex;
use serde::Deserialize;

use super::judge;
use super::key::Words;
use super::span::{ceil, floor};

/// How much of the text a pattern sees. A secret that goes on behind it is taken whole.
const WINDOW: usize = 8 << 10;

/// How far back a pattern may begin before its anchor.
const BACK: usize = 100;

/// And how much it sees from there on. It is looked for, so all of that may be read for nothing.
const BACK_WINDOW: usize = 600;

/// A row of `patterns.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    name: String,
    anchors: Vec<String>,
    pattern: String,
    #[serde(default)]
    back: bool,
    #[serde(default)]
    inside: bool,
    #[serde(default)]
    check: Check,
    #[serde(default)]
    #[allow(dead_code, reason = "for the reader of the table")]
    why: String,
    #[serde(skip)]
    regex: OnceLock<Option<Regex>>,
}

/// What a match must pass to be a secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Check {
    /// Its form says enough.
    #[default]
    Form,
    /// It is no placeholder, no variable, no call.
    Value,
    /// The same, and it is no number and no format: it stands after a flag of many meanings.
    Argument,
    /// It looks random as well.
    Random,
    /// One of its cookies looks random, or is named as sessions are.
    Cookie,
    /// It is a password in a URL, and not a port.
    Url,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patterns {
    #[serde(default)]
    pattern: Vec<Row>,
}

/// What is tried where an anchor stands.
#[derive(Debug)]
pub(super) enum Anchor {
    Rows(Vec<usize>),
    /// A name that may say its value is a secret.
    Name,
    /// The first or the last line of a block between `-----BEGIN` and `-----END`.
    Block,
}

/// An anchor in a text.
pub(super) struct Hit<'t> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) anchor: &'t Anchor,
}

#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
    anchors: Vec<Anchor>,
    finder: AhoCorasick,
    pub(super) words: Words,
    /// Finds the words that tell of a long word what it is.
    pub(super) context: AhoCorasick,
}

impl Table {
    pub(super) fn builtin() -> Self {
        Self::read().expect("the tables of this crate are read by its tests")
    }

    fn read() -> Result<Self> {
        let rows = parse(include_str!("patterns.toml"))?;
        let words = Words::parse(include_str!("words.toml"))?;
        // Anchors of several rows are one, in lower case.
        let mut by_text: BTreeMap<String, Anchor> = BTreeMap::new();
        for name in words.anchors() {
            by_text.insert(name.to_owned(), Anchor::Name);
        }
        let mut texts: Vec<(String, Anchor)> = by_text.into_iter().collect();
        texts.extend(["-----begin ", "-----end "].map(|text| (text.to_owned(), Anchor::Block)));
        let mut of_rows: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (nth, row) in rows.iter().enumerate() {
            for anchor in &row.anchors {
                of_rows.entry(anchor.to_ascii_lowercase()).or_default().push(nth);
            }
        }
        texts.extend(of_rows.into_iter().map(|(text, rows)| (text, Anchor::Rows(rows))));
        let failed = |e| Error::new(ErrorKind::Config, "too many redaction patterns").source(e);
        let finder = insensitive(MatchKind::Standard)
            .build(texts.iter().map(|(text, _)| text))
            .map_err(failed)?;
        let context =
            insensitive(MatchKind::LeftmostLongest).build(words.context()).map_err(failed)?;
        let anchors = texts.into_iter().map(|(_, anchor)| anchor).collect();
        Ok(Self { rows, anchors, finder, words, context })
    }

    /// The anchors in a text, by where they end.
    pub(super) fn hits<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Hit<'t>> {
        self.finder.find_overlapping_iter(text).map(|found| Hit {
            start: found.start(),
            end: found.end(),
            anchor: &self.anchors[found.pattern().as_usize()],
        })
    }

    pub(super) fn row(&self, nth: usize) -> &Row {
        &self.rows[nth]
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Row {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn compile(&self) -> Result<Regex, regex::Error> {
        if self.back {
            return Regex::new(&self.pattern);
        }
        Regex::new(&format!("^(?:{})", self.pattern))
    }

    /// What is to be taken out, if the pattern matches at the anchor.
    pub(super) fn find(&self, text: &str, hit: &Hit<'_>, table: &Table) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let before = bytes.get(hit.start.wrapping_sub(1)).copied().unwrap_or(b' ');
        if !self.inside && before.is_ascii_alphanumeric() {
            return None;
        }
        let (start, most) = if self.back {
            (ceil(text, hit.start.saturating_sub(BACK)), BACK_WINDOW)
        } else {
            (hit.start, WINDOW)
        };
        let end = floor(text, start.saturating_add(most).min(text.len()));
        let window = text.get(start..end)?;
        // They are known to compile.
        let regex = self.regex.get_or_init(|| self.compile().ok()).as_ref()?;
        let captures = regex.captures(window)?;
        if captures.get(0).is_none_or(|all| start + all.start() > hit.start) {
            return None;
        }
        let found = captures.name("secret").or_else(|| captures.get(0))?;
        let mut range = start + found.start()..start + found.end();
        if range.end == end {
            let goes_on = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-.%".contains(b);
            let more = bytes.get(end..).unwrap_or_default();
            range.end += more.iter().take_while(|b| goes_on(b)).count();
        }
        judge::passes(self.check, text.get(range.clone())?, table).then_some(range)
    }
}

fn insensitive(kind: MatchKind) -> AhoCorasickBuilder {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(kind);
    builder
}

fn parse(toml: &str) -> Result<Vec<Row>> {
    let parsed: Patterns = toml::from_str(toml).map_err(|e| {
        Error::new(ErrorKind::Config, "the redaction patterns cannot be read").source(e)
    })?;
    Ok(parsed.pattern)
}
