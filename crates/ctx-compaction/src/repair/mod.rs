//! Adds lost facts to a summary and removes unsupported claims.

mod add;
mod attribution;
mod invented;
mod outline;
mod trim;

use ctx_core::{Counter, Tokens};

use crate::audit::{Coverage, Sheet, audit, missing_in, names, relative_facts};
use crate::config::Ungrounded;
use crate::{Audit, AuditReport, SourceIndex};
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
}

/// A draft over its budget is trimmed to this share of it, so that the facts of removed lines can
/// be added back in fewer words.
const TRIMMED: f64 = 0.75;

/// The maximum number of times lines are removed and facts added.
const SETTLING: usize = 12;

/// The maximum number of searches for unsupported claims; the second half removes whole lines.
const ROUNDS: usize = 8;

/// Repairs a summary.
///
/// Unsupported claims are removed with the smallest item, sentence or line that contains them, or
/// marked `[unverified]`. Missing facts are added, most important first, each with its citation
/// `[e:ID]`, to the section where they belong, else under `## Critical Context`; tokens of one kind
/// share a line. If they do not fit, lines without a fact are removed, as long as enough of them is
/// left to read. A draft over the budget loses its least important lines, never a part of one.
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
    let relative = relative_facts(summary, facts);
    let facts = &*relative;
    let before = audit(summary, facts, grounds);
    let (mut text, mut after) = (summary.to_owned(), before.clone());
    // A removal can join words, and a mark can separate them; the result is checked again.
    for round in 0..ROUNDS {
        let clean = match how.ungrounded {
            Ungrounded::Remove => {
                let whole_lines = round >= ROUNDS / 2;
                invented::remove(&text, &after.ungrounded, grounds, whole_lines)
            }
            Ungrounded::Mark => invented::mark(&text, &after.ungrounded),
        };
        let known = (clean == text).then(|| after.missing.clone());
        let next = settled(clean, known, facts, how);
        if next == text {
            break;
        }
        text = next;
        after = audit(&text, facts, grounds);
        if after.ungrounded.is_empty() {
            break;
        }
    }
    let report = report(&before, after, facts, &text);
    Repaired { text, report }
}

/// Returns the text within the budget, with missing facts added. `missing` lists these if known.
fn settled(
    text: String,
    missing: Option<Vec<usize>>,
    facts: &[RequiredFact],
    how: &RepairOptions<'_>,
) -> String {
    let (mut text, mut missing) = (text, missing);
    // Making space for one fact may remove the line of another, so this repeats until it is stable.
    for _ in 0..SETTLING {
        let mut next = text.clone();
        if !how.fits(&next) {
            next = trim::to(&next, facts, how.budget.scale(TRIMMED), how.counter);
            missing = None;
        }
        let mut lost = missing.take().unwrap_or_else(|| lost_in(&next, facts));
        if lost.is_empty() {
            return next;
        }
        if let Some(roomier) = trim::make_room(&next, facts, &chosen(facts, &lost), how) {
            next = roomier;
            lost = lost_in(&next, facts);
        }
        next = filled(&next, lost, facts, how);
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn filled(
    text: &str,
    mut lost: Vec<usize>,
    facts: &[RequiredFact],
    how: &RepairOptions<'_>,
) -> String {
    let is_passage = |at: &usize| facts.get(*at).is_some_and(|fact| fact.kind.is_passage());
    let passages: Vec<usize> = lost.iter().copied().filter(is_passage).collect();
    let mut out = text.to_owned();
    if !passages.is_empty() {
        // Passages come first: the paths and names in them then need no line of their own.
        out = add::add(&out, &chosen(facts, &passages), how);
        lost = lost_in(&out, facts);
    }
    out = add::add(&out, &chosen(facts, &lost), how);
    if how.fits(&out) { out } else { trim::to(text, facts, how.budget, how.counter) }
}

fn lost_in(text: &str, facts: &[RequiredFact]) -> Vec<usize> {
    missing_in(&Sheet::of(text), facts)
}

fn chosen<'a>(facts: &'a [RequiredFact], places: &[usize]) -> Vec<&'a RequiredFact> {
    places.iter().filter_map(|&at| facts.get(at)).collect()
}

/// Builds the report of the final text, separating what the draft itself kept.
fn report(before: &Audit, after: Audit, facts: &[RequiredFact], text: &str) -> AuditReport {
    let mut report = AuditReport { facts: facts.len() as u32, ..AuditReport::default() };
    let lost = |missing: &[usize]| {
        let mut lost = vec![false; facts.len()];
        missing.iter().for_each(|&at| lost[at] = true);
        lost
    };
    let (lost_before, lost_after) = (lost(&before.missing), lost(&after.missing));
    let mut coverage = Coverage::default();
    let mut repaired: Vec<&RequiredFact> = Vec::new();
    for ((fact, before), is_lost) in facts.iter().zip(lost_before).zip(lost_after) {
        let count = report.kinds.entry(fact.kind).or_default();
        count.facts += 1;
        coverage.add(fact, !is_lost);
        if is_lost {
            count.lost += 1;
            report.missing += 1;
        } else if before {
            count.repaired += 1;
            report.repaired += 1;
            repaired.push(fact);
        } else {
            count.kept += 1;
            report.kept += 1;
        }
    }
    if !repaired.is_empty() {
        let sheet = Sheet::of(text);
        let found = repaired.into_iter().filter_map(|fact| sheet.find(fact));
        report.repaired_lines = found.map(|found| found.line as u32).collect();
    }
    for (kind, count) in &mut report.kinds {
        count.paraphrased = after.report.kinds.get(kind).map_or(0, |after| after.paraphrased);
    }
    report.coverage = coverage.share();
    // Claims removed from the draft, and those still in the text although no source contains them.
    let mut invented = before.ungrounded.clone();
    invented.extend(after.ungrounded);
    report.ungrounded = names(&invented);
    report
}
