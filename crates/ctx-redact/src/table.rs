//! The patterns and words for redaction.

use ctx_core::text::{Slice, head_bytes, tail_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::Regex;
use serde::Deserialize;

use crate::check::{self, Check};
use crate::name::{FieldWords, VALID};

/// The number of bytes a pattern sees. A secret that is longer is redacted to its end.
const WINDOW: usize = 8 << 10;

/// The maximum number of bytes before the anchor in a match of a pattern with `back`.
const BACK: usize = 100;

/// The number of bytes a pattern with `back` sees. It is small because such a pattern is tried at
/// each position.
const BACK_WINDOW: usize = 600;

/// A row of `patterns.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternRow {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patterns {
    #[serde(default)]
    pattern: Vec<PatternRow>,
}

/// The meaning of an anchor.
#[derive(Debug)]
pub(crate) enum Anchor {
    Rows(Vec<usize>),
    /// A name that may indicate a secret value.
    Name,
    /// The first or last line of a PEM block.
    Block,
}

/// An anchor in a text.
pub(crate) struct Hit<'t> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) anchor: &'t Anchor,
}

#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<PatternRow>,
    anchors: Vec<Anchor>,
    finder: AhoCorasick,
    pub(crate) words: FieldWords,
    /// Finds the context words of long words.
    pub(crate) context: AhoCorasick,
}

impl Table {
    pub(crate) fn builtin() -> Self {
        let patterns = toml::from_str(include_str!("../data/patterns.toml"));
        let Patterns { pattern: rows } = patterns.expect(VALID);
        let words = FieldWords::builtin();
        let names: BTreeSet<&str> = words.anchors().collect();
        let names = names.into_iter().map(|name| (name.to_owned(), Anchor::Name));
        let mut texts: Vec<(String, Anchor)> = names.collect();
        texts.extend(["-----begin ", "-----end "].map(|text| (text.to_owned(), Anchor::Block)));
        // Equal anchors of several rows are merged, in lower case.
        let mut of_rows: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (nth, row) in rows.iter().enumerate() {
            for anchor in &row.anchors {
                of_rows.entry(anchor.to_ascii_lowercase()).or_default().push(nth);
            }
        }
        texts.extend(of_rows.into_iter().map(|(text, rows)| (text, Anchor::Rows(rows))));
        let finder = insensitive(MatchKind::Standard).build(texts.iter().map(|(text, _)| text));
        let context = insensitive(MatchKind::LeftmostLongest).build(words.context());
        let (finder, context) = (finder.expect(VALID), context.expect(VALID));
        let anchors = texts.into_iter().map(|(_, anchor)| anchor).collect();
        Self { rows, anchors, finder, words, context }
    }

    /// Returns the anchors in a text, sorted by their ends.
    pub(crate) fn hits<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Hit<'t>> {
        self.finder.find_overlapping_iter(text).map(|found| Hit {
            start: found.start(),
            end: found.end(),
            anchor: &self.anchors[found.pattern().as_usize()],
        })
    }

    pub(crate) fn row(&self, nth: usize) -> &PatternRow {
        &self.rows[nth]
    }

    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[PatternRow] {
        &self.rows
    }
}

impl PatternRow {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn compile(&self) -> Result<Regex, regex::Error> {
        if self.back {
            return Regex::new(&self.pattern);
        }
        Regex::new(&format!("^(?:{})", self.pattern))
    }

    /// Returns the range to redact, if the pattern matches at the anchor.
    pub(crate) fn find(
        &self,
        text: &str,
        hit: &Hit<'_>,
        words: &FieldWords,
    ) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let before = bytes.get(hit.start.wrapping_sub(1)).copied().unwrap_or(b' ');
        if !self.inside && before.is_ascii_alphanumeric() {
            return None;
        }
        let (start, most) = if self.back {
            (hit.start - tail_bytes(text.slice(..hit.start), BACK).len(), BACK_WINDOW)
        } else {
            (hit.start, WINDOW)
        };
        let end = head_bytes(text, start.saturating_add(most)).len();
        let window = text.get(start..end)?;
        // A test checks that all patterns compile.
        let regex = self.regex.get_or_init(|| self.compile().ok()).as_ref()?;
        let captures = regex.captures(window)?;
        if captures.get(0).is_none_or(|all| start + all.start() > hit.start) {
            return None;
        }
        let found = captures.name("secret").or_else(|| captures.get(0))?;
        let mut range = start + found.start()..start + found.end();
        if range.end == end {
            let goes_on = |b: &u8| b.is_ascii_alphanumeric() || b"+/=_-.%".contains(b);
            let more = bytes.slice(end..);
            range.end += more.iter().take_while(|b| goes_on(b)).count();
        }
        check::passes(self.check, text.get(range.clone())?, words).then_some(range)
    }
}

fn insensitive(kind: MatchKind) -> AhoCorasickBuilder {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true).match_kind(kind);
    builder
}
