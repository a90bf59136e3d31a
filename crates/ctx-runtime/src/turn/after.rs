//! What follows a turn: the engine is told, and a session past the threshold is compacted.

use ctx_core::{CompactResult, CompactionTrigger, EntryId, ErrorKind, LeaseState, Result, Tokens};
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::Turn;
use super::compact::{Cost, Room, calls_of};
use crate::runtime::{Event, NoticeKind};
use crate::session::{Leaving, locked};

/// A compaction that is written beside the turns. It ends with this value.
pub(crate) struct Background {
    task: JoinHandle<Result<CompactResult>>,
    /// The last entry of the session that it is written from.
    leaf: Option<EntryId>,
    /// How many tokens of messages it works on.
    size: Tokens,
}

impl Background {
    /// Whether it is written.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// How many tokens of messages it keeps in memory.
    pub(crate) fn held(&self) -> u64 {
        if self.is_finished() { 0 } else { self.size.get() }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Turn<'_> {
    /// The turn is stored. What fails from here on costs the answer nothing.
    pub(super) async fn finish(&mut self) {
        if let Err(error) = self.tell_engine().await {
            self.say(NoticeKind::Engine, format!("the engine failed after the turn: {error}"));
        }
        self.flush_if_due(Room::Whole).await;
        if let Err(error) = self.compact_past_threshold().await {
            let words = format!("the session was not compacted after the turn: {error}");
            self.say(NoticeKind::Compaction, words);
        }
        self.say_warnings();
    }

    async fn tell_engine(&mut self) -> Result<()> {
        let engine = self.session.setting()?.engine.clone();
        let leaf = self.session.leaf().unwrap_or_default();
        engine.commit_turn(&self.session.id, &leaf).await?;
        engine.after_turn(&self.session.id).await?;
        engine.maintain(&self.session.id).await
    }

    /// Compacts a session that is past its threshold: now, or beside what comes next where the host
    /// goes on running.
    async fn compact_past_threshold(&mut self) -> Result<()> {
        let inner = self.inner();
        let view = self.session.take_view(&inner.home).await?;
        let setting = self.session.setting()?;
        let config = &setting.resolved.compaction;
        // An engine that owns compaction decides by itself when it is time.
        let lease = setting.engine.health().map(|health| health.lease);
        let owns = match lease {
            Some(lease) => lease == LeaseState::Granted,
            None => setting.engine.info().owns_compaction,
        };
        if !config.enabled || owns || view.used() <= config.threshold(view.ledger()) {
            self.session.view = Some(view);
            return Ok(());
        }
        if !inner.settings.background {
            self.session.view = Some(view);
            return self.compact(CompactionTrigger::Threshold, 1, None).await.map(drop);
        }
        self.log_trigger(&view)?;
        let size = view.total();
        let request = self.threshold_request(view)?;
        let engine = self.session.setting()?.engine.clone();
        let span = tracing::info_span!(parent: None, "compact", session = %self.session.id);
        let work = async move { engine.compact(request).await };
        let task = tokio::spawn(work.instrument(span));
        let background = Background { task, leaf: self.session.leaf(), size };
        locked(&inner.background).insert(self.session.key.clone(), background);
        Ok(())
    }

    /// Takes in what was compacted since the last turn. What is not written yet is given up: the
    /// session goes on without it.
    pub(super) async fn swap_in(&mut self) -> Result<()> {
        let inner = self.inner();
        let Some(mut background) = locked(&inner.background).remove(&self.session.key) else {
            return Ok(());
        };
        if !background.is_finished() || background.leaf != self.session.leaf() {
            return Ok(());
        }
        let done = match (&mut background.task).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                self.say(NoticeKind::Compaction, format!("the session was not compacted: {error}"));
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
        // The session is the one that it was written from, entry by entry.
        let view = self.session.take_view(&inner.home).await?;
        let leaving = Leaving::of(&view);
        match self.store(compacted, &leaving, now).await {
            Err(error) if error.kind() == ErrorKind::Contract => {
                self.say(NoticeKind::Compaction, format!("the session was not compacted: {error}"));
                return Ok(());
            }
            stored => stored?,
        }
        self.ended(true, before, after.unwrap_or(before), cost);
        Ok(())
    }
}
