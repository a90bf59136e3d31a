//! Compares a summary with what it stands for.

mod passage;
mod sheet;

use std::ops::Range;

use crate::grounds::{citations, is_audited};
use crate::{AuditReport, Fact, Grounds};

pub(crate) use sheet::Sheet;

/// Something in a summary that stands nowhere in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invented {
    /// Its text.
    pub text: String,
    /// Where it stands in the summary.
    pub range: Range<usize>,
}

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// The figures. Nothing is repaired in an audit alone.
    pub report: AuditReport,
    /// The facts that are not in the summary, by their place in the list, most important first.
    pub missing: Vec<usize>,
    /// What the summary made up, in its order.
    pub ungrounded: Vec<Invented>,
}

/// Compares a summary with the facts it must keep and with all that it may say.
///
/// A token (path, URL, id, number, error code, name) is kept where it stands by itself: `src/a.rs`
/// is not kept by `src/a.rs.bak`. Spellings of one thing count as one: `500ms` and `500 ms`. A
/// passage is kept where it stands word for word, white space aside, or where one line holds most of
/// the words it begins with, enough of all, all of its identifiers and numbers, and negates what it
/// negates and nothing else.
///
/// Every identifier, number with a unit, error code and citation of the summary must stand in the
/// grounds. A small count without a unit of measure ("3 files") may be the writer's own.
#[must_use]
pub fn audit(summary: &str, facts: &[Fact], grounds: &Grounds) -> Audit {
    let sheet = Sheet::of(summary);
    let mut audit = Audit { missing: missing_in(&sheet, facts), ..Audit::default() };
    let mut missing = audit.missing.iter().peekable();
    for (index, fact) in facts.iter().enumerate() {
        let kept = u32::from(missing.next_if(|&&lost| lost == index).is_none());
        let count = audit.report.kinds.entry(fact.kind).or_default();
        count.facts += 1;
        count.kept += kept;
        audit.report.kept += kept;
    }
    audit.report.facts = facts.len() as u32;
    audit.report.missing = audit.missing.len() as u32;
    audit.report.coverage = share(audit.report.kept, audit.report.facts);
    audit.ungrounded = invented_in(&sheet, facts, grounds);
    audit.report.ungrounded = names(&audit.ungrounded);
    audit
}

/// The facts that are not in a text, by their place in the list: an [`audit`] without the question
/// what the text made up. Of a whole request that question has no answer and costs more than all else.
#[must_use]
pub fn missing(text: &str, facts: &[Fact]) -> Vec<usize> {
    missing_in(&Sheet::of(text), facts)
}

/// The facts that are not in a summary, by their place in the list.
pub(crate) fn missing_in(sheet: &Sheet<'_>, facts: &[Fact]) -> Vec<usize> {
    let lost = facts.iter().enumerate().filter(|(_, fact)| sheet.line_of(fact).is_none());
    lost.map(|(index, _)| index).collect()
}

/// `part` of `whole`; 1 where there is nothing.
pub(crate) fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}

/// The texts of what was made up, each once.
pub(crate) fn names(invented: &[Invented]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for one in invented {
        if seen.insert(one.text.as_str()) {
            out.push(one.text.clone());
        }
    }
    out
}

/// What stands in a summary and nowhere in its source, in the order of the summary.
fn invented_in(sheet: &Sheet<'_>, facts: &[Fact], grounds: &Grounds) -> Vec<Invented> {
    let summary = sheet.summary();
    let tokens: Vec<_> = sheet.tokens().iter().filter(|token| is_audited(token)).cloned().collect();
    let held = grounds.hold(&tokens);
    let doubtful: Vec<_> =
        tokens.into_iter().zip(held).filter(|(_, held)| !held).map(|(token, _)| token).collect();
    // What must be kept was taken from the source, if perhaps not letter by letter: white space of a
    // passage, the arguments of a call.
    let quoted =
        if doubtful.is_empty() { Vec::new() } else { Grounds::quoting(facts).hold(&doubtful) };
    let mut out: Vec<Invented> = Vec::new();
    for (token, _) in doubtful.into_iter().zip(quoted).filter(|(_, quoted)| !quoted) {
        out.push(Invented { text: token.text.to_owned(), range: token.range });
    }
    for cited in citations(summary) {
        if !cited.ids.iter().all(|id| grounds.has_entry(id)) {
            let text = summary.get(cited.range.clone()).unwrap_or_default().to_owned();
            out.push(Invented { text, range: cited.range });
        }
    }
    out.sort_by_key(|one| (one.range.start, one.range.end));
    out
}
