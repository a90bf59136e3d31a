//! `assemble` and `compact`.

use ctx_core::{
    AssembleRequest, CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView,
    Edit, EntryId, NodeState, RawJson, Result, Tokens,
};
use serde::Serialize;

use super::dialect::Outgoing;
use super::params;
use super::session::{Session, sent};

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

impl Session {
    /// Makes the messages of the next request.
    pub(super) async fn assemble(&mut self, given: params::Assemble) -> Result<Assembled> {
        self.ingest().await?;
        let mut view = self.take_view()?;
        let pending = match (given.pending_tokens, &given.prompt) {
            (Some(tokens), _) => tokens,
            (None, Some(prompt)) => self.ledger.counter().text(prompt),
            (None, None) => Tokens::ZERO,
        };
        view.ledger_mut().set_pending(pending);
        let turn = self.turn(given.now);
        let now = turn.now;
        let request = AssembleRequest { session_id: self.id.clone(), view, turn };
        let assembled = self.engine.assemble(request).await;
        self.watch();
        let assembled = assembled?;
        let mut view = assembled.into_view();
        let addition = view.system_addition().map(str::to_owned);
        let compactions = self.note(&mut view);
        let finished = view.finish();
        let more = self.note(&mut view);
        self.memory.archive(&view, !(compactions.is_empty() && more.is_empty()));
        let (told, count) = (std::mem::take(&mut self.edits_told), view.edits().len());
        let answer = finished.and_then(|finished| {
            let last = sent(&view, addition.clone())?;
            let unchanged_prefix = self.sent.unchanged(&last);
            self.sent = last;
            // Edits that made the view what it was before are no news.
            let news = finished.edits.len().min(count.saturating_sub(told));
            let edits = finished.edits[finished.edits.len() - news..].to_vec();
            let (outgoing, ids) = self.outgoing(&view)?;
            let written = given.format.unwrap_or(self.format).write(self.format, &outgoing);
            Ok(Assembled {
                messages: written.messages,
                ids,
                system: written.system,
                system_prompt_addition: addition,
                tokens: finished.tokens,
                limit: view.ledger().limit(),
                unchanged_prefix,
                acted: acted(&edits),
                edits,
                compactions,
                engine: self.engine_state(),
                warnings: self.warnings(),
            })
        });
        self.view = Some(view);
        if answer.is_ok() {
            self.last_request = Some(now);
        }
        answer
    }

    /// The messages that go out, each with what the host told where it goes out so.
    fn outgoing(&self, view: &ContextView) -> Result<(Vec<Outgoing>, Vec<EntryId>)> {
        let (mut outgoing, mut ids) = (Vec::new(), Vec::new());
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let id = node.entry().id();
            let item = self.history.position(id).map(|at| &self.history.items()[at]);
            let told = match node.state() {
                NodeState::Kept => item.and_then(|item| item.told.clone()),
                _ => None,
            };
            outgoing.push(Outgoing { told, message: node.message()? });
            ids.push(id.clone());
        }
        Ok((outgoing, ids))
    }

    /// Makes the session smaller for good. The result is in the requests that follow.
    pub(super) async fn compact(&mut self, given: params::Compact) -> Result<Compaction> {
        self.ingest().await?;
        let view = self.take_view()?;
        let trigger = given.trigger.unwrap_or(CompactionTrigger::Manual);
        let mut request = CompactRequest::new(self.id.clone(), view, self.turn(given.now), trigger);
        request.force = given.force;
        request.token_budget = given.token_budget;
        request.custom_instructions = given.custom_instructions;
        request.summary_instructions = given.summary_instructions;
        request.attempt = given.attempt.unwrap_or(request.attempt).max(1);
        request.max_attempts =
            given.max_attempts.unwrap_or(request.max_attempts).max(request.attempt);
        let result = self.engine.compact(request).await;
        self.watch();
        let result = result?;
        self.take_in(&result)?;
        self.memory.taken_in().await;
        let in_force = self.in_force.as_ref().filter(|_| result.compacted);
        let summary_id = in_force.and_then(|in_force| in_force.summary_id()).cloned();
        let warnings = self.warnings();
        Ok(Compaction { result, summary_id, engine: self.engine_state(), warnings })
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
