//! Compaction as a layer of the built-in engine.

use std::sync::Arc;

use ctx_core::{
    CompactRequest, CompactResult, CompactionTrigger, ContextView, Layer, Pending,
    PendingCompaction, Prepared, Result, SummaryModels, TurnContext,
};

use crate::{CompactOptions, Config, Details, History, Rung, compact};

use super::ID;

/// Replaces old history by a verified summary when the request exceeds the threshold.
///
/// # Notes
///
/// `prepare` writes the summary and `apply` puts it into the view; the host takes it from
/// [`ContextView::take_compactions`] and stores it. Without models the extractive summariser writes
/// it. The layer never fails a request: if no summary would make it smaller, the later layers
/// continue.
///
/// # Default
///
/// On, at window minus reserve. If disabled, it compacts only on explicit request.
///
/// # Example
///
/// ```
/// use ctx_compaction::{Compaction, Config};
/// let layer = Compaction::new(Config::default(), None);
/// # let _: &dyn ctx_core::Layer = &layer;
/// ```
#[derive(Clone, Debug)]
pub struct Compaction {
    config: Arc<Config>,
    models: Option<SummaryModels>,
}

impl Compaction {
    /// The layer's name in manifests.
    pub(crate) const ID: &'static str = ID;

    /// Creates a layer that calls `models`, if there are any.
    #[must_use]
    pub fn new(config: Config, models: Option<SummaryModels>) -> Self {
        let models = models.filter(|models| !models.chain.is_empty());
        Self { config: Arc::new(config), models }
    }
}

impl Layer for Compaction {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn prepare(&self, view: &ContextView, turn: &TurnContext) -> Option<Pending> {
        if !self.config.enabled || view.used() <= self.config.threshold(view.ledger()) {
            return None;
        }
        let history = History::of(view);
        let options = CompactOptions::new(CompactionTrigger::Threshold, turn.now);
        let options = CompactOptions {
            models: self.models.clone(),
            waits_for_models: turn.waits_for_models,
            ..options
        };
        let config = self.config.clone();
        Some(Box::pin(async move {
            let result = compact(history?, config, options).await?;
            Ok(Box::new(result) as Prepared)
        }))
    }

    fn apply(
        &self,
        view: &mut ContextView,
        prepared: Option<Prepared>,
        turn: &TurnContext,
    ) -> Result<()> {
        let result = prepared.and_then(|prepared| prepared.downcast::<CompactResult>().ok());
        let Some(compacted) = result.and_then(|result| result.result) else { return Ok(()) };
        let receipt = compacted.details.as_ref().and_then(Details::from_json);
        let reason = match receipt.map(|details| details.receipt.rung) {
            Some(Rung::HardPrune) => "dropped, because the request exceeded the threshold",
            _ => "summarised, because the request exceeded the threshold",
        };
        view.compact(compacted, turn.ids.next_id(), ID, reason)?;
        Ok(())
    }

    fn compact(&self, request: &CompactRequest) -> Option<PendingCompaction> {
        if !self.config.enabled && request.trigger != CompactionTrigger::Manual {
            let off = "compaction is disabled: agents.defaults.compaction.enabled";
            return Some(Box::pin(async move { Ok(CompactResult::nothing(off)) }));
        }
        let history = History::of(&request.view);
        let mut options = CompactOptions::of(request);
        options.models = options.models.or_else(|| self.models.clone());
        let config = self.config.clone();
        Some(Box::pin(async move { compact(history?, config, options).await }))
    }
}
