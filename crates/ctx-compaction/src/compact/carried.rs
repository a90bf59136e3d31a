//! What the summary before kept, and this one must keep.

use crate::{Fact, FactKind, Field, PreviousSummary, StructuredSummary};

/// Old demands and decisions rank below those that were said since.
const WEIGHT: f32 = 0.1;

/// Adds the constraints and decisions of an earlier summary to the facts of the messages. Standing
/// instructions are lost by a little with every compaction where nobody looks after them.
pub(super) fn add(facts: &mut Vec<Fact>, previous: &PreviousSummary) {
    let summary = StructuredSummary::parse(&previous.text);
    let fields =
        [(FactKind::Constraint, Field::Constraints), (FactKind::Decision, Field::Decisions)];
    for (kind, field) in fields {
        for line in summary.lines(field) {
            let Some(entry) = line.cites.last().or(previous.entry.as_ref()) else { continue };
            let fact = Fact { kind, text: line.text.clone(), entry: entry.clone(), weight: WEIGHT };
            if !facts.iter().any(|known| known.text == fact.text) {
                facts.push(fact);
            }
        }
    }
    facts.sort_by_key(|fact| fact.kind);
}
