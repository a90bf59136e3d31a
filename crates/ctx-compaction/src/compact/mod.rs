//! Runs one compaction from start to end.

mod anonymize;
mod audited;
mod layer;
mod ledger;
mod previous_facts;
mod run;

use std::sync::Arc;

use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView, Entry,
    IdentifierPolicy, Message, Result, Role, SummaryInstructions, SummaryModels, Timestamp,
    TokenLedger, Tokens,
};
use serde::{Deserialize, Serialize};

use crate::{CallLog, CompactionPlan, Config, History, PlanLimits, PlanOutcome, Receipt, plan};
use ctx_facts::{FileLists, without_citations};

pub use layer::Compaction;

use run::CompactionRun;

/// The layer's name, in manifests and projections.
pub(crate) const ID: &str = "compaction";

/// The compactor's `details` of a compaction entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Files that were read and modified, including those from earlier compactions.
    #[serde(flatten)]
    pub files: FileLists,
    /// When history was cut in an emergency, without a preceding memory flush.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<Timestamp>,
    /// The receipt.
    pub receipt: Receipt,
}

/// The options of one compaction.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// What triggered it.
    pub trigger: CompactionTrigger,
    /// The number of the attempt to fit one request, from 1.
    pub attempt: u32,
    /// Compact even if the session is small.
    pub force: bool,
    /// The maximum size of the request afterwards.
    pub token_budget: Option<Tokens>,
    /// The user's focus for the summary. Untrusted.
    pub focus: Option<String>,
    /// Instructions for writing the summary.
    pub instructions: SummaryInstructions,
    /// The models that may write it.
    pub models: Option<SummaryModels>,
    /// Whether the models may be called. If not, the receipt has a note.
    pub waits_for_models: bool,
    /// The current time.
    pub now: Timestamp,
}

impl Details {
    /// Returns the details as JSON for a compaction entry.
    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }

    /// Parses the details of a compaction entry, if ctx wrote them.
    #[must_use]
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        Self::deserialize(json).ok()
    }
}

impl CompactOptions {
    /// Returns how the summary treats identifiers.
    fn policy(&self, config: &Config) -> IdentifierPolicy {
        self.instructions.identifier_policy.unwrap_or(config.identifier_policy)
    }

    /// Creates default options: first attempt, no token budget, no models.
    ///
    /// ```
    /// use ctx_compaction::CompactOptions;
    /// use ctx_core::{CompactionTrigger, Timestamp, Tokens};
    ///
    /// let options = CompactOptions::new(CompactionTrigger::Manual, Timestamp(0));
    /// let options = CompactOptions { force: true, token_budget: Some(Tokens(8_000)), ..options };
    /// assert_eq!(options.attempt, 1);
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
            waits_for_models: true,
            now,
        }
    }

    /// Creates options from a request to an engine.
    #[must_use]
    pub(crate) fn of(request: &CompactRequest) -> Self {
        Self {
            trigger: request.trigger,
            attempt: request.attempt,
            force: request.force,
            token_budget: request.token_budget,
            focus: request.custom_instructions.clone(),
            instructions: request.summary_instructions.clone(),
            models: request.models.clone(),
            waits_for_models: request.turn.waits_for_models,
            now: request.turn.now,
        }
    }
}

/// A summary that a client's own model wrote.
#[derive(Clone, Debug)]
pub struct ClientSummary {
    /// The compaction as it is recorded: `details` has the receipt.
    pub compacted: Compacted,
    /// The facts that the summary lost.
    pub lost: String,
}

impl ClientSummary {
    /// The first line of what is put back.
    pub const NOTE: &'static str = "[ctx: the summary of the earlier conversation left this out]";

    /// Maximum size of what is put back.
    pub const LOST_TOKENS: Tokens = Tokens(600);

    /// Returns the history of a summary of all these entries. Its newest message is another one, as
    /// [`audit`](Self::audit) needs it.
    ///
    /// # Errors
    ///
    /// Those of reading an entry.
    pub fn history(
        ledger: TokenLedger,
        entries: impl IntoIterator<Item = Arc<Entry>>,
    ) -> Result<History> {
        let mut view = ContextView::new(ledger);
        for entry in entries {
            view.append(entry)?;
        }
        let ask = Message::text(Role::User, "Summarise the conversation.");
        view.append(Arc::new(Entry::in_memory("ctx-ask", ask)))?;
        History::of(&view)
    }

    /// Audits the summary of a history whose newest message is not part of it; `None` if there is
    /// nothing to summarise. `lost` has at most `room` tokens.
    #[must_use]
    pub fn audit(history: History, summary: &str, room: Tokens, now: Timestamp) -> Option<Self> {
        let plan = CompactionPlan::whole(&history)?;
        let options = CompactOptions::new(CompactionTrigger::Manual, now);
        let run = CompactionRun::new(history, plan, Arc::default(), options, false);
        let (judged, lost) = run.judge(summary, room);
        let compacted = run.compacted(judged, CallLog::default());
        Some(Self { compacted, lost: Self::text(&lost) })
    }

    /// Returns a summary as a client gets it: without citations, whose entries it does not know.
    #[must_use]
    pub fn text(summary: &str) -> String {
        let line = |line: &str| match line.contains("[e:") {
            true => without_citations(line),
            false => line.trim_end().to_owned(),
        };
        summary.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Compacts a history: plan, draft, audit, repair, receipt. Stores nothing.
///
/// The models are tried in order, then the extractive summariser, then history is cut without a
/// summary. A text that would not shrink the request is rejected, and the next rung is tried. The
/// result is a smaller request, or nothing if nothing can be gained.
///
/// # Errors
///
/// Those of the plan, such as reading an entry from a missing file.
pub async fn compact(
    history: History,
    config: Arc<Config>,
    options: CompactOptions,
) -> Result<CompactResult> {
    if !options.force
        && options.trigger == CompactionTrigger::Threshold
        && history.used() <= config.threshold(&history.ledger)
    {
        return Ok(CompactResult::nothing("the session is below the threshold"));
    }
    let emergency = options.trigger == CompactionTrigger::Overflow
        && options.attempt >= config.emergency.from_attempt;
    // A provider's error that the prompt is too long overrides the estimate.
    let force = options.force || options.trigger == CompactionTrigger::Overflow;
    let of_threshold = (options.trigger == CompactionTrigger::Threshold)
        .then(|| config.target_after_threshold(&history.ledger));
    let token_budget = options.token_budget.into_iter().chain(of_threshold).min();
    let limits = PlanLimits { token_budget, force, emergency };
    let plan = match plan(&history, &config, limits)? {
        PlanOutcome::Compact(plan) => plan,
        PlanOutcome::Nothing(reason) => return Ok(CompactResult::nothing(reason)),
    };
    let run = CompactionRun::new(history, plan, config, options, emergency);
    let mut log = CallLog::default();
    let settled = match run.call_models(&mut log).await {
        Some(settled) => Some(settled),
        None => run.extract(&mut log).or_else(|| run.cut_only()),
    };
    Ok(match settled {
        Some(settled) => CompactResult {
            ok: true,
            compacted: true,
            reason: None,
            result: Some(run.compacted(settled, log)),
        },
        None => CompactResult::nothing("a summary would not be shorter"),
    })
}
