//! Adds lost facts to a summary and removes unsupported claims.

mod add;
mod attribution;
mod invented;
mod outline;
mod trim;

use ctx_core::{Counter, Tokens};

use crate::audit::{Auditor, lost, relative_facts};
use crate::config::Ungrounded;
use crate::{AuditReport, FoundFact, SourceIndex};
use ctx_facts::RequiredFact;

pub(crate) use attribution::reattribute;

/// How a summary is repaired.
#[derive(Clone, Copy, Debug)]
pub struct RepairOptions<'a> {
    /// The maximum size of the repaired summary.
    pub budget: Tokens,
    /// The counter for its size.
    pub counter: &'a Counter,
    /// How unsupported claims are treated.
    pub ungrounded: Ungrounded,
}

impl RepairOptions<'_> {
    fn size(&self, text: &str) -> Tokens {
        self.counter.text(text)
    }

    fn fits(&self, text: &str) -> bool {
        self.size(text) <= self.budget
    }
}

/// A summary that was audited and repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// The text to store. It fits the budget.
    pub text: String,
    /// The audit of exactly that text. `kept` counts the facts the draft kept, `repaired` those
    /// that were added; `ungrounded` lists the claims of the draft that were removed or marked.
    pub report: AuditReport,
    /// Indices of the facts that are missing from it, most important first.
    pub missing: Vec<usize>,
}

/// A text, and where it keeps each fact.
#[derive(Clone)]
struct Draft {
    text: String,
    found: Vec<Option<FoundFact>>,
}

/// A draft over its budget is trimmed to this share of it, so that the facts of removed lines can
/// be added back in fewer words.
const TRIMMED: f64 = 0.75;

/// The maximum number of searches for unsupported claims; the second half removes whole lines.
const ROUNDS: usize = 8;

/// Repairs a summary.
///
/// Unsupported claims are removed with the sentence or line that contains them, or marked
/// `[unverified]`. Missing facts are added, most important first, each with its citation `[e:ID]`,
/// to the section where they belong, else under `## Critical Context`; tokens of one kind
/// share a line. A draft over the budget loses its least important lines, never a part of one.
///
/// The result is deterministic and fits the budget by the counter, and repairing it again changes
/// nothing.
#[must_use]
pub fn repair(
    summary: &str,
    facts: &[RequiredFact],
    grounds: &SourceIndex,
    how: &RepairOptions<'_>,
) -> Repaired {
    let facts = &*relative_facts(summary, facts);
    let auditor = &Auditor::new(facts, grounds);
    let before = Draft::of(summary.to_owned(), auditor);
    let mut claims = auditor.unsupported(summary);
    let mut invented = claims.clone();
    let mut draft = before.clone();
    // A removal can join words, and a mark can separate them; the result is checked again.
    for round in 0..ROUNDS {
        let clean = match how.ungrounded {
            Ungrounded::Remove => {
                let whole_lines = round >= ROUNDS / 2;
                invented::remove(&draft.text, &claims, grounds, whole_lines)
            }
            Ungrounded::Mark => invented::mark(&draft.text, &claims),
        };
        let next = match clean == draft.text {
            true => draft.clone(),
            false => Draft::of(clean, auditor),
        };
        let next = next.filled(auditor, how);
        if next.text == draft.text {
            break;
        }
        draft = next;
        claims = auditor.unsupported(&draft.text);
        if claims.is_empty() {
            break;
        }
    }
    // Claims removed from the draft, and those still in the text although no source contains them.
    invented.extend(claims);
    let report = AuditReport::of(facts, &before.found, &draft.found, &invented);
    Repaired { missing: lost(&draft.found), text: draft.text, report }
}

impl Draft {
    fn of(text: String, auditor: &Auditor<'_>) -> Self {
        Self { found: auditor.find(&text), text }
    }

    /// Returns the draft within the budget, with missing facts added.
    fn filled(mut self, auditor: &Auditor<'_>, how: &RepairOptions<'_>) -> Self {
        if !how.fits(&self.text) {
            let text = trim::to(&self, how.budget.scale(TRIMMED), how.counter);
            self = Self::of(text, auditor);
        }
        // Passages come first: the paths and names in them then need no line of their own.
        for only_passages in [true, false] {
            let lost = lost(&self.found).into_iter().filter_map(|at| auditor.facts.get(at));
            let lost = lost.filter(|fact| fact.kind.is_passage() || !only_passages);
            let lost: Vec<&RequiredFact> = lost.collect();
            let text = add::add(&self.text, &lost, how);
            if text != self.text {
                self = Self::of(text, auditor);
            }
        }
        self
    }
}
