//! What a compaction did, for people and for `details` of its entry.

use std::collections::BTreeMap;

use ctx_core::{CompactionTrigger, EntryId, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::{FactKind, HardPrunePlan, Strategy};

/// Which rung of the ladder gave the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// A model summarised all of it.
    Model,
    /// A model summarised all but the messages that are too large for it.
    WithoutOversized,
    /// The extractive summariser, which needs no model.
    Extractive,
    /// No summary: the newest history within its share of the window.
    HardPrune,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The model.
    pub model: String,
    /// What it was asked for: `part 1 of 2`, `merge`, `turn prefix`.
    pub task: String,
    /// Whether an answer came that could be used.
    pub ok: bool,
    /// Whether an answer came at all.
    #[serde(default)]
    pub answered: bool,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the provider reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost, in USD; absent where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// What became of the facts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindCount {
    /// How many there are in what was removed.
    pub facts: u32,
    /// How many the draft kept.
    pub kept: u32,
    /// How many repair added.
    pub repaired: u32,
}

/// The audit of the exact text that was stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// Facts that had to be kept.
    pub facts: u32,
    /// How many the draft kept.
    pub kept: u32,
    /// How many repair added.
    pub repaired: u32,
    /// How many found no room.
    pub missing: u32,
    /// Share of the facts that stand in the stored text, 0 to 1; 1 where there were none.
    pub coverage: f64,
    /// Identifiers and numbers of the draft that stand nowhere in the source, and so were removed.
    pub ungrounded: Vec<String>,
    /// Counts by kind.
    pub kinds: BTreeMap<FactKind, KindCount>,
}

/// What a compaction covered, cost and kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Why it ran.
    pub trigger: CompactionTrigger,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// Whether it cut to the emergency target.
    pub emergency: bool,
    /// The first entry that the summary stands for.
    pub first_entry_id: EntryId,
    /// The last entry that the summary stands for.
    pub last_entry_id: EntryId,
    /// The first entry kept.
    pub first_kept_entry_id: EntryId,
    /// Messages that the summary stands for.
    pub messages: u32,
    /// Messages kept as they are.
    pub kept_messages: u32,
    /// Whether the cut lies inside a turn.
    pub split_turn: bool,
    /// Tokens of the request before.
    pub tokens_before: Tokens,
    /// Tokens of the request after.
    pub tokens_after: Tokens,
    /// Tokens of messages before the cut that stay all the same: the newest user message and what
    /// is pinned.
    #[serde(default)]
    pub staying_tokens: Tokens,
    /// Tokens of the stored summary.
    pub summary_tokens: Tokens,
    /// How the summary was made.
    pub strategy: Strategy,
    /// Which rung of the ladder gave it.
    pub rung: Rung,
    /// The model that wrote it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Every call, also those that failed.
    pub calls: Vec<Call>,
    /// What the calls cost, in USD; absent where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The audit.
    pub audit: AuditReport,
    /// What was not sent to the model, and why the ladder went on.
    pub notes: Vec<String>,
    /// Kept messages that were shortened.
    pub shortened: Vec<EntryId>,
    /// What a hard prune left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<HardPrunePlan>,
}
