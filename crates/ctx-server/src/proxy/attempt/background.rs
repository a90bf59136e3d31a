//! Begins and applies compactions in the background.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{CompactRequest, CompactionTrigger, Result, Role, Tokens, TurnContext};
use ctx_dialect::wire::Protocol;
use ctx_hosted::{HistoryItem, HostedSession};
use ctx_model::{Catalogue, Prices};
use ctx_session::clock;
use ctx_trace::CompactionRecord;

use super::{Attempt, guarded, lost};
use crate::proxy::background::cache_lifetime;
use crate::proxy::config::SummariesBy;
use crate::proxy::conversation::{Conversation, ConversationState};
use crate::proxy::limits::ModelLimits;
use crate::proxy::prepare::Retry;
use crate::proxy::summary_record::record_compaction;
use crate::proxy::swap::Swap;

/// The share of the threshold, without the fixed parts, that is left when the compaction is applied
/// at the threshold; as for a compaction that is made there.
const TARGET_SHARE: f64 = 0.6;

/// The lifetime of Anthropic's cache, if it is not the short one.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The smallest share that is left.
const LEAST_SHARE: f64 = 0.25;

impl Attempt<'_> {
    /// Applies the compaction that is ready, if the request is over the threshold or refused, if the
    /// provider has no cache of it, or if that [pays](Swap::pays).
    pub(super) fn apply_ready(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        limits: ModelLimits,
        retry: Option<Retry>,
    ) -> Result<Option<CompactionRecord>> {
        let ConversationState { session, compaction, .. } = state;
        let (Some(session), Some(config)) = (session, compaction) else { return Ok(None) };
        let Some(saved) = conversation.background.saving(session) else { return Ok(None) };
        let withheld = limits.withheld(&session.ledger);
        let before = session.used(withheld)?;
        let ledger = session.view.as_ref().ok_or_else(lost)?.ledger();
        let threshold = config.threshold(ledger);
        let fixed = ledger.corrected(ledger.fixed() + limits.instructions);
        let swap = || Swap {
            saved,
            rewritten: before - saved - fixed,
            left: threshold - before,
            growth: ledger.corrected(growth(session)),
        };
        let is_worth_it = || {
            if conversation.background.is_running() {
                return false;
            }
            let lifetime = cache_lifetime(self.client_request.protocol(), self.request.body());
            self.is_uncached(conversation, session, lifetime)
                || self.prices(session, lifetime).is_some_and(|prices| swap().pays(prices))
        };
        if before <= threshold && retry.is_none() && !is_worth_it() {
            return Ok(None);
        }
        let Some(result) = conversation.background.take() else { return Ok(None) };
        if let Err(error) = session.apply(&result) {
            self.warn_failed(&error);
            return Ok(None);
        }
        let entry = session.in_force.as_ref().and_then(|kept| kept.summary_id()).cloned();
        // The session has grown since the compaction was made.
        let after = session.used(withheld)?;
        let withheld = session.ledger.corrected(withheld);
        Ok(result.result.map(|mut compacted| {
            compacted.tokens_before = before - withheld;
            compacted.tokens_after = Some(after - withheld);
            record_compaction(self.proxy, &conversation.id, entry, &compacted)
        }))
    }

    /// Whether the provider's cache of the last request cannot be used: it is too old, or the model,
    /// the instructions or the tools differ.
    fn is_uncached(
        &self,
        conversation: &Conversation,
        session: &HostedSession,
        lifetime: Duration,
    ) -> bool {
        let millis = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
        session.last_request.is_some_and(|at| clock::now().0 - at.0 > millis)
            || conversation.cached().is_some_and(|cached| !cached.has_head(&self.head()))
    }

    /// Returns the prices of the request's model with a cache of that lifetime, if those of its cache
    /// are known.
    fn prices(&self, session: &HostedSession, lifetime: Duration) -> Option<Prices> {
        let has_cache = |prices: &Prices| prices.cache_read.is_some();
        let known = || Catalogue::embedded().find(self.request.model.as_deref()?);
        let prices = session.resolved.prices.filter(has_cache);
        let prices = prices.or_else(|| known().map(|model| model.prices).filter(has_cache))?;
        let is_hour = self.client_request.protocol() == Protocol::Messages && lifetime == HOUR;
        Some(prices.with_hour_writes(if is_hour { 1.0 } else { 0.0 }))
    }

    /// Begins a compaction in the background if the assembled request of `used` tokens is over its
    /// share of the threshold. `model` is kept alive until it ends.
    pub(super) fn compact_ahead(
        &self,
        conversation: &Conversation,
        state: &ConversationState,
        limits: ModelLimits,
        used: Tokens,
        model: Arc<dyn Any + Send + Sync>,
    ) -> Result<()> {
        let ConversationState { session: Some(session), compaction: Some(config), .. } = state
        else {
            return Ok(());
        };
        let ledger = &session.ledger;
        let withheld = ledger.corrected(limits.withheld(ledger));
        let threshold = config.threshold(ledger) - withheld;
        let ratio = self.proxy.settings.config.background_ratio;
        if used < threshold.scale(ratio) || !conversation.background.begin(session) {
            return Ok(());
        }
        // The request grows until the compaction is applied.
        let fixed = ledger.corrected(ledger.fixed());
        let messages = threshold - fixed;
        let target = messages.scale(TARGET_SHARE) - (threshold - used);
        let budget = fixed + target.max(messages.scale(LEAST_SHARE));
        let request = |waits_for_models| -> Result<CompactRequest> {
            let turn = TurnContext { waits_for_models, ..session.turn(None) };
            let (id, view) = (session.id.clone(), session.copy_of_view()?);
            let request = CompactRequest::new(id, view, turn, CompactionTrigger::Threshold);
            Ok(CompactRequest { force: true, token_budget: Some(budget), ..request })
        };
        let has_model = self.proxy.settings.config.summaries != SummariesBy::Extractive;
        let first = request(false)?;
        let second = has_model.then(|| request(true)).transpose()?;
        let (engine, background) = (session.engine.clone(), conversation.background.clone());
        let permits = self.proxy.background.clone();
        tokio::spawn(async move {
            let _model = model;
            if let Ok(_permit) = permits.acquire_owned().await {
                for request in [Some(first), second].into_iter().flatten() {
                    background.set_ready(guarded(engine.compact(request)).await.ok());
                }
            }
            background.end();
        });
        Ok(())
    }
}

/// Returns the mean size of an answer and what follows it until the next one; a request has one
/// answer.
fn growth(session: &HostedSession) -> Tokens {
    let counter = session.ledger.counter();
    let is_answer = |item: &HistoryItem| {
        item.entry.outline().is_ok_and(|outline| outline.role == Role::Assistant)
    };
    let (mut answers, mut tokens) = (0, 0);
    for group in session.history.items().chunk_by(|a, b| is_answer(a) == is_answer(b)) {
        answers += u64::from(is_answer(&group[0]));
        if answers > 0 {
            let sizes = group.iter().filter_map(|item| item.entry.tokens(counter).ok());
            tokens += sizes.map(Tokens::get).sum::<u64>();
        }
    }
    Tokens::saturating_from(tokens / answers.max(1))
}
