//! Adds to a summary what it lost and takes out what it made up.

mod add;
mod invented;
mod outline;
mod trim;

use ctx_core::{Counter, Tokens};

use crate::audit::{Sheet, audit, names, share};
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

/// Repairs a summary.
///
/// What stands nowhere in the source goes, with the smallest item, sentence or line that holds it, or
/// is marked with `[unverified]`. What is missing is added, most important first, each with its
/// citation `[e:ID]`, into the section where it belongs, else under `## Critical Context`; tokens of
/// one kind share a line. Where demands, decisions or questions find no room, lines that hold nothing
/// of note make some. A draft over the budget loses its least important lines, never a part of one.
///
/// The result is deterministic, is inside the budget by the counter, and repairing it again changes
/// nothing.
#[must_use]
pub fn repair(summary: &str, facts: &[Fact], grounds: &Grounds, how: &Repair<'_>) -> Repaired {
    let before = audit(summary, facts, grounds);
    let mut text = match how.ungrounded {
        _ if before.ungrounded.is_empty() => summary.to_owned(),
        Ungrounded::Remove => invented::remove(summary, facts, grounds),
        Ungrounded::Mark => invented::mark(summary, facts, grounds),
    };
    // Making room for one passage may cost another its line, so that this is done until it settles.
    for _ in 0..4 {
        let next = once(&text, facts, grounds, how);
        if next == text {
            break;
        }
        text = next;
    }
    let after = audit(&text, facts, grounds);
    let report = report(&before, after, facts);
    Repaired { text, report }
}

fn once(text: &str, facts: &[Fact], grounds: &Grounds, how: &Repair<'_>) -> String {
    let mut text = text.to_owned();
    if !how.fits(&text) {
        text = trim::to(&text, facts, how.budget.scale(TRIMMED), how.counter);
    }
    let mut missing = audit(&text, facts, grounds).missing;
    let roomier = trim::make_room(&text, facts, &missing, how);
    if let Some(roomier) = roomier {
        text = roomier;
        missing = audit(&text, facts, grounds).missing;
    }
    // Passages first: the paths and names in them need no line of their own then.
    let passages: Vec<usize> = missing
        .into_iter()
        .filter(|&at| facts.get(at).is_some_and(|f| f.kind.is_passage()))
        .collect();
    if !passages.is_empty() {
        text = add::add(&text, &chosen(facts, &passages), how);
    }
    let missing = audit(&text, facts, grounds).missing;
    let text = add::add(&text, &chosen(facts, &missing), how);
    if how.fits(&text) { text } else { trim::to(&text, facts, how.budget, how.counter) }
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
