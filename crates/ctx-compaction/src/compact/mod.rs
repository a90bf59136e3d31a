//! One compaction from beginning to end.

mod carried;
mod settle;
mod work;

use std::sync::Arc;

use ctx_core::{
    CompactRequest, CompactResult, CompactionTrigger, IdentifierPolicy, Result,
    SummaryInstructions, SummaryModels, Timestamp, Tokens,
};
use serde::{Deserialize, Serialize};

use crate::{Config, FileLists, History, Limits, Log, Planned, Receipt, plan};

use work::Work;

/// The layer's name, in manifests and projections.
pub(crate) const ID: &str = "compaction";

/// What the compactor has to say in the `details` of a compaction entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Files that were read and modified, earlier compactions included.
    #[serde(flatten)]
    pub files: FileLists,
    /// When history was cut in an emergency, without a memory flush before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<Timestamp>,
    /// What was done.
    pub receipt: Receipt,
}

/// Why and how one compaction runs.
#[derive(Clone, Debug)]
pub struct Order {
    /// Why it runs.
    pub trigger: CompactionTrigger,
    /// Which attempt at getting one request through it is, from 1.
    pub attempt: u32,
    /// Compact even if the session is small.
    pub force: bool,
    /// What the request may measure afterwards.
    pub token_budget: Option<Tokens>,
    /// What the user wants the summary to dwell on. Untrusted.
    pub focus: Option<String>,
    /// How the summary is to be written.
    pub instructions: SummaryInstructions,
    /// The models that may write it.
    pub models: Option<SummaryModels>,
    /// The time.
    pub now: Timestamp,
}

impl Details {
    /// The details in the JSON of a compaction entry.
    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }

    /// Reads the details of a compaction entry, if ctx wrote them.
    #[must_use]
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        Self::deserialize(json).ok()
    }
}

impl Order {
    /// What the summary does with identifiers.
    fn policy(&self, config: &Config) -> IdentifierPolicy {
        self.instructions.identifier_policy.unwrap_or(config.identifier_policy)
    }

    /// An order without wishes: the first attempt, no target of its own, and no models.
    ///
    /// ```
    /// use ctx_compaction::Order;
    /// use ctx_core::{CompactionTrigger, Timestamp, Tokens};
    ///
    /// let order = Order::new(CompactionTrigger::Manual, Timestamp(0));
    /// let order = Order { force: true, token_budget: Some(Tokens(8_000)), ..order };
    /// assert_eq!(order.attempt, 1);
    /// ```
    #[must_use]
    pub fn new(trigger: CompactionTrigger, now: Timestamp) -> Self {
        Self {
            trigger,
            attempt: 1,
            force: false,
            token_budget: None,
            focus: None,
            instructions: SummaryInstructions::default(),
            models: None,
            now,
        }
    }

    /// The order in a request to an engine.
    #[must_use]
    pub fn of(request: &CompactRequest) -> Self {
        Self {
            trigger: request.trigger,
            attempt: request.attempt,
            force: request.force,
            token_budget: request.token_budget,
            focus: request.custom_instructions.clone(),
            instructions: request.summary_instructions.clone(),
            models: request.models.clone(),
            now: request.turn.now,
        }
    }
}

/// Compacts a history: plan, draft, audit, repair, receipt. Nothing is stored here.
///
/// Model after model is asked, then the extractive summariser writes, then history is cut without
/// a summary. A text that would not shrink the request is not taken, and the ladder goes on: in the
/// end there is a smaller request, or there was nothing to gain.
///
/// # Errors
///
/// What the plan may give: reading an entry from a file that is gone.
pub async fn compact(history: History, config: Arc<Config>, order: Order) -> Result<CompactResult> {
    if !order.force
        && order.trigger == CompactionTrigger::Threshold
        && history.used() <= config.threshold(&history.ledger)
    {
        return Ok(CompactResult::nothing("the session is below the threshold"));
    }
    let emergency = order.trigger == CompactionTrigger::Overflow
        && order.attempt >= config.emergency.from_attempt;
    // The provider's word that the prompt is too long counts more than our own estimate.
    let force = order.force || order.trigger == CompactionTrigger::Overflow;
    let of_threshold = (order.trigger == CompactionTrigger::Threshold)
        .then(|| config.target_after_threshold(&history.ledger));
    let token_budget = order.token_budget.into_iter().chain(of_threshold).min();
    let limits = Limits { token_budget, force, emergency };
    let plan = match plan(&history, &config, limits)? {
        Planned::Compact(plan) => plan,
        Planned::Nothing(reason) => return Ok(CompactResult::nothing(reason)),
    };
    let work = Work::new(history, plan, config, order, emergency);
    let mut log = Log::default();
    let settled = match work.ask_models(&mut log).await {
        Some(settled) => Some(settled),
        None => work.extract(&mut log).or_else(|| work.cut_only()),
    };
    Ok(match settled {
        Some(settled) => CompactResult {
            ok: true,
            compacted: true,
            reason: None,
            result: Some(work.compacted(settled, log)),
        },
        None => CompactResult::nothing("a summary would be no shorter"),
    })
}
