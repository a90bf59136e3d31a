//! Assembles one request of a conversation.

mod background;
mod budget;
mod open;
mod record;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ctx_core::{CompactionTrigger, EntryId, Error, ErrorKind, Result, Tokens};
use ctx_dialect::wire::Request;
use ctx_hosted::{AssembledRequest, HostedSession};
use ctx_layers::compaction::ClientSummary;
use ctx_runtime::summary_models;
use ctx_trace::{CompactionRecord, Record, is_plausible};
use futures_util::FutureExt;

use super::Proxy;
use super::cache_break::{CachedRequest, RequestHead};
use super::client_request::ClientRequest;
use super::client_summaries::{self, SummarisedHistory};
use super::config::SummariesBy;
use super::conversation::{Conversation, ConversationState};
use super::learned_window::LearnedWindow;
use super::limits::ModelLimits;
use super::prepare::{Purpose, Retry};
use super::summary_models::{SlotGuard, SummaryTarget};
use super::summary_record::record_compaction;
use super::units::RequestUnit;

/// The share of its history that a client has left after a compaction that it asked for. Its limit
/// is not known to ctx; with less it would soon ask again.
const CLIENT_COMPACTION_SHARE: f64 = 0.5;

/// A request and its conversation.
pub(super) struct Attempt<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) client_request: &'a ClientRequest,
    pub(super) request: &'a Request<'a>,
    pub(super) units: &'a [RequestUnit<'a>],
    /// The ids of its messages, if known.
    pub(super) ids: Vec<Option<EntryId>>,
    /// Whether it fails if another replica has extended the conversation meanwhile.
    pub(super) may_conflict: bool,
}

/// The assembled request.
pub(super) struct AssembledAttempt {
    pub(super) assembled: AssembledRequest,
    pub(super) record: Record,
    /// The estimated tokens, uncorrected.
    pub(super) estimated: u64,
    /// The request, to detect cache breaks in the next one.
    pub(super) sent: Arc<CachedRequest>,
    /// The summary of the whole history, if that is its purpose.
    pub(super) summary: Option<String>,
}

impl Attempt<'_> {
    /// Assembles the outgoing messages; `None` if the request must pass unchanged. Other requests
    /// of the conversation wait.
    pub(super) async fn assemble(
        self,
        conversation: &Conversation,
        purpose: Purpose,
    ) -> Result<Option<AssembledAttempt>> {
        let mut state = conversation.state.lock().await;
        if let Err(error) = self.open(conversation, &mut state).await {
            return self.unopened(error);
        }
        let Some(model_guard) = self.sync(conversation, &mut state).await? else { return Ok(None) };
        let retry = purpose.retry();
        let mut limits = self.set_budget(conversation, &mut state, retry)?;
        let ready = self.apply_ready(conversation, &mut state, limits, retry)?;
        let Some(session) = &mut state.session else { return Err(lost()) };
        let mut compaction = ready;
        let is_asked = matches!(purpose, Purpose::Compact) && is_worth_compacting(session, limits);
        if compaction.is_none() && (retry.is_some() || is_asked) {
            compaction = self.compact(conversation, session, retry, limits).await;
        }
        let mut summary = None;
        if let Purpose::Summarise(focus) = purpose
            && let Some((text, record)) =
                self.summarise(conversation, &mut state, None, focus).await?
        {
            (summary, compaction) = (Some(text), Some(record));
        }
        let Some(session) = &mut state.session else { return Err(lost()) };
        let mut assembled = self.run_engine(session, limits).await;
        // Retry without the learned window: the provider decides.
        if assembled.is_err() && retry.is_none() && state.learned.window().is_some() {
            state.learned = LearnedWindow::default();
            limits = self.budget(&mut state)?;
            let Some(session) = &mut state.session else { return Err(lost()) };
            assembled = self.run_engine(session, limits).await;
        }
        let done = self.finish(conversation, &mut state, assembled?, limits, compaction).await?;
        let used = done.assembled.tokens;
        // After its summary, the client begins another conversation.
        if summary.is_none()
            && let Err(error) = self.compact_ahead(conversation, &state, limits, used, model_guard)
        {
            self.warn_failed(&error);
        }
        Ok(Some(AssembledAttempt { summary, ..done }))
    }

    /// Updates the open session to the messages of the request, and makes its model available to the
    /// engine while the result lives. `None` if the request must pass unchanged.
    async fn sync(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
    ) -> Result<Option<Arc<SlotGuard>>> {
        let ConversationState { session, summaries, learned, .. } = &mut *state;
        let Some(session) = session else { return Err(lost()) };
        let model_guard = Arc::new(summaries.insert(self.writer(session.ledger.window())));
        session.memory.keep_alive(&model_guard);
        if let Some((counted, estimated)) = conversation.take_report() {
            session.correct(counted, estimated);
            learned.accepted(counted);
        }
        let ids = self.ids(session);
        let is_new = ids.is_some();
        if let Err(error) = guarded(session.sync(self.units, ids, false)).await {
            self.warn_failed(&error);
        }
        // If the histories differ, the request must not be replaced.
        if session.history.len() != self.units.len() {
            state.session = None;
            return Ok(None);
        }
        // A concurrent equal request must wait for this one, not start another conversation.
        conversation.update_known(state);
        let Some(session) = &mut state.session else { return Err(lost()) };
        let covers = |kept: &ctx_hosted::InForce| kept.covers(&session.history);
        if is_new && !session.in_force.as_ref().is_some_and(covers) {
            session.in_force = None;
        }
        Ok(Some(model_guard))
    }

    /// Records and saves the assembled request.
    async fn finish(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        mut assembled: AssembledRequest,
        limits: ModelLimits,
        compaction: Option<CompactionRecord>,
    ) -> Result<AssembledAttempt> {
        let Some(session) = &mut state.session else { return Err(lost()) };
        let empty = limits.withheld(&session.ledger);
        for warning in session.warnings() {
            self.proxy.warn(&warning);
        }
        // The withheld part is not part of the request.
        session.sent.estimated = session.sent.estimated.saturating_sub(empty.get());
        assembled.tokens -= session.ledger.corrected(empty);
        assembled.limit -= session.ledger.corrected(empty);
        let estimated = session.sent.estimated;
        let mut record = self.record(conversation, state, &assembled, compaction);
        self.note_orphans(&record);
        let store = self.proxy.conversations.store.as_ref();
        match conversation.save(state, &assembled, store).await {
            Err(error) if error.kind() == ErrorKind::Conflict && self.may_conflict => {
                return Err(error);
            }
            Err(error) => {
                let what = "other replicas may cut a conversation differently";
                self.proxy.warn_of("store", &format!("{what}: {error}"));
            }
            Ok(()) => {}
        }
        let Some(session) = &state.session else { return Err(lost()) };
        let sent = Arc::new(CachedRequest::of(session, self.head()));
        record.prefix_break = conversation.cached().and_then(|before| {
            before.cache_break(&sent, &session.history, session.in_force.as_ref())
        });
        Ok(AssembledAttempt { assembled, record, estimated, sent, summary: None })
    }

    /// Assembles the messages with the engine, or without it if it fails.
    async fn run_engine(
        &self,
        session: &mut HostedSession,
        limits: ModelLimits,
    ) -> Result<AssembledRequest> {
        let empty = limits.withheld(&session.ledger);
        match guarded(session.assemble(empty, None)).await {
            Err(error) => {
                session.assemble_without_engine(empty, None).inspect(|_| self.warn_failed(&error))
            }
            assembled => assembled,
        }
    }

    /// Lets a request without a session pass unchanged, unless the configured window is too small.
    fn unopened<T>(&self, error: Error) -> Result<Option<T>> {
        if error.kind() == ErrorKind::WindowTooSmall && self.proxy.settings.window.is_some() {
            return Err(error);
        }
        self.proxy.warn(&format!("requests pass unchanged: {error}"));
        Ok(None)
    }

    /// Returns the ids known from a file or another conversation. An open session recognises its
    /// messages itself.
    fn ids(&self, session: &HostedSession) -> Option<Vec<Option<String>>> {
        if !session.history.is_empty() {
            return None;
        }
        Some(self.ids.iter().map(|id| id.as_ref().map(ToString::to_string)).collect())
    }

    fn head(&self) -> RequestHead {
        let tools = self.request.tools.map(|tools| tools.get());
        RequestHead::of(self.request.model.as_deref(), self.request.system.as_deref(), tools)
    }

    /// Writes a summary for the client: of a part of the history, or of all of it.
    pub(super) async fn summarise(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        part: Option<&SummarisedHistory>,
        focus: Option<String>,
    ) -> Result<Option<(String, CompactionRecord)>> {
        let Some(session) = &state.session else { return Ok(None) };
        let window = session.ledger.window();
        let _guard = state.summaries.insert(self.writer(window));
        let models = match self.proxy.settings.config.summaries {
            SummariesBy::Upstream => Some(state.summaries.models(window)),
            SummariesBy::Model => {
                let model = self.request.model.as_deref();
                summary_models(&session.resolved.config, None, model)?.map(|chain| chain.models)
            }
            SummariesBy::Extractive => None,
        };
        let whole;
        let history = match part {
            Some(part) => part,
            None => {
                whole = SummarisedHistory::whole(self.proxy, self.client_request, session)?;
                &whole
            }
        };
        let made = client_summaries::summarise(session, history, models, focus).await?;
        Ok(made.map(|made| {
            let record = record_compaction(self.proxy, &conversation.id, None, &made);
            (ClientSummary::text(&made.summary), record)
        }))
    }

    fn writer(&self, window: Tokens) -> Option<ctx_model::HttpModel> {
        if self.client_request.route.is_bedrock {
            return None;
        }
        let target = SummaryTarget {
            protocol: self.client_request.protocol(),
            model: self.request.model.as_deref()?,
            window,
            url: &self.client_request.url,
            speaks_chat: self.proxy.speaks_chat.load(Ordering::Relaxed),
            headers: &self.client_request.headers,
        };
        target.model(self.proxy.writer.clone())
    }

    /// Compacts the session: after the provider refused the request, or for the client.
    async fn compact(
        &self,
        conversation: &Conversation,
        session: &mut HostedSession,
        retry: Option<Retry>,
        limits: ModelLimits,
    ) -> Option<CompactionRecord> {
        // The provider's count shows how far the counter is off, unless it includes the answer.
        let estimated = session.sent.estimated;
        let counted = retry.and_then(|retry| retry.overflow.prompt);
        if let Some(counted) = counted.filter(|n| is_plausible(*n, estimated)) {
            session.correct(counted, estimated);
        }
        let mut budget = session.ledger.limit() - limits.withheld(&session.ledger);
        let mut trigger = CompactionTrigger::Overflow;
        if retry.is_none() {
            trigger = CompactionTrigger::Manual;
            let (ledger, history) = (&session.ledger, history(session, limits));
            let other = ledger.corrected(ledger.fixed() + limits.instructions);
            budget = budget.min(other + history.scale(CLIENT_COMPACTION_SHARE));
        }
        let compacting = session.compact(trigger, None, |request| {
            request.force = true;
            request.token_budget = Some(budget);
            // A client that asks for a compaction waits for it.
            request.turn.waits_for_models |= retry.is_none();
            if let Some(retry) = retry {
                (request.attempt, request.max_attempts) = (retry.attempt, retry.most);
            }
        });
        match guarded(compacting).await {
            Ok(result) => {
                let compacted = result.result.filter(|_| result.compacted)?;
                let entry = session.in_force.as_ref().and_then(|kept| kept.summary_id()).cloned();
                Some(record_compaction(self.proxy, &conversation.id, entry, &compacted))
            }
            Err(error) => {
                self.warn_failed(&error);
                None
            }
        }
    }

    fn warn_failed(&self, error: &Error) {
        self.proxy.warn(&format!("the engine failed; requests are assembled without it: {error}"));
    }
}

/// Returns the size of all messages of a session but its instructions.
fn history(session: &HostedSession, limits: ModelLimits) -> Tokens {
    let counter = session.ledger.counter();
    let items = session.history.items().iter();
    let all: Tokens = items.filter_map(|item| item.entry.tokens(counter).ok()).sum();
    session.ledger.corrected(all - limits.instructions)
}

/// Whether a client that asks for a compaction can gain from it. A history of a quarter of the
/// smallest window is not what fills the client's.
fn is_worth_compacting(session: &HostedSession, limits: ModelLimits) -> bool {
    history(session, limits) >= session.resolved.guard.hard_min_tokens.scale(0.25)
}

/// Runs engine code. A panic counts as an error of the engine.
async fn guarded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Contract, "the engine panicked")))
}

pub(super) fn lost() -> Error {
    Error::new(ErrorKind::Contract, "the session of a conversation is missing")
        .hint("please report this")
}
