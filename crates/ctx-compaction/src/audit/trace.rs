//! Reports where each fact is after its message left the context.

use ctx_core::EntryId;
use serde::Serialize;

use ctx_facts::{CitedMessage, RequiredFact, required_facts};

use super::{FoundFact, find_facts};

/// Where a fact is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "in")]
pub enum FactStatus {
    /// In the summary.
    Summary {
        /// The line that contains it.
        line: String,
    },
    /// In a message that was kept.
    Kept {
        /// The id of its entry.
        entry: EntryId,
    },
    /// Nowhere in the context. The original is still in the transcript.
    Lost,
}

/// A fact of a message that left the context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedFact {
    /// The fact.
    #[serde(flatten)]
    pub fact: RequiredFact,
    /// Where it is now.
    #[serde(rename = "survives")]
    pub status: FactStatus,
}

/// Returns where each fact of the covered messages is, most important first: in the summary, else
/// in a kept message, else lost.
#[must_use]
pub fn trace_facts(
    covered: &[CitedMessage],
    kept: &[CitedMessage],
    summary: &str,
) -> Vec<TracedFact> {
    let facts = required_facts(covered);
    let found = find_facts(summary, summary, &facts);
    let kept: Vec<_> = kept.iter().map(|said| (&said.id, said.message.plain_text())).collect();
    let line = |at| summary.lines().nth(at).unwrap_or_default().trim().to_owned();
    let traced = |(fact, found): (RequiredFact, Option<FoundFact>)| {
        let status = match found {
            Some(found) => FactStatus::Summary { line: line(found.line) },
            None => {
                let held = kept.iter().find(|(_, text)| text.contains(&fact.text));
                held.map_or(FactStatus::Lost, |&(id, _)| FactStatus::Kept { entry: id.clone() })
            }
        };
        TracedFact { fact, status }
    };
    facts.into_iter().zip(found).map(traced).collect()
}
