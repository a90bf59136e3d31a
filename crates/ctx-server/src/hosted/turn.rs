//! What an engine makes of a session: the messages of a request, and a smaller session.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView,
    Edit, EntryId, Message, NodeState, Projection, Result, SummaryInstructions, SummaryModels,
    Timestamp, Tokens,
};

use super::session::{Session, sent};

/// The messages of a request, and what was done for them to fit.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) addition: Option<String>,
    pub(crate) tokens: Tokens,
    pub(crate) limit: Tokens,
    pub(crate) unchanged_prefix: Tokens,
    pub(crate) edits: Vec<Edit>,
    pub(crate) compactions: Vec<Compacted>,
    /// The forms in which messages go out, as far as they are new.
    pub(crate) forms: Vec<Projection>,
}

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: EntryId,
    /// Where it stands in the history, if it goes out as it was told.
    pub(crate) told: Option<usize>,
    /// Where it stands in the history, however it goes out.
    pub(crate) place: Option<usize>,
    pub(crate) message: Arc<Message>,
}

/// How a session is to become smaller.
#[derive(Debug)]
pub(crate) struct Compacting {
    pub(crate) trigger: CompactionTrigger,
    pub(crate) force: bool,
    pub(crate) token_budget: Option<Tokens>,
    pub(crate) custom_instructions: Option<String>,
    pub(crate) summary_instructions: SummaryInstructions,
    pub(crate) models: Option<SummaryModels>,
    pub(crate) attempt: Option<u32>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) now: Option<i64>,
}

impl Session {
    /// Makes the messages of the next request. `pending` is what the host will add to it itself.
    pub(crate) async fn assemble(&mut self, pending: Tokens, now: Option<i64>) -> Result<Made> {
        self.ingest().await?;
        let mut view = self.take_view()?;
        view.ledger_mut().set_pending(pending);
        let turn = self.turn(now);
        let now = turn.now;
        let request = AssembleRequest { session_id: self.id.clone(), view, turn };
        let assembled = self.engine.assemble(request).await;
        self.watch();
        let assembled = assembled?;
        self.finish(assembled.into_view(), now)
    }

    /// Makes the messages of the next request without the engine: nothing but the rules that may
    /// never break. `pending` as in [`Session::assemble`].
    pub(crate) fn trim(&mut self, pending: Tokens, now: Option<i64>) -> Result<Made> {
        let now = self.turn(now).now;
        let mut view = self.take_view()?;
        view.ledger_mut().set_pending(pending);
        self.finish(view, now)
    }

    fn finish(&mut self, mut view: ContextView, now: Timestamp) -> Result<Made> {
        let addition = view.system_addition().map(str::to_owned);
        let compactions = self.note(&mut view);
        let finished = view.finish();
        let more = self.note(&mut view);
        self.memory.archive(&view, !(compactions.is_empty() && more.is_empty()));
        let (told, count) = (std::mem::take(&mut self.edits_told), view.edits().len());
        let made = finished.and_then(|finished| {
            let last = sent(&view, addition.clone())?;
            let unchanged_prefix = self.sent.unchanged(&last);
            self.sent = last;
            // Edits that made the view what it was before are no news.
            let news = finished.edits.len().min(count.saturating_sub(told));
            let edits = finished.edits[finished.edits.len() - news..].to_vec();
            Ok(Made {
                outgoing: self.outgoing(&view)?,
                addition,
                tokens: finished.tokens,
                limit: view.ledger().limit(),
                unchanged_prefix,
                edits,
                compactions,
                forms: std::mem::take(&mut self.formed),
            })
        });
        self.view = Some(view);
        if made.is_ok() {
            self.last_request = Some(now);
        }
        made
    }

    /// The messages that go out, each with where the host told it if it goes out so.
    fn outgoing(&self, view: &ContextView) -> Result<Vec<Outgoing>> {
        let mut outgoing = Vec::with_capacity(view.len());
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let id = node.entry().id();
            let place = self.history.position(id);
            let told = place.filter(|_| node.state() == NodeState::Kept);
            outgoing.push(Outgoing { id: id.clone(), told, place, message: node.message()? });
        }
        Ok(outgoing)
    }

    /// Makes the session smaller for good. The result is in the requests that follow.
    pub(crate) async fn compact(&mut self, given: Compacting) -> Result<CompactResult> {
        self.ingest().await?;
        let view = self.take_view()?;
        let turn = self.turn(given.now);
        let mut request = CompactRequest::new(self.id.clone(), view, turn, given.trigger);
        request.force = given.force;
        request.token_budget = given.token_budget;
        request.custom_instructions = given.custom_instructions;
        request.summary_instructions = given.summary_instructions;
        request.models = given.models;
        request.attempt = given.attempt.unwrap_or(request.attempt).max(1);
        request.max_attempts =
            given.max_attempts.unwrap_or(request.max_attempts).max(request.attempt);
        let result = self.engine.compact(request).await;
        self.watch();
        let result = result?;
        self.take_in(&result)?;
        self.memory.taken_in().await;
        Ok(result)
    }
}
