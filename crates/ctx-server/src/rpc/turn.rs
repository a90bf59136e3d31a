//! `assemble` and `compact`.

use ctx_core::{
    CompactResult, Compacted, CompactionTrigger, Edit, EntryId, RawJson, Result, Tokens,
};
use ctx_hosted::{AssembledRequest, OutgoingMessage};
use ctx_runtime::trace_compaction;
use serde::Serialize;
use tracing::Span;

use super::dialect::SourcedMessage;
use super::params;
use super::session::RpcSession;

/// The result of `assemble`.
#[derive(Serialize)]
pub(super) struct Assembled {
    messages: Vec<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(flatten)]
    report: RequestReport,
}

/// What an assembled request contains, and the edits made to fit it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestReport {
    /// The sent entries, in order.
    ids: Vec<EntryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt_addition: Option<String>,
    tokens: Tokens,
    limit: Tokens,
    unchanged_prefix: Tokens,
    /// The layers and engines that changed this request.
    acted: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edits: Vec<Edit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compactions: Vec<Compacted>,
    engine: serde_json::Value,
    /// Warnings for the user about the engine, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

/// The result of a compaction.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompactionResult {
    #[serde(flatten)]
    result: CompactResult,
    /// The summary entry in later requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_id: Option<EntryId>,
    engine: serde_json::Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl RpcSession {
    /// Assembles the messages of the next request.
    pub(super) async fn assemble(&mut self, given: params::Assemble) -> Result<Assembled> {
        let pending = self.pending(given.pending_tokens, given.prompt.as_deref());
        let session = &mut self.session;
        let assembled = session.assemble(pending, given.now).await?;
        let source = |at: usize| session.history.items().get(at)?.source.text().cloned();
        let sourced = |out: &OutgoingMessage| SourcedMessage {
            source: out.unchanged.and_then(source),
            message: out.message.clone(),
        };
        let outgoing: Vec<_> = assembled.outgoing.iter().map(sourced).collect();
        let (messages, system) = given.format.unwrap_or(self.format).write(self.format, &outgoing);
        Ok(Assembled { messages, system, report: self.report(assembled) })
    }

    /// Returns the size of what the host will add to the request.
    pub(super) fn pending(&self, tokens: Option<Tokens>, prompt: Option<&str>) -> Tokens {
        let counted = || prompt.map(|prompt| self.session.ledger.counter().text(prompt));
        tokens.or_else(counted).unwrap_or_default()
    }

    /// Returns the report of a request just assembled.
    pub(super) fn report(&mut self, assembled: AssembledRequest) -> RequestReport {
        let session = &mut self.session;
        Span::current().record("ctx.tokens.sent", assembled.tokens.get().cast_signed());
        assembled.compactions.iter().for_each(trace);
        RequestReport {
            ids: assembled.outgoing.into_iter().map(|out| out.id).collect(),
            system_prompt_addition: assembled.addition,
            tokens: assembled.tokens,
            limit: assembled.limit,
            unchanged_prefix: assembled.unchanged_prefix,
            acted: acted(&assembled.edits),
            edits: assembled.edits,
            compactions: assembled.compactions,
            engine: session.engine_state(),
            warnings: session.warnings(),
        }
    }

    /// Compacts the session permanently. Later requests contain the result.
    pub(super) async fn compact(&mut self, given: params::Compact) -> Result<CompactionResult> {
        let session = &mut self.session;
        let trigger = given.trigger.unwrap_or(CompactionTrigger::Manual);
        let compacting = session.compact(trigger, given.now, |request| {
            request.force = given.force;
            request.token_budget = given.token_budget;
            request.custom_instructions = given.custom_instructions;
            request.summary_instructions = given.summary_instructions;
            request.attempt = given.attempt.unwrap_or(request.attempt);
            request.max_attempts = given.max_attempts.unwrap_or(request.max_attempts);
        });
        let result = compacting.await?;
        result.result.iter().for_each(trace);
        let in_force = session.in_force.as_ref().filter(|_| result.compacted);
        let summary_id = in_force.and_then(|in_force| in_force.summary_id()).cloned();
        let warnings = session.warnings();
        Ok(CompactionResult { result, summary_id, engine: session.engine_state(), warnings })
    }
}

fn trace(made: &Compacted) {
    trace_compaction(made.tokens_before, made.tokens_after, made.details.as_ref());
}

/// Returns the layers and engines that made edits, each once, in order of first appearance.
fn acted(edits: &[Edit]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for edit in edits {
        if !names.iter().any(|name| *name == edit.layer) {
            names.push(edit.layer.to_string());
        }
    }
    names
}
