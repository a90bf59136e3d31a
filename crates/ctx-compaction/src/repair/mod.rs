//! Adds to a summary what it lost and takes out what it made up.

mod add;
mod invented;
mod outline;
mod trim;

use ctx_core::{Counter, Tokens};

use crate::audit::{Sheet, audit, missing_in, names, share};
use crate::config::Ungrounded;
use crate::{Audit, AuditReport, Fact, Grounds};

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

impl Repair<'_> {
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
    /// The text to be stored. It measures the budget at most.
    pub text: String,
    /// The audit of exactly that text. `kept` counts what the draft kept, `repaired` what was added,
    /// `ungrounded` names what of the draft was removed or marked.
    pub report: AuditReport,
}

/// A draft over its budget is trimmed to this share of it, so that what stood in the lines that went
/// can be told again in fewer words.
const TRIMMED: f64 = 0.75;

/// So often room is made and filled at most.
const SETTLING: usize = 12;

/// So often what was made up is looked for; in the second half, whole lines go.
const ROUNDS: usize = 8;

/// Repairs a summary.
///
/// What stands nowhere in the source goes, with the smallest item, sentence or line that holds it, or
/// is marked with `[unverified]`. What is missing is added, most important first, each with its
/// citation `[e:ID]`, into the section where it belongs, else under `## Critical Context`; tokens of
/// one kind share a line. Where they find no room, lines that hold no fact make some, as
/// long as enough of them is left to read. A draft over the budget loses its least important lines, never a part of one.
///
/// The result is deterministic, is inside the budget by the counter, and repairing it again changes
/// nothing.
#[must_use]
pub fn repair(summary: &str, facts: &[Fact], grounds: &Grounds, how: &Repair<'_>) -> Repaired {
    let before = audit(summary, facts, grounds);
    let (mut text, mut after) = (summary.to_owned(), before.clone());
    // What is taken out can bring words together, and what is marked can part them; what comes of it
    // is looked at again.
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
    let report = report(&before, after, facts);
    Repaired { text, report }
}

/// The text within the budget, with what was missing. `missing` is what the text lacks, if that is
/// known.
fn settled(text: String, missing: Option<Vec<usize>>, facts: &[Fact], how: &Repair<'_>) -> String {
    let (mut text, mut missing) = (text, missing);
    // What makes room for one fact may cost another its line, so that this is done until it settles.
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

fn filled(text: &str, mut lost: Vec<usize>, facts: &[Fact], how: &Repair<'_>) -> String {
    let is_passage = |at: &usize| facts.get(*at).is_some_and(|fact| fact.kind.is_passage());
    let passages: Vec<usize> = lost.iter().copied().filter(is_passage).collect();
    let mut out = text.to_owned();
    if !passages.is_empty() {
        // First of all: the paths and names in them need no line of their own then.
        out = add::add(&out, &chosen(facts, &passages), how);
        lost = lost_in(&out, facts);
    }
    out = add::add(&out, &chosen(facts, &lost), how);
    if how.fits(&out) { out } else { trim::to(text, facts, how.budget, how.counter) }
}

fn lost_in(text: &str, facts: &[Fact]) -> Vec<usize> {
    missing_in(&Sheet::of(text), facts)
}

fn chosen<'a>(facts: &'a [Fact], places: &[usize]) -> Vec<&'a Fact> {
    places.iter().filter_map(|&at| facts.get(at)).collect()
}

/// The report of the final text, told apart by what the draft kept itself.
fn report(before: &Audit, after: Audit, facts: &[Fact]) -> AuditReport {
    let mut report = AuditReport { facts: facts.len() as u32, ..AuditReport::default() };
    let lost = |missing: &[usize]| {
        let mut lost = vec![false; facts.len()];
        missing.iter().for_each(|&at| lost[at] = true);
        lost
    };
    let (lost_before, lost_after) = (lost(&before.missing), lost(&after.missing));
    for ((fact, before), after) in facts.iter().zip(lost_before).zip(lost_after) {
        let count = report.kinds.entry(fact.kind).or_default();
        count.facts += 1;
        if after {
            report.missing += 1;
        } else if before {
            count.repaired += 1;
            report.repaired += 1;
        } else {
            count.kept += 1;
            report.kept += 1;
        }
    }
    report.coverage = share(report.kept + report.repaired, report.facts);
    // What was removed of the draft, and what stands in the text although it is in no source.
    let mut invented = before.ungrounded.clone();
    invented.extend(after.ungrounded);
    report.ungrounded = names(&invented);
    report
}

/// The sheet of a text, for those who only need to know where facts stand.
fn lines_of(text: &str, facts: &[Fact]) -> Vec<Option<usize>> {
    let sheet = Sheet::of(text);
    facts.iter().map(|fact| sheet.line_of(fact)).collect()
}
