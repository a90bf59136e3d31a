//! Compares a summary with its source.

mod passage;
mod sheet;
mod trace;

use std::borrow::Cow;
use std::ops::Range;

use crate::source_index::is_audited;
use crate::{AuditReport, RoundReport, SourceIndex};
use ctx_facts::{RequiredFact, base_folder, citations};

pub use sheet::FoundFact;
pub use trace::{FactStatus, TracedFact, trace_facts};

pub(crate) use sheet::Sheet;

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
    let relative = relative_facts(summary, facts);
    let facts = &*relative;
    let sheet = Sheet::of(summary);
    let mut audit = Audit::default();
    let mut coverage = Coverage::default();
    for (index, fact) in facts.iter().enumerate() {
        let found = sheet.find(fact);
        let count = audit.report.kinds.entry(fact.kind).or_default();
        count.facts += 1;
        coverage.add(fact, found.is_some());
        match found {
            Some(found) => {
                count.kept += 1;
                count.paraphrased += u32::from(!found.is_exact);
                audit.report.kept += 1;
            }
            None => {
                count.lost += 1;
                audit.missing.push(index);
            }
        }
    }
    audit.report.facts = facts.len() as u32;
    audit.report.missing = audit.missing.len() as u32;
    audit.report.coverage = coverage.share();
    audit.ungrounded = invented_in(&sheet, facts, grounds);
    audit.report.ungrounded = names(&audit.ungrounded);
    audit
}

/// Returns the indices of the facts missing from a text: an [`audit`] without the search for
/// unsupported claims, which for a whole request is meaningless and would dominate the cost.
#[must_use]
pub fn missing(text: &str, facts: &[RequiredFact]) -> Vec<usize> {
    missing_in(&Sheet::of(text), &relative_facts(text, facts))
}

/// Finds the line of a text that states each fact, with paths as `summary` writes them.
#[must_use]
pub fn find_facts(text: &str, summary: &str, facts: &[RequiredFact]) -> Vec<Option<FoundFact>> {
    let sheet = Sheet::of(text);
    relative_facts(summary, facts).iter().map(|fact| sheet.find(fact)).collect()
}

/// Finds the line of a text that states one of the passages, verbatim or in other words.
#[must_use]
pub fn find_passage(text: &str, passages: &[String]) -> Option<FoundFact> {
    let lines = passage::Lines::of(text);
    passages.iter().find_map(|passage| lines.find(passage))
}

/// Returns the facts with paths as the summary writes them: relative to the folder that it names.
pub(crate) fn relative_facts<'f>(
    summary: &str,
    facts: &'f [RequiredFact],
) -> Cow<'f, [RequiredFact]> {
    let Some(folder) = base_folder(summary) else { return Cow::Borrowed(facts) };
    if !facts.iter().any(|fact| fact.text.contains(folder)) {
        return Cow::Borrowed(facts);
    }
    let relative = facts.iter().map(|fact| {
        let text = fact.text.replace(folder, "");
        // The folder itself stays.
        let text = if text.is_empty() { folder.to_owned() } else { text };
        RequiredFact { text, ..fact.clone() }
    });
    Cow::Owned(relative.collect())
}

/// Returns the indices of the facts missing from a summary.
pub(crate) fn missing_in(sheet: &Sheet<'_>, facts: &[RequiredFact]) -> Vec<usize> {
    let lost = facts.iter().enumerate().filter(|(_, fact)| sheet.find(fact).is_none());
    lost.map(|(index, _)| index).collect()
}

/// The weighted share of facts in a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coverage {
    kept: f64,
    all: f64,
}

impl Coverage {
    pub(crate) fn add(&mut self, fact: &RequiredFact, is_kept: bool) {
        let weight = fact.importance();
        self.all += weight;
        if is_kept {
            self.kept += weight;
        }
    }

    /// Returns the share, 0 to 1; 1 if nothing weighs anything.
    pub(crate) fn share(self) -> f64 {
        if self.all == 0.0 { 1.0 } else { self.kept / self.all }
    }
}

/// Returns the audit of the facts of one round.
pub(crate) fn round_report<'f>(
    summary: &str,
    facts: impl Iterator<Item = &'f RequiredFact>,
) -> RoundReport {
    let facts: Vec<RequiredFact> = facts.cloned().collect();
    let sheet = Sheet::of(summary);
    let (mut report, mut coverage) = (RoundReport::default(), Coverage::default());
    for fact in relative_facts(summary, &facts).iter() {
        let is_kept = sheet.find(fact).is_some();
        report.facts += 1;
        report.kept += u32::from(is_kept);
        coverage.add(fact, is_kept);
    }
    report.coverage = coverage.share();
    report
}

/// Returns the texts of unsupported claims without duplicates.
pub(crate) fn names(invented: &[UnsupportedClaim]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for one in invented {
        if seen.insert(one.text.as_str()) {
            out.push(one.text.clone());
        }
    }
    out
}

/// Returns the unsupported claims of a summary, in order.
fn invented_in(
    sheet: &Sheet<'_>,
    facts: &[RequiredFact],
    grounds: &SourceIndex,
) -> Vec<UnsupportedClaim> {
    let summary = sheet.summary();
    let tokens: Vec<_> = sheet.tokens().iter().filter(|token| is_audited(token)).cloned().collect();
    let held = grounds.hold(&tokens);
    let doubtful: Vec<_> =
        tokens.into_iter().zip(held).filter(|(_, held)| !held).map(|(token, _)| token).collect();
    // Required facts come from the source, though perhaps with changes: white space of a passage,
    // arguments of a call.
    let quoted =
        if doubtful.is_empty() { Vec::new() } else { SourceIndex::quoting(facts).hold(&doubtful) };
    let mut out: Vec<UnsupportedClaim> = Vec::new();
    for (token, _) in doubtful.into_iter().zip(quoted).filter(|(_, quoted)| !quoted) {
        out.push(UnsupportedClaim { text: token.text.to_owned(), range: token.range });
    }
    for cited in citations(summary) {
        if !cited.ids.iter().all(|id| grounds.has_entry(id)) {
            let text = summary.get(cited.range.clone()).unwrap_or_default().to_owned();
            out.push(UnsupportedClaim { text, range: cited.range });
        }
    }
    out.sort_by_key(|one| (one.range.start, one.range.end));
    out
}
