//! Compares a summary with its source.

mod passage;
mod sheet;
mod trace;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::source_index::is_audited;
use crate::{AuditReport, SourceIndex};
use ctx_facts::{RequiredFact, base_folder, citations};
use ctx_text::{Span, SpanKind};

pub use sheet::FoundFact;
pub use trace::{FactStatus, TracedFact, trace_facts};

use sheet::{LineCache, Sheet};

/// An unsupported claim: an identifier or number in a summary that does not occur in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedClaim {
    /// Its text.
    pub text: String,
    /// Its byte range in the summary.
    pub range: Range<usize>,
}

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// The counts. An audit alone repairs nothing.
    pub report: AuditReport,
    /// Indices of the facts that are missing from the summary, most important first.
    pub missing: Vec<usize>,
    /// The unsupported claims, in the order of the summary.
    pub ungrounded: Vec<UnsupportedClaim>,
}

/// Compares a summary with the facts it must keep and with its grounds.
///
/// A token (path, URL, id, number, error code, name) is kept if it occurs on its own:
/// `src/a.rs.bak` does not keep `src/a.rs`. Different spellings of the same value match: `500ms`
/// and `500 ms`. A passage is kept if it occurs verbatim except for white space, or if one line
/// contains most of its opening words, enough of its words in total and all of its identifiers and
/// numbers, and negates exactly what it negates.
///
/// Every identifier, number with a unit, error code and citation of the summary must occur in the
/// grounds. A small count without a unit of measure ("3 files") may be the writer's own.
#[must_use]
pub fn audit(summary: &str, facts: &[RequiredFact], grounds: &SourceIndex) -> Audit {
    let facts = relative_facts(summary, facts);
    let auditor = Auditor::new(&facts, grounds);
    let found = auditor.find(summary);
    let ungrounded = auditor.unsupported(summary);
    Audit {
        report: AuditReport::of(&facts, &found, &found, &ungrounded),
        missing: lost(&found),
        ungrounded,
    }
}

/// Returns the indices of the facts missing from a text: an [`audit`] without the search for
/// unsupported claims, which for a whole request is meaningless and would dominate the cost.
#[must_use]
pub fn missing(text: &str, facts: &[RequiredFact]) -> Vec<usize> {
    lost(&find_facts(text, text, facts))
}

/// Finds the line of a text that states each fact, with paths as `summary` writes them.
#[must_use]
pub fn find_facts(text: &str, summary: &str, facts: &[RequiredFact]) -> Vec<Option<FoundFact>> {
    let lines = LineCache::default().lines(text);
    let sheet = Sheet::of(text, &lines);
    relative_facts(summary, facts).iter().map(|fact| sheet.find(fact)).collect()
}

/// Finds the line of a text that states one of the passages, verbatim or in other words.
#[must_use]
pub fn find_passage(text: &str, passages: &[String]) -> Option<FoundFact> {
    let lines = LineCache::default().lines(text);
    let sheet = Sheet::of(text, &lines);
    passages.iter().find_map(|passage| sheet.passage(passage))
}

/// Returns the facts with paths as the summary writes them: relative to the folder that it names.
pub(crate) fn relative_facts<'f>(
    summary: &str,
    facts: &'f [RequiredFact],
) -> Cow<'f, [RequiredFact]> {
    let Some(folder) = base_folder(summary) else { return Cow::Borrowed(facts) };
    let relative = facts.iter().map(|fact| {
        let text = fact.text.replace(folder, "");
        // The folder itself stays.
        let text = if text.is_empty() { folder.to_owned() } else { text };
        RequiredFact { text, ..fact.clone() }
    });
    Cow::Owned(relative.collect())
}

/// Returns the indices of the facts that were not found.
pub(crate) fn lost(found: &[Option<FoundFact>]) -> Vec<usize> {
    let all = found.iter().enumerate();
    all.filter(|(_, found)| found.is_none()).map(|(index, _)| index).collect()
}

/// Returns the weighted share of the facts that a text keeps, 0 to 1; 1 if nothing weighs anything.
pub(crate) fn coverage<'f>(facts: impl Iterator<Item = (&'f RequiredFact, bool)>) -> f64 {
    let (mut kept, mut all) = (0.0, 0.0);
    for (fact, is_kept) in facts {
        all += fact.importance();
        kept += if is_kept { fact.importance() } else { 0.0 };
    }
    if all == 0.0 { 1.0 } else { kept / all }
}

/// Compares texts with the same facts and source. What it reads of one text it does not read again
/// in the next.
pub(crate) struct Auditor<'a> {
    pub(crate) facts: &'a [RequiredFact],
    grounds: &'a SourceIndex,
    /// The texts of the facts. They come from the source, though perhaps with changes: white space
    /// of a passage, arguments of a call.
    quoted: SourceIndex,
    lines: LineCache,
    /// Whether the source contains a token.
    held: RefCell<HashMap<(SpanKind, String, bool), bool>>,
}

impl<'a> Auditor<'a> {
    pub(crate) fn new(facts: &'a [RequiredFact], grounds: &'a SourceIndex) -> Self {
        Self {
            facts,
            grounds,
            quoted: SourceIndex::quoting(facts),
            lines: LineCache::default(),
            held: RefCell::default(),
        }
    }

    /// Finds each fact in a text.
    pub(crate) fn find(&self, text: &str) -> Vec<Option<FoundFact>> {
        let lines = self.lines.lines(text);
        let sheet = Sheet::of(text, &lines);
        self.facts.iter().map(|fact| sheet.find(fact)).collect()
    }

    /// Returns the unsupported claims of a summary, in order.
    pub(crate) fn unsupported(&self, summary: &str) -> Vec<UnsupportedClaim> {
        let lines = self.lines.lines(summary);
        let tokens = sheet::tokens(summary, &lines).filter(is_audited).collect();
        let claims = self.not_held(tokens).into_iter();
        let mut out: Vec<UnsupportedClaim> = claims
            .map(|token| UnsupportedClaim { text: token.text.to_owned(), range: token.range })
            .collect();
        for cited in citations(summary) {
            if !cited.ids.iter().all(|id| self.grounds.has_entry(id)) {
                let text = summary.get(cited.range.clone()).unwrap_or_default().to_owned();
                out.push(UnsupportedClaim { text, range: cited.range });
            }
        }
        out.sort_by_key(|one| (one.range.start, one.range.end));
        out
    }

    /// Returns the tokens that neither a fact nor the source contains.
    fn not_held<'t>(&self, tokens: Vec<Span<'t>>) -> Vec<Span<'t>> {
        let key = |token: &Span<'_>| (token.kind, token.text.to_owned(), token.quoted);
        let mut known = self.held.borrow_mut();
        let mut fresh: Vec<Span<'_>> = tokens.clone();
        fresh.retain(|token| !known.contains_key(&key(token)));
        for source in [&self.quoted, self.grounds] {
            let held = source.hold(&fresh);
            known.extend(fresh.iter().map(key).zip(held.iter().copied()));
            let mut held = held.into_iter();
            fresh.retain(|_| !held.next().unwrap_or_default());
        }
        let is_held = |token: &Span<'_>| known.get(&key(token)).copied().unwrap_or_default();
        tokens.into_iter().filter(|token| !is_held(token)).collect()
    }
}

/// Returns the texts of unsupported claims without duplicates.
pub(crate) fn names<'c>(invented: impl IntoIterator<Item = &'c UnsupportedClaim>) -> Vec<String> {
    let names: indexmap::IndexSet<&String> = invented.into_iter().map(|one| &one.text).collect();
    names.into_iter().cloned().collect()
}
