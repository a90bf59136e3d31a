//! Compacting within a turn: the direct way, for who is in the session's lane already.

use std::time::Duration;

use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, ContextView, ErrorKind, Layer,
    Result, Timestamp, Tokens,
};
use ctx_layers::compaction::{Compaction, Details};
use serde_json::json;
use tracing::Instrument;

use super::Turn;
use crate::runtime::{Event, NoticeKind, layer};
use crate::session::Leaving;

/// How much of the window a silent request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// All that is free.
    Whole,
    /// What surely fits, where the provider refused more.
    Half,
}

/// What a compaction is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    trigger: CompactionTrigger,
    attempt: u32,
    focus: Option<&'a str>,
}

impl Turn<'_> {
    /// Compacts because somebody asked for it.
    pub(crate) async fn compact_by_hand(&mut self, focus: Option<&str>) -> Result<CompactResult> {
        if self.session.setting.is_none() {
            self.settle_first().await?;
        }
        let done = match self.swap_in().await {
            Ok(()) => self.compact_as_asked(focus).await,
            Err(error) => Err(error),
        };
        self.note_counters().await;
        done
    }

    /// Flushes memory, and compacts.
    pub(super) async fn compact_as_asked(&mut self, focus: Option<&str>) -> Result<CompactResult> {
        let flushed_at = self.session.flushed_at;
        self.flush_first(Room::Whole).await;
        let done = self.compact(CompactionTrigger::Manual, 1, focus).await;
        if !done.as_ref().is_ok_and(|done| done.compacted) {
            // The cycle goes on, and there is more to write down at its end.
            self.session.flushed_at = flushed_at;
            self.untold.flushed = None;
        }
        done
    }

    /// Compacts the session: the engine first, and where it fails the default compactor. What comes
    /// of it is stored, and the view made anew.
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
        let asked = Asked { trigger, attempt, focus };
        Box::pin(self.compact_in(asked, &span)).instrument(span.clone()).await
    }

    async fn compact_in(
        &mut self,
        asked: Asked<'_>,
        span: &tracing::Span,
    ) -> Result<CompactResult> {
        let inner = self.inner();
        let now = self.now();
        let view = self.session.take_view(&inner.home).await?;
        let before = view.used();
        span.record("messages", view.len());
        span.record("before", before.get());
        span.record("window", view.ledger().window().get());
        self.listener.on(Event::CompactionBegan { trigger: asked.trigger, tokens: before });
        self.log_trigger(&view)?;
        let began = inner.settings.timer.elapsed();
        let leaving = Leaving::of(&view);
        let engine = self.session.setting()?.engine.clone();
        let request = self.request(view, asked)?;
        let result = engine.compact(request).await;
        self.watch();
        // Who owns compaction may find that there is nothing to do, but not when the provider has
        // refused the request.
        let must = asked.trigger == CompactionTrigger::Overflow && engine.info().owns_compaction;
        let failed = match &result {
            Ok(done) if done.compacted => !done.ok || done.result.is_none(),
            Ok(done) => !done.ok || must,
            Err(_) => true,
        };
        let mut done = Done::of(result);
        if !failed {
            self.store_done(&mut done, &leaving, now).await;
        }
        // What cannot be stored is no compaction either.
        if failed || done.is_refused() {
            self.say(
                NoticeKind::Compaction,
                format!("the default compactor takes over: {}", done.why()),
            );
            let view = self.session.take_view(&inner.home).await?;
            done = Done::of(self.compact_by_default(self.request(view, asked)?).await);
            self.store_done(&mut done, &leaving, now).await;
        }
        let Done { result, stored } = done;
        let result = result?;
        let view = self.session.take_view(&inner.home).await?;
        let after = view.used();
        self.session.view = Some(view);
        span.record("after", after.get());
        let compacted = *stored.as_ref().unwrap_or(&false);
        let took = inner.settings.timer.elapsed().saturating_sub(began);
        let cost = Cost { calls: calls_of(result.result.as_ref()), took: Some(took) };
        self.ended(compacted, before, after, cost);
        self.say_warnings();
        stored?;
        Ok(result)
    }

    /// Logs what a compaction is to work on.
    pub(super) fn log_trigger(&self, view: &ContextView) -> Result<()> {
        let config = &self.session.setting()?.resolved.compaction;
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

    /// Tells and logs how a compaction ended.
    pub(super) fn ended(&mut self, compacted: bool, before: Tokens, after: Tokens, cost: Cost) {
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

    /// A compaction because the session passed the threshold.
    pub(super) fn threshold_request(&self, view: ContextView) -> Result<CompactRequest> {
        let trigger = CompactionTrigger::Threshold;
        self.request(view, Asked { trigger, attempt: 1, focus: None })
    }

    fn request(&self, view: ContextView, asked: Asked<'_>) -> Result<CompactRequest> {
        let setting = self.session.setting()?;
        let turn = self.session.turn(&self.inner().settings.ids, setting);
        let mut request = CompactRequest::new(&*self.session.id, view, turn, asked.trigger);
        request.attempt = asked.attempt;
        request.force = asked.trigger == CompactionTrigger::Overflow;
        request.custom_instructions = asked.focus.map(str::to_owned);
        Ok(request)
    }

    async fn compact_by_default(&mut self, request: CompactRequest) -> Result<CompactResult> {
        let setting = self.session.setting()?;
        let config = setting.resolved.compaction.clone();
        let layer = Compaction::new(config, setting.summary_models.clone());
        match Layer::compact(&layer, &request) {
            Some(pending) => pending.await,
            None => Ok(CompactResult::nothing("the default compactor is switched off")),
        }
    }

    /// Stores what a compactor made, if it made anything.
    async fn store_done(&mut self, done: &mut Done, leaving: &Leaving, now: Timestamp) {
        let Ok(result) = &done.result else { return };
        if let Some(compacted) = result.result.clone().filter(|_| result.compacted) {
            done.stored = self.store(compacted, leaving, now).await.map(|()| true);
        }
    }

    /// Stores a compaction. What it takes out is archived.
    pub(super) async fn store(
        &mut self,
        mut compacted: Compacted,
        leaving: &Leaving,
        now: Timestamp,
    ) -> Result<()> {
        self.session.check_file()?;
        let details = compacted.details.as_ref().and_then(Details::from_json);
        let engine = &self.session.setting()?.engine;
        compacted.details.get_or_insert_with(|| json!({"engine": engine.info().id}));
        self.session.store(compacted, leaving, now).await?;
        if let Some(at) = details.and_then(|details| details.memory_flush_at) {
            // An emergency is noted as a flush, and is none: the next one is still due.
            self.untold.flushed = Some((at, self.session.flushed_at.unwrap_or_default()));
        }
        self.outcome.compactions += 1;
        self.untold.compacted = true;
        self.inner().counts.did(layer::COMPACTION, "compact");
        // The turn may be dropped before its end; whoever opens the session next must know.
        self.note_counters().await;
        Ok(())
    }

    /// Stores the compactions that came with a request. Whether one was refused: where the engine names
    /// what is not there, the default compactor makes room instead.
    pub(super) async fn store_all(
        &mut self,
        compactions: Vec<Compacted>,
        view: &ContextView,
        now: Timestamp,
    ) -> Result<bool> {
        let leaving = Leaving::of(view);
        for compacted in compactions {
            let (before, after) = (compacted.tokens_before, view.used());
            let cost = Cost { calls: calls_of(Some(&compacted)), took: None };
            let trigger = CompactionTrigger::Threshold;
            self.listener.on(Event::CompactionBegan { trigger, tokens: before });
            let stored = self.store(compacted, &leaving, now).await;
            self.ended(stored.is_ok(), before, after, cost);
            match stored {
                Err(error) if error.kind() == ErrorKind::Contract => {
                    let words = format!("the default compactor takes over: {error}");
                    self.say(NoticeKind::Compaction, words);
                    self.make_room_by_default(now).await?;
                    return Ok(true);
                }
                stored => stored?,
            }
        }
        Ok(false)
    }

    async fn make_room_by_default(&mut self, now: Timestamp) -> Result<()> {
        let view = self.session.take_view(&self.inner().home).await?;
        let leaving = Leaving::of(&view);
        let request = self.threshold_request(view)?;
        let mut done = Done::of(self.compact_by_default(request).await);
        self.store_done(&mut done, &leaving, now).await;
        done.result.and(done.stored).map(drop)
    }
}

/// What came of a compactor, and whether it is stored.
struct Done {
    result: Result<CompactResult>,
    stored: Result<bool>,
}

impl Done {
    fn of(result: Result<CompactResult>) -> Self {
        Self { result, stored: Ok(false) }
    }

    /// Whether it is nothing that could be stored, whatever the compactor says.
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

/// What a compaction cost, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) calls: Option<usize>,
    pub(super) took: Option<Duration>,
}

/// How many calls of models a compaction took, where its method says so.
pub(super) fn calls_of(compacted: Option<&Compacted>) -> Option<usize> {
    let details = compacted?.details.as_ref()?;
    Some(Details::from_json(details)?.receipt.calls.len())
}
