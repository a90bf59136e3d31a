//! Compaction within a turn, for callers that are already in the session's lane.

use std::time::Duration;

use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView, ErrorKind, Layer,
    Result, Timestamp, Tokens,
};
use ctx_layers::compaction::{Compaction, Details};
use serde_json::json;
use tracing::Instrument;

use super::Turn;
use crate::host::{Event, NoticeKind, layer};
use crate::session::CompactedRange;
use crate::telemetry::trace_compaction;

/// How much of the window a silent request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowShare {
    /// All of it.
    Whole,
    /// Half of it, after the provider rejected a larger request.
    Half,
}

/// The parameters of a compaction.
#[derive(Clone, Copy, Debug)]
struct CompactParams<'a> {
    trigger: CompactionTrigger,
    attempt: u32,
    focus: Option<&'a str>,
}

impl Turn<'_> {
    /// Compacts on explicit request.
    pub(crate) async fn compact_manually(&mut self, focus: Option<&str>) -> Result<CompactResult> {
        if self.session.setup.is_none() {
            self.select_model().await?;
        }
        let done = match self.store_background_compaction().await {
            Ok(()) => self.flush_and_compact(focus).await,
            Err(error) => Err(error),
        };
        self.record_usage().await;
        done
    }

    /// Flushes memory, then compacts.
    pub(super) async fn flush_and_compact(&mut self, focus: Option<&str>) -> Result<CompactResult> {
        let flushed_at = self.session.flushed_at;
        self.flush_first(WindowShare::Whole).await;
        let done = self.compact(CompactionTrigger::Manual, 1, focus).await;
        if !done.as_ref().is_ok_and(|done| done.compacted) {
            // The cycle continues, so a later flush is still due.
            self.session.flushed_at = flushed_at;
            self.pending.flushed = None;
        }
        done
    }

    /// Compacts the session: with the engine, or with the default compactor if that fails. The
    /// result is stored and the view rebuilt.
    pub(super) async fn compact(
        &mut self,
        trigger: CompactionTrigger,
        attempt: u32,
        focus: Option<&str>,
    ) -> Result<CompactResult> {
        let span = tracing::info_span!(
            "compact",
            session = %self.session.id,
            ?trigger,
            attempt,
            messages = tracing::field::Empty,
            before = tracing::field::Empty,
            after = tracing::field::Empty,
            window = tracing::field::Empty,
        );
        let params = CompactParams { trigger, attempt, focus };
        Box::pin(self.compact_in(params, &span)).instrument(span.clone()).await
    }

    async fn compact_in(
        &mut self,
        params: CompactParams<'_>,
        span: &tracing::Span,
    ) -> Result<CompactResult> {
        let pool = self.pool;
        let now = self.now();
        let view = self.session.take_view(&pool.home).await?;
        let before = view.used();
        span.record("messages", view.len());
        span.record("before", before.get());
        span.record("window", view.ledger().window().get());
        self.listener.on(Event::CompactionBegan { trigger: params.trigger, tokens: before });
        self.log_trigger(&view)?;
        let began = pool.settings.timer.elapsed();
        let range = CompactedRange::of(&view);
        let engine = self.session.setup()?.engine.clone();
        let request = self.request(view, params);
        let result = engine.compact(request).await;
        self.record_health();
        // An engine that owns compaction may decide not to compact, except after the provider
        // rejected the request.
        let must = params.trigger == CompactionTrigger::Overflow && engine.info().owns_compaction;
        let failed = match &result {
            Ok(done) if done.compacted => !done.ok || done.result.is_none(),
            Ok(done) => !done.ok || must,
            Err(_) => true,
        };
        let mut done = Attempt::of(result);
        if !failed {
            self.store_attempt(&mut done, &range, now).await;
        }
        // A result that cannot be stored counts as a failure.
        if failed || done.is_refused() {
            self.notify(
                NoticeKind::Compaction,
                format!("the default compactor takes over: {}", done.why()),
            );
            let view = self.session.take_view(&pool.home).await?;
            done = Attempt::of(self.compact_by_default(self.request(view, params)).await);
            self.store_attempt(&mut done, &range, now).await;
        }
        let Attempt { result, stored } = done;
        let result = result?;
        let view = self.session.take_view(&pool.home).await?;
        let after = view.used();
        self.session.view = Some(view);
        span.record("after", after.get());
        let compacted = *stored.as_ref().unwrap_or(&false);
        let took = pool.settings.timer.elapsed().saturating_sub(began);
        let cost = Cost { calls: calls_of(result.result.as_ref()), took: Some(took) };
        self.report_compaction(compacted, before, after, cost);
        self.notify_warnings();
        stored?;
        Ok(result)
    }

    /// Logs what a compaction works on.
    pub(super) fn log_trigger(&self, view: &ContextView) -> Result<()> {
        let config = &self.session.setup()?.resolved.compaction;
        let window = view.ledger().window();
        let sizes: Vec<_> = view.nodes().iter().map(ctx_core::Node::tokens).collect();
        tracing::info!(
            session_id = %self.session.id,
            message_count = view.len(),
            estimated_tokens = view.used().get(),
            context_window = window.get(),
            threshold = config.threshold(view.ledger()).get(),
            chunk_ratio = config.chunk_ratio.of(&sizes, window),
            parts = config.chunk_ratio.parts(&sizes, window).max(config.parts as usize),
            "compaction triggered"
        );
        Ok(())
    }

    /// Reports and logs the end of a compaction.
    pub(super) fn report_compaction(
        &mut self,
        compacted: bool,
        before: Tokens,
        after: Tokens,
        cost: Cost,
    ) {
        tracing::info!(
            session_id = %self.session.id,
            compacted,
            original_tokens = before.get(),
            compacted_tokens = after.get(),
            compression_ratio = after.get() as f64 / before.get().max(1) as f64,
            duration_ms = cost.took.map(super::ask::millis),
            api_calls = cost.calls,
            "compaction completed"
        );
        let count = self.session.compactions;
        self.listener.on(Event::CompactionEnded { compacted, before, after, count });
    }

    /// Creates the request for a compaction at the threshold.
    pub(super) fn threshold_request(&self, view: ContextView) -> CompactRequest {
        let trigger = CompactionTrigger::Threshold;
        self.request(view, CompactParams { trigger, attempt: 1, focus: None })
    }

    fn request(&self, view: ContextView, params: CompactParams<'_>) -> CompactRequest {
        let turn = self.session.turn(&self.pool.settings.ids);
        let mut request = CompactRequest::new(&*self.session.id, view, turn, params.trigger);
        request.attempt = params.attempt;
        request.force = params.trigger == CompactionTrigger::Overflow;
        request.custom_instructions = params.focus.map(str::to_owned);
        request
    }

    async fn compact_by_default(&mut self, request: CompactRequest) -> Result<CompactResult> {
        let setup = self.session.setup()?;
        let config = setup.resolved.compaction.clone();
        let layer = Compaction::new(config, setup.summary_models.clone());
        match Layer::compact(&layer, &request) {
            Some(pending) => pending.await,
            None => Ok(CompactResult::nothing("the default compactor is disabled")),
        }
    }

    /// Stores the result of a compactor, if there is one.
    async fn store_attempt(&mut self, done: &mut Attempt, range: &CompactedRange, now: Timestamp) {
        let Ok(result) = &done.result else { return };
        if let Some(compacted) = result.result.clone().filter(|_| result.compacted) {
            done.stored = self.store(compacted, range, now).await.map(|()| true);
        }
    }

    /// Stores a compaction. The removed messages are archived.
    pub(super) async fn store(
        &mut self,
        mut compacted: Compacted,
        range: &CompactedRange,
        now: Timestamp,
    ) -> Result<()> {
        self.session.check_file()?;
        let details = compacted.details.as_ref().and_then(Details::from_json);
        let engine = &self.session.setup()?.engine;
        compacted.details.get_or_insert_with(|| json!({"engine": engine.info().id}));
        let after = compacted.tokens_after;
        trace_compaction(compacted.tokens_before, after, compacted.details.as_ref());
        self.session.store(compacted, range, now).await?;
        if let Some(at) = details.and_then(|details| details.memory_flush_at) {
            // An emergency compaction sets the flush time without a flush: the next flush is still
            // due.
            self.pending.flushed = Some((at, self.session.flushed_at.unwrap_or_default()));
        }
        self.outcome.compactions += 1;
        self.pending.compacted = true;
        self.pool.layers.action(layer::COMPACTION, "compact");
        // The turn may be dropped before its end; the next process must know of the compaction.
        self.record_usage().await;
        Ok(())
    }

    /// Stores the compactions made while assembling. Returns whether any was rejected: if the
    /// engine names an unknown entry, the default compactor runs instead.
    pub(super) async fn store_all(
        &mut self,
        compactions: Vec<Compacted>,
        view: &ContextView,
        now: Timestamp,
    ) -> Result<bool> {
        let range = CompactedRange::of(view);
        for compacted in compactions {
            let (before, after) = (compacted.tokens_before, view.used());
            let cost = Cost { calls: calls_of(Some(&compacted)), took: None };
            let trigger = CompactionTrigger::Threshold;
            self.listener.on(Event::CompactionBegan { trigger, tokens: before });
            let stored = self.store(compacted, &range, now).await;
            self.report_compaction(stored.is_ok(), before, after, cost);
            match stored {
                Err(error) if error.kind() == ErrorKind::Contract => {
                    let words = format!("the default compactor takes over: {error}");
                    self.notify(NoticeKind::Compaction, words);
                    self.make_room_by_default(now).await?;
                    return Ok(true);
                }
                stored => stored?,
            }
        }
        Ok(false)
    }

    async fn make_room_by_default(&mut self, now: Timestamp) -> Result<()> {
        let view = self.session.take_view(&self.pool.home).await?;
        let range = CompactedRange::of(&view);
        let request = self.threshold_request(view);
        let mut done = Attempt::of(self.compact_by_default(request).await);
        self.store_attempt(&mut done, &range, now).await;
        done.result.and(done.stored).map(drop)
    }
}

/// The result of a compactor, and whether it is stored.
struct Attempt {
    result: Result<CompactResult>,
    stored: Result<bool>,
}

impl Attempt {
    fn of(result: Result<CompactResult>) -> Self {
        Self { result, stored: Ok(false) }
    }

    /// Whether the result cannot be stored, regardless of what the compactor reports.
    fn is_refused(&self) -> bool {
        self.stored.as_ref().is_err_and(|error| error.kind() == ErrorKind::Contract)
    }

    fn why(&self) -> String {
        match (&self.result, &self.stored) {
            (Err(error), _) | (_, Err(error)) => error.to_string(),
            (Ok(done), _) => done.reason.clone().unwrap_or_default(),
        }
    }
}

/// The cost of a compaction, as far as known.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) calls: Option<usize>,
    pub(super) took: Option<Duration>,
}

/// Returns the number of model calls of a compaction, if its method records it.
pub(super) fn calls_of(compacted: Option<&Compacted>) -> Option<usize> {
    let details = compacted?.details.as_ref()?;
    Some(Details::from_json(details)?.receipt.calls.len())
}
