//! After a turn: notifies the engine, and compacts a session past the threshold.

use ctx_core::{CompactionTrigger, Error, ErrorKind, LeaseState, Result};
use tracing::Instrument;

use super::Turn;
use super::compact::{Cost, WindowShare, calls_of};
use crate::host::{Event, NoticeKind};
use crate::session::{BackgroundCompaction, CompactedRange};
use crate::sync::locked;

impl Turn<'_> {
    /// Finishes a turn that is stored. Failures do not affect its answer.
    pub(super) async fn finish(&mut self) {
        if let Err(error) = self.notify_engine().await {
            self.notify(NoticeKind::Engine, format!("the engine failed after the turn: {error}"));
        }
        self.flush_if_due(WindowShare::Whole).await;
        if let Err(error) = self.compact_past_threshold().await {
            let words = format!("the session was not compacted after the turn: {error}");
            self.notify(NoticeKind::Compaction, words);
        }
        self.notify_warnings();
    }

    async fn notify_engine(&mut self) -> Result<()> {
        let engine = self.session.setup()?.engine.clone();
        let leaf = self.session.leaf().unwrap_or_default();
        engine.commit_turn(&self.session.id, &leaf).await?;
        engine.after_turn(&self.session.id).await?;
        engine.maintain(&self.session.id).await
    }

    /// Compacts a session past its threshold: now, or in the background if the host keeps running.
    async fn compact_past_threshold(&mut self) -> Result<()> {
        let pool = self.pool;
        let view = self.session.take_view(&pool.home).await?;
        let setup = self.session.setup()?;
        let config = &setup.resolved.compaction;
        // An engine that owns compaction decides by itself when to compact.
        let lease = setup.engine.health().map(|health| health.lease);
        let owns = match lease {
            Some(lease) => lease == LeaseState::Granted,
            None => setup.engine.info().owns_compaction,
        };
        if !config.enabled || owns || view.used() <= config.threshold(view.ledger()) {
            self.session.view = Some(view);
            return Ok(());
        }
        if !pool.settings.background {
            self.session.view = Some(view);
            return self.compact(CompactionTrigger::Threshold, 1, None).await.map(drop);
        }
        self.log_trigger(&view)?;
        let size = view.total();
        let request = self.threshold_request(view);
        let engine = self.session.setup()?.engine.clone();
        let span = tracing::info_span!(parent: None, "compact", session = %self.session.id);
        let work = async move { engine.compact(request).await };
        let task = tokio::spawn(work.instrument(span));
        let background = BackgroundCompaction { task, leaf: self.session.leaf(), size };
        locked(&pool.background).insert(self.session.key.clone(), background);
        Ok(())
    }

    fn notify_not_compacted(&mut self, error: &Error) {
        let text = format!("the session was not compacted: {error}");
        self.notify(NoticeKind::Compaction, text);
    }

    /// Stores the background compaction since the last turn. An unfinished one is cancelled; the
    /// session continues without it.
    pub(super) async fn store_background_compaction(&mut self) -> Result<()> {
        let pool = self.pool;
        let Some(mut background) = locked(&pool.background).remove(&self.session.key) else {
            return Ok(());
        };
        if !background.is_finished() || background.leaf != self.session.leaf() {
            return Ok(());
        }
        let done = match (&mut background.task).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                self.notify_not_compacted(&error);
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let Some(compacted) = done.result.filter(|_| done.compacted) else { return Ok(()) };
        let (before, after) = (compacted.tokens_before, compacted.tokens_after);
        let cost = Cost { calls: calls_of(Some(&compacted)), took: None };
        let trigger = CompactionTrigger::Threshold;
        self.listener.on(Event::CompactionBegan { trigger, tokens: before });
        let now = self.now();
        // The session has the same entries as when the compaction started.
        let view = self.session.take_view(&pool.home).await?;
        let range = CompactedRange::of(&view);
        match self.store(compacted, &range, now).await {
            Err(error) if error.kind() == ErrorKind::Contract => {
                self.notify_not_compacted(&error);
                return Ok(());
            }
            stored => stored?,
        }
        self.report_compaction(true, before, after.unwrap_or(before), cost);
        Ok(())
    }
}
