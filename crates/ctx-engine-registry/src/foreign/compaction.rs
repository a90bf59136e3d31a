//! Compaction by an engine, and the checks of its result.

use ctx_core::{
    CompactRequest, Compacted, CompactionTrigger, ContextView, EntryId, Message, NodeState, Role,
    Tokens,
};
use ctx_engine_sdk::protocol::{self, CompactResult, IdentifierPolicy, Trigger, verb};

use super::client::{budget, decode, turn_of};
use super::rejection::tidy;
use super::{EngineClient, EngineError, Rejection, ViewSync};

/// The outcome of a compaction by an engine.
#[derive(Debug)]
pub(super) enum CompactionOutcome {
    /// The compaction to apply.
    Compacted(Compacted),
    /// The engine found nothing to compact.
    Nothing(String),
    /// The engine leaves it to the host.
    Declined(String),
}

impl EngineClient {
    /// Calls `compact`, and checks the answer.
    pub(super) async fn compact(
        &mut self,
        request: &CompactRequest,
    ) -> Result<CompactionOutcome, EngineError> {
        let view = &request.view;
        let ask = |update| protocol::Compact { update, ..params(request) };
        let (answer, sync) =
            self.call_with_update(&request.session_id, view, verb::COMPACT, ask).await?;
        let outcome =
            decode(&answer).and_then(|result| Ok(outcome(result, view, &sync, &self.info.id)?));
        self.remember(&request.session_id, sync, &outcome);
        outcome
    }
}

fn params(request: &CompactRequest) -> protocol::Compact {
    let instructions = &request.summary_instructions;
    protocol::Compact {
        session_id: request.session_id.clone(),
        update: protocol::Update::default(),
        budget: budget(&request.view),
        turn: turn_of(&request.turn),
        token_budget: request.token_budget.map(Tokens::get),
        force: request.force,
        trigger: match request.trigger {
            CompactionTrigger::Overflow => Trigger::Overflow,
            CompactionTrigger::Manual => Trigger::Manual,
            CompactionTrigger::Threshold => Trigger::Threshold,
        },
        attempt: request.attempt,
        max_attempts: request.max_attempts,
        custom_instructions: request.custom_instructions.clone(),
        identifier_policy: instructions.identifier_policy.map(|policy| match policy {
            ctx_core::IdentifierPolicy::Preserve => IdentifierPolicy::Preserve,
            ctx_core::IdentifierPolicy::Anonymize => IdentifierPolicy::Anonymize,
            ctx_core::IdentifierPolicy::Off => IdentifierPolicy::Off,
            ctx_core::IdentifierPolicy::Custom => IdentifierPolicy::Custom,
        }),
        identifier_instructions: instructions.identifier_instructions.clone(),
    }
}

fn outcome(
    answer: CompactResult,
    view: &ContextView,
    sync: &ViewSync,
    engine: &str,
) -> Result<CompactionOutcome, Rejection> {
    let reason = answer.reason.as_deref().map_or_else(|| "no reason given".into(), tidy);
    match (answer.compacted, answer.result) {
        (true, Some(result)) => {
            Ok(CompactionOutcome::Compacted(checked(result, view, sync, engine)?))
        }
        (true, None) => {
            Err(Rejection::Malformed { why: "it reported a compaction without a result".into() })
        }
        (false, _) if answer.ok => Ok(CompactionOutcome::Nothing(reason)),
        (false, _) => Ok(CompactionOutcome::Declined(reason)),
    }
}

/// Returns the compaction with the host's own counts, if it can be applied and makes the session
/// smaller.
fn checked(
    answer: protocol::Compacted,
    view: &ContextView,
    sync: &ViewSync,
    engine: &str,
) -> Result<Compacted, Rejection> {
    if answer.summary.trim().is_empty() {
        return Err(Rejection::EmptySummary);
    }
    let id = &answer.first_kept_entry_id;
    let at = sync.position(view, id).ok_or_else(|| Rejection::unknown(id))?;
    let first_kept: EntryId = view.node(at).entry().id().clone();
    // An inserted row is in no transcript, so it is missing when the session is read again.
    if view.node(at).state() == NodeState::Inserted {
        return Err(Rejection::unknown(id));
    }
    let cut = view.cut_at(&first_kept);
    let cut = cut.map_err(|_| Rejection::GroupSplit { id: tidy(id) })?;
    let (mut freed, mut staying) = (0, Vec::new());
    for at in 0..cut {
        let node = view.node(at);
        if !node.is_live() {
            continue;
        }
        // As in the view, earlier summaries are removed and other protected rows stay.
        if *node.role() == Role::CompactionSummary || !view.is_protected(at) {
            freed += node.tokens().get();
        } else if node.state() != NodeState::Inserted && *node.role() != Role::System {
            staying.push(node.entry().id().clone());
        }
    }
    let summary = Message::text(Role::CompactionSummary, answer.summary.clone());
    let added = view.ledger().count(&summary).get();
    let ledger = view.ledger();
    let before = view.total().get();
    let after = (before + added).saturating_sub(freed);
    let whole = |messages| ledger.corrected(Tokens::saturating_from(messages) + ledger.fixed());
    let (tokens_before, tokens_after) = (whole(before), whole(after));
    if added >= freed {
        return Err(Rejection::NotSmaller { before: tokens_before, after: tokens_after });
    }
    let details = answer.details.unwrap_or_default();
    Ok(Compacted {
        summary: answer.summary,
        first_kept_entry_id: first_kept,
        tokens_before,
        tokens_after: Some(tokens_after),
        details: Some(serde_json::json!({ "engine": engine, "details": details })),
        staying,
        projections: Vec::new(),
    })
}
