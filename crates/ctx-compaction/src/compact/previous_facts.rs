//! Facts of the previous summary that the new one must keep.

use ctx_extract::{Field, StructuredSummary};
use ctx_facts::{FactKind, PreviousSummary, RequiredFact};

/// Old constraints and decisions rank below new ones.
const WEIGHT: f32 = 0.1;

/// Adds the constraints and decisions of an earlier summary to the facts of the messages. Otherwise
/// standing instructions would erode with every compaction.
pub(super) fn add(facts: &mut Vec<RequiredFact>, previous: &PreviousSummary) {
    let summary = StructuredSummary::parse(&previous.text);
    let fields =
        [(FactKind::Constraint, Field::Constraints), (FactKind::Decision, Field::Decisions)];
    for (kind, field) in fields {
        for line in summary.lines(field) {
            let Some(entry) = line.cites.last().or(previous.entry.as_ref()) else { continue };
            let fact = RequiredFact {
                kind,
                text: line.text.clone(),
                entry: entry.clone(),
                weight: WEIGHT,
                by_user: kind == FactKind::Constraint,
                order: 0,
            };
            if !facts.iter().any(|known| known.text == fact.text) {
                facts.push(fact);
            }
        }
    }
    facts.sort_by_key(|fact| fact.kind);
}
