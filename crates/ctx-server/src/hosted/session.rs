//! One session: its engine, what was told, and what was sent.

use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{
    CompactResult, ContentHash, ContextEngine, ContextView, EntryId, Error, ErrorKind, IdSource,
    IngestRequest, NodeState, Projection, ProjectionKey, Result, Timestamp, TokenLedger, Tokens,
    TurnContext,
};
use ctx_runtime::{EngineWatch, Remembering, Resolved};
use ctx_session::clock;

use super::history::{History, Synced};
use super::told::Unit;
use super::view::{InForce, rebuilt};

/// The name under which compactions that the host asked for stand in the manifest.
const LAYER: &str = "compaction";

/// A session that a host opened.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) engine: Arc<dyn ContextEngine>,
    pub(crate) memory: Remembering,
    pub(crate) watch: EngineWatch,
    /// What went wrong in watching it.
    pub(crate) untold: Option<String>,
    pub(crate) resolved: Resolved,
    pub(crate) history: History,
    pub(crate) ledger: TokenLedger,
    /// What the provider counted last, and what that was estimated at.
    pub(crate) reported: Option<(u64, u64)>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) forms: HashMap<ProjectionKey, Projection>,
    /// Forms that are new since a request was last made.
    pub(crate) formed: Vec<Projection>,
    /// `None` while an engine has it, and where one failed and took it along.
    pub(crate) view: Option<ContextView>,
    /// Edits of the view that repeat what was told before.
    pub(crate) edits_told: usize,
    pub(crate) in_force: Option<InForce>,
    pub(crate) compactions: usize,
    pub(crate) last_request: Option<Timestamp>,
    pub(crate) sent: Sent,
}

/// The last request.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// System prompt with its addition, and tool schemas.
    pub(crate) fixed: (Tokens, Tokens),
    pub(crate) addition: Option<String>,
    /// Its messages, in order.
    pub(crate) messages: Vec<SentMessage>,
    /// What it was estimated at, uncorrected.
    pub(crate) estimated: u64,
}

/// A message of a request.
#[derive(Clone, Debug)]
pub(crate) struct SentMessage {
    pub(crate) id: EntryId,
    pub(crate) hash: ContentHash,
    pub(crate) tokens: Tokens,
}

impl SentMessage {
    /// Whether it says the same, under whichever id.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.hash, self.tokens) == (other.hash, other.tokens)
    }
}

impl Sent {
    /// The tokens at the beginning of `next` that are as they were in this request.
    pub(crate) fn unchanged(&self, next: &Self) -> Tokens {
        if self.messages.is_empty() || self.fixed != next.fixed || self.addition != next.addition {
            return Tokens::ZERO;
        }
        let both = self.messages.iter().zip(&next.messages);
        let same: Tokens =
            both.take_while(|(one, other)| one.is(other)).map(|(_, next)| next.tokens).sum();
        self.fixed.0 + self.fixed.1 + same
    }
}

impl Session {
    /// Adds messages, and tells the engine.
    pub(crate) async fn append<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Vec<EntryId>> {
        let before = self.history.len();
        let ids = self.history.append(units, ids, is_heartbeat)?;
        self.grow(before);
        self.ingest().await?;
        Ok(ids)
    }

    /// Takes the list for what the history is now, and tells the engine what is new.
    pub(crate) async fn sync<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Synced> {
        let before = self.history.len();
        let synced = self.history.sync(units, ids, is_heartbeat)?;
        if synced.only_grew() {
            self.grow(before);
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

    /// Appends to the view what the history has from `from` on. A view that cannot take a message is
    /// made anew when it is next needed, which then says why.
    fn grow(&mut self, from: usize) {
        let Some(view) = &mut self.view else { return };
        let mut fresh = self.history.items()[from..].iter();
        if fresh.any(|item| view.append(item.entry.clone()).is_err()) {
            self.view = None;
        }
    }

    /// Tells the engine of messages it was not told of.
    pub(crate) async fn ingest(&mut self) -> Result<()> {
        let mut requests = Vec::new();
        for item in self.history.fresh() {
            requests.push(IngestRequest {
                session_id: self.id.clone(),
                entry: item.entry.id().clone(),
                message: item.entry.message()?,
                is_heartbeat: item.is_heartbeat,
            });
        }
        if !requests.is_empty() {
            self.engine.ingest_batch(requests).await?;
            self.history.all_ingested();
        }
        Ok(())
    }

    /// The view, made anew if it was lost.
    pub(crate) fn take_view(&mut self) -> Result<ContextView> {
        if let Some(view) = self.view.take() {
            return Ok(view);
        }
        let view = rebuilt(&self.ledger, &self.history, &self.forms, self.in_force.as_ref())?;
        self.edits_told = view.edits().len();
        Ok(view)
    }

    /// The turn that a call belongs to.
    pub(crate) fn turn(&self, now: Option<i64>) -> TurnContext {
        TurnContext {
            now: now.map_or_else(clock::now, Timestamp),
            last_request: self.last_request,
            ids: self.ids.clone(),
            profile: self.resolved.profile,
        }
    }

    /// Corrects the counts by what the provider counted for the last request.
    pub(crate) fn calibrate(&mut self, reported: u64) -> Result<f64> {
        if self.sent.estimated == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "no request was assembled yet")
                .hint("`usage` says what the provider counted for the last `assemble`"));
        }
        self.correct(reported, self.sent.estimated);
        Ok(self.ledger.calibration().factor())
    }

    /// Corrects the counts by what the provider counted for a request that was estimated so.
    pub(crate) fn correct(&mut self, reported: u64, estimated: u64) {
        self.reported = Some((reported, estimated));
        self.ledger.calibrate(reported, estimated);
        if let Some(view) = &mut self.view {
            view.ledger_mut().calibrate(reported, estimated);
        }
    }

    /// Sets what a request brings beside its history, and how much is kept free for its answer.
    pub(crate) fn fit(&mut self, window: Tokens, answer: Tokens, system: Tokens, tools: Tokens) {
        let reserve = self.resolved.reserve.max(answer);
        let mut ledger = TokenLedger::new(*self.ledger.counter(), window, reserve)
            .with_system(system)
            .with_tools(tools);
        let parts = |ledger: &TokenLedger| {
            (ledger.window(), ledger.reserve(), ledger.system(), ledger.tools())
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

    /// Takes the compaction in force back: the next request is made of all messages.
    pub(crate) fn undo(&mut self) -> Option<InForce> {
        let undone = self.in_force.take()?;
        self.view = None;
        Some(undone)
    }

    /// Notes a compaction that was made in `view`, and the forms that came with it.
    pub(crate) fn note(&mut self, view: &mut ContextView) -> Vec<ctx_core::Compacted> {
        for form in view.take_projections() {
            self.formed.push(form.clone());
            self.forms.insert(form.key.clone(), form);
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

    /// Puts the result of a compaction into the view.
    pub(crate) fn take_in(&mut self, result: &CompactResult) -> Result<()> {
        let Some(compacted) = result.result.clone().filter(|_| result.compacted) else {
            return Ok(());
        };
        let mut view = self.take_view()?;
        let done = view.compact(compacted, self.ids.next_id(), LAYER, "asked for");
        if done.is_ok() {
            self.note(&mut view);
            self.memory.archive(&view, true);
        }
        self.view = Some(view);
        done.map(drop)
    }

    /// Remembers for other programs how the engine fared, which was just asked for something. That
    /// this cannot be remembered is no more than worth a word.
    pub(crate) fn watch(&mut self) {
        if let Err(error) = self.watch.note(&*self.engine, clock::now()) {
            self.untold = Some(format!("how the engine fared is not remembered: {error}"));
        }
    }

    /// What a person should be told, each thing once.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        let mut warnings = self.engine.take_warnings();
        warnings.extend(self.untold.take());
        warnings.extend(self.memory.warnings());
        warnings
    }

    /// How the engine fares. One that is built in cannot fail apart from its host.
    pub(crate) fn engine_state(&self) -> serde_json::Value {
        let health = self.engine.health().and_then(|health| serde_json::to_value(health).ok());
        health.unwrap_or_else(|| {
            let info = self.engine.info();
            let (id, version) = (&info.id, &info.version);
            serde_json::json!({ "id": id, "carrier": "builtin", "version": version, "state": "ok" })
        })
    }
}

/// The last request, as it stands in a finished view.
pub(crate) fn sent(view: &ContextView, addition: Option<String>) -> Result<Sent> {
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
    Ok(Sent { fixed: (ledger.system(), ledger.tools()), addition, messages, estimated })
}
