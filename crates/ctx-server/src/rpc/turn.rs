//! `assemble` and `compact`.

use ctx_core::{
    CompactResult, Compacted, CompactionTrigger, Edit, EntryId, RawJson, Result, Tokens,
};
use serde::Serialize;

use super::dialect::Outgoing;
use super::params;
use super::session::Served;
use crate::hosted::Compacting;

/// The messages of a request, and what was done for them to fit.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Assembled {
    messages: Vec<RawJson>,
    /// The entries that go out, in order.
    ids: Vec<EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt_addition: Option<String>,
    tokens: Tokens,
    limit: Tokens,
    unchanged_prefix: Tokens,
    /// Who changed anything in this request.
    acted: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<Edit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<Compacted>,
    engine: serde_json::Value,
    /// What a person should be told of the engine, each thing once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The outcome of a compaction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Compaction {
    #[serde(flatten)]
    result: CompactResult,
    /// The entry that the summary has in the requests to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_id: Option<EntryId>,
    engine: serde_json::Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Served {
    /// Makes the messages of the next request.
    pub(super) async fn assemble(&mut self, given: params::Assemble) -> Result<Assembled> {
        let session = &mut self.session;
        let pending = match (given.pending_tokens, &given.prompt) {
            (Some(tokens), _) => tokens,
            (None, Some(prompt)) => session.ledger.counter().text(prompt),
            (None, None) => Tokens::ZERO,
        };
        let made = session.assemble(pending, given.now).await?;
        let told = |at: usize| session.history.items().get(at)?.told.text().cloned();
        let (outgoing, ids): (Vec<_>, _) = made
            .outgoing
            .into_iter()
            .map(|out| (Outgoing { told: out.told.and_then(told), message: out.message }, out.id))
            .unzip();
        let written = given.format.unwrap_or(self.format).write(self.format, &outgoing);
        Ok(Assembled {
            messages: written.messages,
            ids,
            system: written.system,
            system_prompt_addition: made.addition,
            tokens: made.tokens,
            limit: made.limit,
            unchanged_prefix: made.unchanged_prefix,
            acted: acted(&made.edits),
            edits: made.edits,
            compactions: made.compactions,
            engine: session.engine_state(),
            warnings: session.warnings(),
        })
    }

    /// Makes the session smaller for good. The result is in the requests that follow.
    pub(super) async fn compact(&mut self, given: params::Compact) -> Result<Compaction> {
        let session = &mut self.session;
        let wanted = Compacting {
            trigger: given.trigger.unwrap_or(CompactionTrigger::Manual),
            force: given.force,
            token_budget: given.token_budget,
            custom_instructions: given.custom_instructions,
            summary_instructions: given.summary_instructions,
            models: None,
            attempt: given.attempt,
            max_attempts: given.max_attempts,
            now: given.now,
        };
        let result = session.compact(wanted).await?;
        let in_force = session.in_force.as_ref().filter(|_| result.compacted);
        let summary_id = in_force.and_then(|in_force| in_force.summary_id()).cloned();
        let warnings = session.warnings();
        Ok(Compaction { result, summary_id, engine: session.engine_state(), warnings })
    }
}

/// The layers and engines that made edits, each once, in the order of their first.
fn acted(edits: &[Edit]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for edit in edits {
        if !names.iter().any(|name| *name == edit.layer) {
            names.push(edit.layer.to_string());
        }
    }
    names
}
