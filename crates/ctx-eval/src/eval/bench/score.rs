//! The figures of an arm, as sums that can be added.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;

use super::handles::HandleKind;
use crate::eval::share::Share;

/// Handles that were needed next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NeededFigures {
    /// Handles in the request.
    pub present: Share,
    /// Handles in the request, and handles that one retrieval call finds.
    pub within_reach: Share,
    /// Handles in the request, by kind.
    pub kinds: BTreeMap<HandleKind, Share>,
}

impl NeededFigures {
    pub(super) fn add(&mut self, kind: HandleKind, present: bool, found: bool) {
        self.present.add(present);
        self.within_reach.add(present || found);
        self.kinds.entry(kind).or_default().add(present);
    }
}

impl AddAssign<&Self> for NeededFigures {
    fn add_assign(&mut self, other: &Self) {
        self.present += other.present;
        self.within_reach += other.within_reach;
        add_all(&mut self.kinds, &other.kinds);
    }
}

/// Planted statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlantedFigures {
    /// All but the distractors.
    pub statements: Share,
    /// The same by type.
    pub types: BTreeMap<String, Share>,
    /// Updates, and how many new values are kept.
    pub updates: Share,
    /// Updates with both values in the request, the old value not marked as old.
    pub stale_beside_new: u64,
    /// Updates with only the old value in the request.
    pub only_stale: u64,
    /// Distractors.
    pub distractors: Share,
    /// Pairs of statements that resemble each other, and how many pairs are kept whole.
    pub pairs: Share,
}

impl AddAssign<&Self> for PlantedFigures {
    fn add_assign(&mut self, other: &Self) {
        self.statements += other.statements;
        add_all(&mut self.types, &other.types);
        self.updates += other.updates;
        self.stale_beside_new += other.stale_beside_new;
        self.only_stale += other.only_stale;
        self.distractors += other.distractors;
        self.pairs += other.pairs;
    }
}

/// The figures of the receipts of compactions, to compare with the outside labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptFigures {
    /// The number of receipts.
    pub receipts: u64,
    /// The sum of their coverages.
    pub coverage: f64,
    /// The sum of the absolute differences between the coverage and the share of planted statements
    /// kept.
    pub gap: f64,
}

impl AddAssign for ReceiptFigures {
    fn add_assign(&mut self, other: Self) {
        self.receipts += other.receipts;
        self.coverage += other.coverage;
        self.gap += other.gap;
    }
}

/// Everything counted of one arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The number of histories compacted.
    pub histories: u64,
    /// Tokens of the histories.
    pub history_tokens: u64,
    /// Tokens of the requests afterwards.
    pub tokens: u64,
    /// Needed handles that the agent could know only from before the cut.
    pub strict: NeededFigures,
    /// All handles needed next.
    pub loose: NeededFigures,
    /// Changed files.
    pub files: Share,
    /// Open items of the todo list.
    pub todos: Share,
    /// Planted statements.
    pub planted: PlantedFigures,
    /// Receipts.
    pub receipt: ReceiptFigures,
    /// The cost of compactions and of requests within the horizon, in USD; null without prices.
    pub cost_usd: Option<f64>,
    /// The number of compactions.
    pub compactions: u64,
    /// Their time in milliseconds. It differs from run to run.
    pub millis: f64,
    /// Histories that the arm did not bring to the target, so that the oldest text was cut.
    pub wedges: u64,
    /// Histories on which the arm failed.
    pub failures: u64,
    /// The reason of the first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl AddAssign<&Self> for Figures {
    fn add_assign(&mut self, other: &Self) {
        self.histories += other.histories;
        self.history_tokens += other.history_tokens;
        self.tokens += other.tokens;
        self.strict += &other.strict;
        self.loose += &other.loose;
        self.files += other.files;
        self.todos += other.todos;
        self.planted += &other.planted;
        self.receipt += other.receipt;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(one), Some(two)) => Some(one + two),
            (one, two) => one.or(two),
        };
        self.compactions += other.compactions;
        self.millis += other.millis;
        self.wedges += other.wedges;
        self.failures += other.failures;
        self.failed = self.failed.take().or_else(|| other.failed.clone());
    }
}

fn add_all<K: Ord + Clone>(sums: &mut BTreeMap<K, Share>, others: &BTreeMap<K, Share>) {
    for (key, share) in others {
        *sums.entry(key.clone()).or_default() += *share;
    }
}
