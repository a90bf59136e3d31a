//! The record of a compaction, for people and for `details` of its entry.

use std::collections::{BTreeMap, BTreeSet};

use ctx_core::{CompactionTrigger, EntryId, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::audit::{coverage, names};
use crate::{FoundFact, HardPrunePlan, Strategy, UnsupportedClaim};
use ctx_facts::{FactKind, RequiredFact};

/// The rung of the ladder that produced the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// A model summarised all of it.
    Model,
    /// A model summarised all but the messages that are too large for it.
    WithoutOversized,
    /// The extractive summariser, which needs no model.
    Extractive,
    /// No summary: the newest history is kept, up to its share of the context window.
    HardPrune,
}

/// One call to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryCall {
    /// The model.
    pub model: String,
    /// Its task: `part 1 of 2`, `merge`, `turn prefix`.
    pub task: String,
    /// Whether the answer was usable.
    pub ok: bool,
    /// Whether there was an answer.
    #[serde(default)]
    pub answered: bool,
    /// The error, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The usage the provider reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost in USD; absent if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The duration in milliseconds.
    pub millis: u64,
}

/// Counts for the facts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindCount {
    /// Facts in the removed messages.
    pub facts: u32,
    /// Facts that the draft kept.
    pub kept: u32,
    /// Facts that repair added.
    pub repaired: u32,
    /// Facts that the stored text has in other words.
    #[serde(default)]
    pub paraphrased: u32,
    /// Facts that did not fit.
    #[serde(default)]
    pub lost: u32,
    /// Statements that no longer hold: a later one replaced or withdrew them.
    #[serde(default)]
    pub superseded: u32,
}

/// The audit of one round: the facts of the messages that this compaction removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundReport {
    /// Facts of these messages.
    pub facts: u32,
    /// Facts in the stored text.
    pub kept: u32,
    /// Their share, weighted as in [`AuditReport::coverage`].
    pub coverage: f64,
}

/// The audit of the exact text that was stored, against all messages that it covers, over all
/// rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// Required facts.
    pub facts: u32,
    /// Facts that the draft kept.
    pub kept: u32,
    /// Facts that repair added.
    pub repaired: u32,
    /// The lines of the stored text with facts that repair added, from 0.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub repaired_lines: BTreeSet<u32>,
    /// Facts that did not fit.
    pub missing: u32,
    /// Share of the facts in the stored text, 0 to 1; 1 if there were none. Each fact has the weight
    /// [`RequiredFact::importance`](ctx_facts::RequiredFact::importance).
    pub coverage: f64,
    /// Statements that no longer hold.
    #[serde(default)]
    pub superseded: u32,
    /// The same for the messages that this compaction removed.
    #[serde(default)]
    pub round: RoundReport,
    /// Identifiers and numbers of the draft that were removed as the source does not contain them.
    pub ungrounded: Vec<String>,
    /// Lines of the draft that spoke for the user although only a tool result says it. They were moved to
    /// `## Critical Context`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reattributed: Vec<String>,
    /// Counts by kind.
    pub kinds: BTreeMap<FactKind, KindCount>,
}

impl AuditReport {
    /// Counts the facts by where the draft and the stored text keep each of them.
    pub(crate) fn of(
        facts: &[RequiredFact],
        draft: &[Option<FoundFact>],
        stored: &[Option<FoundFact>],
        ungrounded: &[UnsupportedClaim],
    ) -> Self {
        let kept = facts.iter().zip(stored.iter().map(Option::is_some));
        let mut report = Self {
            facts: facts.len() as u32,
            coverage: coverage(kept),
            ungrounded: names(ungrounded),
            ..Self::default()
        };
        for ((fact, before), found) in facts.iter().zip(draft).zip(stored) {
            let count = report.kinds.entry(fact.kind).or_default();
            count.facts += 1;
            count.paraphrased += u32::from(found.is_some_and(|found| !found.is_exact));
            match (before, found) {
                (_, None) => {
                    count.lost += 1;
                    report.missing += 1;
                }
                (None, Some(found)) => {
                    count.repaired += 1;
                    report.repaired += 1;
                    report.repaired_lines.insert(found.line as u32);
                }
                (Some(_), Some(_)) => {
                    count.kept += 1;
                    report.kept += 1;
                }
            }
        }
        report
    }
}

/// What a compaction covered, cost and kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// What triggered it.
    pub trigger: CompactionTrigger,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether it cut to the emergency target.
    pub emergency: bool,
    /// The first summarised entry.
    pub first_entry_id: EntryId,
    /// The last summarised entry.
    pub last_entry_id: EntryId,
    /// The first entry kept.
    pub first_kept_entry_id: EntryId,
    /// The number of summarised messages.
    pub messages: u32,
    /// The number of kept messages.
    pub kept_messages: u32,
    /// Whether the cut is inside a turn.
    pub split_turn: bool,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after.
    pub tokens_after: Tokens,
    /// Tokens of messages before the cut that stay anyway: the newest user message and pinned ones.
    #[serde(default)]
    pub staying_tokens: Tokens,
    /// Tokens of the stored summary.
    pub summary_tokens: Tokens,
    /// The strategy of the summary.
    pub strategy: Strategy,
    /// The rung of the ladder that produced it.
    pub rung: Rung,
    /// The model that wrote it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Every call, including failed ones.
    pub calls: Vec<SummaryCall>,
    /// The cost of the calls in USD; absent if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The audit.
    pub audit: AuditReport,
    /// What was not sent to the model, and why the ladder continued.
    pub notes: Vec<String>,
    /// Kept messages that were truncated.
    pub shortened: Vec<EntryId>,
    /// What a hard prune dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<HardPrunePlan>,
}
