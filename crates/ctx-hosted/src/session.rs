//! A session: its engine, its history, and its last request.

use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{
    CompactResult, ContentHash, ContextEngine, ContextView, EntryId, Error, ErrorKind, IdSource,
    IngestRequest, NodeState, Projection, ProjectionKey, Result, Timestamp, TokenLedger, Tokens,
    TurnContext,
};
use ctx_runtime::{EngineHealthRecorder, MemoryWorker, Resolved};
use ctx_session::clock;

use super::history::{History, SyncResult};
use super::unit::Unit;
use super::view::{InForce, rebuild_view};

/// The layer name in the manifest for compactions requested by the host.
const LAYER: &str = "compaction";

/// A session opened by a host.
pub struct HostedSession {
    /// The id, unique within the process.
    pub id: String,
    /// The engine.
    pub engine: Arc<dyn ContextEngine>,
    /// The long-term memory, if there is one.
    pub memory: MemoryWorker,
    /// Records the health of the engine.
    pub watch: EngineHealthRecorder,
    /// The last error while recording engine health.
    pub watch_error: Option<String>,
    /// Model, window, reserve and engine in force.
    pub resolved: Resolved,
    /// The messages of the host.
    pub history: History,
    /// The budget.
    pub ledger: TokenLedger,
    /// The provider's last token count, and the estimate for the same request.
    pub reported: Option<(u64, u64)>,
    /// Makes the ids of summaries.
    pub ids: Arc<dyn IdSource>,
    /// The forms in which messages were sent.
    pub projections: HashMap<ProjectionKey, Projection>,
    /// Projections added since the last request.
    pub new_projections: Vec<Projection>,
    /// `None` while an engine uses it, and after an engine failed with it.
    pub view: Option<ContextView>,
    /// The number of edits in the view that were already reported.
    pub reported_edits: usize,
    /// The compaction in force.
    pub in_force: Option<InForce>,
    /// The number of compactions made.
    pub compactions: usize,
    /// The time of the last request.
    pub last_request: Option<Timestamp>,
    /// Whether a request may wait for a model that writes a summary.
    pub waits_for_models: bool,
    /// The last request.
    pub sent: SentRequest,
}

/// The last request.
#[derive(Debug, Default)]
pub struct SentRequest {
    /// Tokens of the system prompt with its addition, and of the tool schemas.
    pub fixed: (Tokens, Tokens),
    /// The text appended to the system prompt.
    pub addition: Option<String>,
    /// The messages in order.
    pub messages: Vec<SentMessage>,
    /// The estimated tokens, uncorrected.
    pub estimated: u64,
}

/// A message of a request.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// The entry.
    pub id: EntryId,
    /// The hash of its content.
    pub hash: ContentHash,
    /// Its size.
    pub tokens: Tokens,
}

impl SentMessage {
    /// Whether the content is equal; the id may differ.
    pub fn is(&self, other: &Self) -> bool {
        (self.hash, self.tokens) == (other.hash, other.tokens)
    }
}

impl SentRequest {
    /// Returns the tokens at the beginning of `next` that are unchanged since this request.
    pub fn unchanged(&self, next: &Self) -> Tokens {
        if self.messages.is_empty() || self.fixed != next.fixed || self.addition != next.addition {
            return Tokens::ZERO;
        }
        let both = self.messages.iter().zip(&next.messages);
        let same: Tokens =
            both.take_while(|(one, other)| one.is(other)).map(|(_, next)| next.tokens).sum();
        self.fixed.0 + self.fixed.1 + same
    }
}

impl HostedSession {
    /// Appends messages, and passes them to the engine.
    pub async fn append<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Vec<EntryId>> {
        let before = self.history.len();
        let ids = self.history.append(units, ids, is_heartbeat)?;
        self.extend_view(before);
        self.ingest().await?;
        Ok(ids)
    }

    /// Replaces the history by the list, and passes new messages to the engine.
    pub async fn sync<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<SyncResult> {
        let before = self.history.len();
        let synced = self.history.sync(units, ids, is_heartbeat)?;
        if synced.only_grew() {
            self.extend_view(before);
        } else {
            self.view = None;
            let covers = |in_force: &InForce| in_force.covers(&self.history);
            if !self.in_force.as_ref().is_some_and(covers) {
                self.in_force = None;
            }
        }
        self.ingest().await?;
        Ok(synced)
    }

    /// Appends the history from `from` on to the view. Drops the view if it rejects a message; the
    /// next use rebuilds it and reports the error.
    fn extend_view(&mut self, from: usize) {
        let Some(view) = &mut self.view else { return };
        let mut fresh = self.history.items()[from..].iter();
        if fresh.any(|item| view.append(item.entry.clone()).is_err()) {
            self.view = None;
        }
    }

    /// Passes messages that are not yet ingested to the engine.
    pub async fn ingest(&mut self) -> Result<()> {
        let mut requests = Vec::new();
        for item in self.history.fresh().filter(|_| self.engine.ingests()) {
            requests.push(IngestRequest {
                session_id: self.id.clone(),
                entry: item.entry.id().clone(),
                message: item.entry.message()?,
                is_heartbeat: item.is_heartbeat,
            });
        }
        if !requests.is_empty() {
            self.engine.ingest_batch(requests).await?;
        }
        self.history.all_ingested();
        Ok(())
    }

    /// Takes the view, rebuilding it if it was lost.
    pub fn take_view(&mut self) -> Result<ContextView> {
        if let Some(view) = self.view.take() {
            return Ok(view);
        }
        let view = self.copy_of_view()?;
        self.reported_edits = view.edits().len();
        Ok(view)
    }

    /// Returns the turn context of a call.
    pub fn turn(&self, now: Option<i64>) -> TurnContext {
        TurnContext {
            now: now.map_or_else(clock::now, Timestamp),
            last_request: self.last_request,
            ids: self.ids.clone(),
            waits_for_models: self.waits_for_models,
        }
    }

    /// Returns a copy of the view for the engine.
    pub fn copy_of_view(&self) -> Result<ContextView> {
        rebuild_view(&self.ledger, &self.history, &self.projections, self.in_force.as_ref())
    }

    /// Returns the size of the next request before the engine edits it. `pending` as in
    /// [`HostedSession::assemble`].
    pub fn used(&mut self, pending: Tokens) -> Result<Tokens> {
        let mut view = self.take_view()?;
        view.ledger_mut().pending = pending;
        let used = view.used();
        self.view = Some(view);
        Ok(used)
    }

    /// Corrects the counter with the provider's count for the last request. Returns the correction
    /// factor.
    pub fn calibrate(&mut self, reported: u64) -> Result<f64> {
        if self.sent.estimated == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "no request assembled yet")
                .hint("`usage` reports the provider's count for the last `assemble`"));
        }
        self.correct(reported, self.sent.estimated);
        Ok(self.ledger.calibration.factor())
    }

    /// Corrects the counter with the provider's count for a request with that estimate.
    pub fn correct(&mut self, reported: u64, estimated: u64) {
        self.reported = Some((reported, estimated));
        self.ledger.calibrate(reported, estimated);
        if let Some(view) = &mut self.view {
            view.ledger_mut().calibrate(reported, estimated);
        }
    }

    /// Sets the sizes of system prompt and tools, and the reserve for the answer.
    pub fn set_sizes(&mut self, window: Tokens, answer: Tokens, system: Tokens, tools: Tokens) {
        let reserve = self.resolved.reserve.max(answer);
        let mut ledger = TokenLedger::new(*self.ledger.counter(), window, reserve)
            .with_system(system)
            .with_tools(tools);
        let parts = |ledger: &TokenLedger| {
            (ledger.window(), ledger.reserve(), ledger.system(), ledger.tools)
        };
        if parts(&ledger) == parts(&self.ledger) {
            return;
        }
        if let Some((reported, estimated)) = self.reported {
            ledger.calibrate(reported, estimated);
        }
        self.ledger = ledger.clone();
        if let Some(view) = &mut self.view {
            *view.ledger_mut() = ledger;
        }
    }

    /// Undoes the compaction in force: the next request contains all messages again.
    pub fn undo(&mut self) {
        if self.in_force.take().is_some() {
            self.view = None;
        }
    }

    /// Stores a compaction made in `view`, and the new projections.
    pub fn take_changes(&mut self, view: &mut ContextView) -> Vec<ctx_core::Compacted> {
        let new = view.take_projections();
        self.projections.reserve(new.len());
        for form in new {
            self.new_projections.push(form.clone());
            self.projections.insert(form.key.clone(), form);
        }
        let compactions = view.take_compactions();
        self.compactions += compactions.len();
        if let Some(last) = compactions.last()
            && let Some(in_force) = InForce::of(view, &self.history, last.clone())
        {
            self.in_force = Some(in_force);
        }
        compactions
    }

    /// Applies the result of a compaction to the view.
    pub fn apply(&mut self, result: &CompactResult) -> Result<()> {
        let Some(compacted) = result.result.clone().filter(|_| result.compacted) else {
            return Ok(());
        };
        let mut view = self.take_view()?;
        let done = view.compact(compacted, self.ids.next_id(), LAYER, "requested by the host");
        if done.is_ok() {
            self.take_changes(&mut view);
            self.memory.archive(&view, true);
        }
        self.view = Some(view);
        done.map(drop)
    }

    /// Records engine health after a call, for other programs. A failure to record becomes a
    /// warning.
    pub fn watch(&mut self) {
        if let Err(error) = self.watch.record(&*self.engine, clock::now()) {
            self.watch_error = Some(format!("cannot save engine health: {error}"));
        }
    }

    /// Returns warnings for the user, each once.
    pub fn warnings(&mut self) -> Vec<String> {
        let mut warnings = self.engine.take_warnings();
        warnings.extend(self.watch_error.take());
        warnings.extend(self.memory.warnings());
        warnings
    }

    /// Returns the state of the engine. Built-in engines report no health.
    pub fn engine_state(&self) -> serde_json::Value {
        let health = self.engine.health().and_then(|health| serde_json::to_value(health).ok());
        health.unwrap_or_else(|| {
            let info = self.engine.info();
            let (id, version) = (&info.id, &info.version);
            serde_json::json!({ "id": id, "carrier": "builtin", "version": version, "state": "ok" })
        })
    }
}

/// Returns the last request, from a finished view.
pub(crate) fn sent(view: &ContextView, addition: Option<String>) -> Result<SentRequest> {
    let ledger = view.ledger();
    let mut messages = Vec::with_capacity(view.len());
    for node in view.nodes().iter().filter(|node| node.is_live()) {
        let hash = match node.state() {
            NodeState::Kept => node.entry().hash()?,
            _ => ContentHash::of(&*node.message()?),
        };
        let id = node.entry().id().clone();
        messages.push(SentMessage { id, hash, tokens: node.tokens() });
    }
    let estimated = (view.total() + ledger.fixed()).get();
    Ok(SentRequest { fixed: (ledger.system(), ledger.tools), addition, messages, estimated })
}
