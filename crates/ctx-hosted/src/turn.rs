//! Assembles requests and compacts sessions with the engine.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView,
    Edit, EntryId, Message, NodeState, Projection, Result, Timestamp, Tokens,
};

use super::history::HistoryItem;
use super::session::{HostedSession, sent};

/// The messages of a request, and the edits made to fit them.
#[derive(Debug)]
pub struct AssembledRequest {
    /// The messages to send, in order.
    pub outgoing: Vec<OutgoingMessage>,
    /// The text to append to the system prompt.
    pub addition: Option<String>,
    /// The size of the request.
    pub tokens: Tokens,
    /// Its maximum.
    pub limit: Tokens,
    /// The tokens at the beginning that equal those of the last request.
    pub unchanged_prefix: Tokens,
    /// The edits made for this request.
    pub edits: Vec<Edit>,
    /// The compactions made for this request.
    pub compactions: Vec<Compacted>,
    /// The new projections.
    pub projections: Vec<Projection>,
}

/// A message of an assembled request.
#[derive(Debug)]
pub struct OutgoingMessage {
    /// The entry.
    pub id: EntryId,
    /// The index in the history, if the message is unchanged.
    pub unchanged: Option<usize>,
    /// The index in the history, changed or not.
    pub index: Option<usize>,
    /// The message.
    pub message: Arc<Message>,
}

impl HostedSession {
    /// Assembles the messages of the next request. `pending` is the number of tokens that the host
    /// will add.
    pub async fn assemble(
        &mut self,
        pending: Tokens,
        now: Option<i64>,
    ) -> Result<AssembledRequest> {
        self.ingest().await?;
        let mut view = self.take_view()?;
        view.ledger_mut().pending = pending;
        let turn = self.turn(now);
        let now = turn.now;
        let request = AssembleRequest { session_id: self.id.clone(), view, turn };
        let assembled = self.engine.assemble(request).await;
        self.watch();
        let assembled = assembled?;
        self.finish(assembled.into_view(), now)
    }

    /// Assembles the messages of the next request without the engine, applying only mandatory
    /// rules. `pending` as in [`HostedSession::assemble`].
    pub fn assemble_without_engine(
        &mut self,
        pending: Tokens,
        now: Option<i64>,
    ) -> Result<AssembledRequest> {
        let now = self.turn(now).now;
        let mut view = self.take_view()?;
        view.ledger_mut().pending = pending;
        self.finish(view, now)
    }

    /// Returns a request with all messages as they are, without the engine and the mandatory rules.
    /// `pending` as in [`HostedSession::assemble`].
    ///
    /// # Errors
    ///
    /// If a message cannot be read.
    pub fn assemble_unchanged(&mut self, pending: Tokens) -> Result<AssembledRequest> {
        let outgoing = |(at, item): (usize, &HistoryItem)| {
            let (id, message) = (item.entry.id().clone(), item.entry.message()?);
            Ok(OutgoingMessage { id, unchanged: Some(at), index: Some(at), message })
        };
        Ok(AssembledRequest {
            outgoing: self
                .history
                .items()
                .iter()
                .enumerate()
                .map(outgoing)
                .collect::<Result<_>>()?,
            addition: None,
            tokens: self.used(pending)?,
            limit: self.ledger.limit(),
            unchanged_prefix: Tokens::ZERO,
            edits: Vec::new(),
            compactions: Vec::new(),
            projections: Vec::new(),
        })
    }

    fn finish(&mut self, mut view: ContextView, now: Timestamp) -> Result<AssembledRequest> {
        let addition = view.system_addition().map(str::to_owned);
        let compactions = self.take_changes(&mut view);
        let finished = view.finish();
        let more = self.take_changes(&mut view);
        self.memory.archive(&view, !(compactions.is_empty() && more.is_empty()));
        let (before, count) = (std::mem::take(&mut self.reported_edits), view.edits().len());
        let assembled = finished.and_then(|finished| {
            let last = sent(&view, addition.clone())?;
            let unchanged_prefix = self.sent.unchanged(&last);
            self.sent = last;
            // Edits that only rebuilt the previous view are not reported.
            let news = finished.edits.len().min(count.saturating_sub(before));
            let edits = finished.edits[finished.edits.len() - news..].to_vec();
            Ok(AssembledRequest {
                outgoing: self.outgoing(&view)?,
                addition,
                tokens: finished.tokens,
                limit: view.ledger().limit(),
                unchanged_prefix,
                edits,
                compactions,
                projections: std::mem::take(&mut self.new_projections),
            })
        });
        self.view = Some(view);
        if assembled.is_ok() {
            self.last_request = Some(now);
        }
        assembled
    }

    /// Returns the messages to send, each with its index in the history.
    fn outgoing(&self, view: &ContextView) -> Result<Vec<OutgoingMessage>> {
        let mut outgoing = Vec::with_capacity(view.len());
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let id = node.entry().id();
            let index = self.history.position(id);
            let unchanged = index.filter(|_| node.state() == NodeState::Kept);
            outgoing.push(OutgoingMessage {
                id: id.clone(),
                unchanged,
                index,
                message: node.message()?,
            });
        }
        Ok(outgoing)
    }

    /// Compacts the session permanently, as `set` changes the request. Later requests contain the
    /// result.
    pub async fn compact(
        &mut self,
        trigger: CompactionTrigger,
        now: Option<i64>,
        set: impl FnOnce(&mut CompactRequest),
    ) -> Result<CompactResult> {
        self.ingest().await?;
        let mut view = self.take_view()?;
        // The session does not include what the last request withheld.
        view.ledger_mut().pending = Tokens::ZERO;
        let turn = self.turn(now);
        let mut request = CompactRequest::new(self.id.clone(), view, turn, trigger);
        set(&mut request);
        request.attempt = request.attempt.max(1);
        request.max_attempts = request.max_attempts.max(request.attempt);
        let result = self.engine.compact(request).await;
        self.watch();
        let result = result?;
        self.apply(&result)?;
        self.memory.wait_until_searchable().await;
        Ok(result)
    }
}
