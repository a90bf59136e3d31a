//! Compares a summary with what it stands for.

use std::ops::Range;

use crate::text::tokens;
use crate::{AuditReport, Fact, Grounds};

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
    /// The figures.
    pub report: AuditReport,
    /// The facts that are not in the summary, by their place in the list, most important first.
    pub missing: Vec<usize>,
    /// What the summary made up, in its order.
    pub ungrounded: Vec<Invented>,
}

/// Compares a summary with the facts it must keep and with all that it may say.
#[must_use]
pub fn audit(summary: &str, facts: &[Fact], grounds: &Grounds) -> Audit {
    let mut audit = Audit::default();
    for (index, fact) in facts.iter().enumerate() {
        let count = audit.report.kinds.entry(fact.kind).or_default();
        count.facts += 1;
        if summary.contains(&fact.text) {
            count.kept += 1;
            audit.report.kept += 1;
        } else {
            audit.report.missing += 1;
            audit.missing.push(index);
        }
    }
    audit.report.facts = facts.len() as u32;
    audit.report.coverage = share(audit.report.kept, audit.report.facts);
    for token in tokens(summary) {
        if !grounds.holds(token.text) {
            audit.report.ungrounded.push(token.text.to_owned());
            audit.ungrounded.push(Invented { text: token.text.to_owned(), range: token.range });
        }
    }
    audit
}

/// `part` of `whole`; 1 where there is nothing.
pub(crate) fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 1.0 } else { f64::from(part) / f64::from(whole) }
}
