//! Replays a transcript request by request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use ctx_config::Profile;
use ctx_core::{
    Action, AssembleRequest, Compacted, ContextEngine, ContextView, Edit, Entry, EntryId, Finished,
    Result, SequentialIds, Timestamp, TokenLedger, Tokens, TurnContext,
};
use ctx_memory::{Recall, Trim};
use ctx_model::Prices;
use ctx_session::ReplayMessage;

use crate::cache::{PromptCache, usage};
use crate::edited_messages::EditedMessages;
use crate::layer_tally::LayerTally;
use crate::{
    Baseline, CompactionReport, ReplayReport, ReplayTotals, RequestDetail, RequestReport,
    SessionReport,
};

/// Layers whose edits count as a compaction: they replace or drop history for good.
const COMPACTION_LAYERS: [&str; 2] = ["compaction", "hard-prune"];

const STORED: &str = "the session was compacted here";

/// The settings of a replay.
#[derive(Clone)]
pub struct ReplaySetup {
    /// Window, reserve, counter; system prompt and tool schemas if the transcript has them.
    pub ledger: TokenLedger,
    /// The provider's figures for the session, which correct the ledger.
    pub baseline: Baseline,
    /// The engine to evaluate.
    pub engine: Arc<dyn ContextEngine>,
    /// The profile.
    pub profile: Profile,
    /// The model whose prices are used, and the prices.
    pub model: Option<String>,
    /// See `model`.
    pub prices: Option<Prices>,
    /// Whether to keep each request's edits and components.
    pub details: bool,
}

impl ReplaySetup {
    /// Returns the model and the prices of answers whose model is not known.
    fn default_price(&self) -> (Option<&str>, Option<Prices>) {
        (self.model.as_deref(), self.prices)
    }
}

/// Replays the messages of a transcript's main line. Before each message marked as a request, the
/// engine assembles the view, the view is finished, and the request it would have sent is measured.
/// Compactions that ctx stored take effect where they were made. `progress` receives the number of
/// finished messages.
///
/// # Errors
///
/// Errors of the engine and of reading a message. Nothing is sent anywhere.
pub async fn replay(
    line: &[ReplayMessage],
    session: SessionReport,
    setup: &ReplaySetup,
    mut progress: impl FnMut(usize),
) -> Result<ReplayReport> {
    let mut run = ReplayRun::new(session, setup);
    for (done, ReplayMessage { item, compactions }) in line.iter().enumerate() {
        for (id, compacted) in compactions {
            run.take_stored(&item.entry, id, compacted);
        }
        if item.request {
            run.request(&item.entry).await?;
        }
        run.append(&item.entry)?;
        progress(done + 1);
    }
    Ok(run.finish())
}

/// The state of a replay between two messages.
struct ReplayRun<'a> {
    setup: &'a ReplaySetup,
    /// The prices of simulated requests.
    prices: Option<Prices>,
    ledger: TokenLedger,
    /// The report so far.
    report: ReplayReport,
    view: Option<ContextView>,
    raw: FullHistory,
    sent_cache: PromptCache,
    ids: Arc<SequentialIds>,
    last_request: Option<Timestamp>,
    forms: EditedMessages,
    tally: LayerTally,
    /// Requests that an engine other than the selected one assembled.
    by_others: usize,
}

/// The full history: the same session without dropped messages. Sizes are uncorrected.
#[derive(Default)]
struct FullHistory {
    total: Tokens,
    previous: Tokens,
    cache: PromptCache,
}

impl<'a> ReplayRun<'a> {
    fn new(session: SessionReport, setup: &'a ReplaySetup) -> Self {
        let ledger = setup.baseline.corrected(setup.ledger.clone());
        let priced = setup.prices.map(|_| 0.0);
        let report = ReplayReport {
            session,
            window: ledger.window(),
            reserve: ledger.reserve(),
            engine: setup.engine.info().id.to_string(),
            profile: setup.profile,
            counter: ledger.counter().kind.name().to_owned(),
            model: setup.model.clone(),
            recorded_compactions: setup.baseline.compactions.clone(),
            calibration: setup.baseline.calibration,
            totals: ReplayTotals {
                cost_without_usd: priced,
                cost_with_usd: priced,
                ..ReplayTotals::default()
            },
            ..ReplayReport::default()
        };
        Self {
            setup,
            report,
            prices: setup.baseline.prices(setup.prices),
            view: Some(ContextView::new(ledger.clone())),
            raw: FullHistory { total: ledger.fixed(), ..FullHistory::default() },
            ledger,
            sent_cache: PromptCache::default(),
            ids: Arc::default(),
            last_request: None,
            forms: EditedMessages::default(),
            tally: LayerTally::default(),
            by_others: 0,
        }
    }

    fn append(&mut self, entry: &Arc<Entry>) -> Result<()> {
        let (facts, tokens) = entry.measure(self.ledger.counter())?;
        if facts.in_model_context {
            self.raw.total += tokens;
        }
        self.view.as_mut().map_or(Ok(()), |view| view.append(entry.clone()))
    }

    async fn request(&mut self, answer: &Arc<Entry>) -> Result<()> {
        let Some(view) = self.view.take() else { return Ok(()) };
        let now = answer.timestamp();
        let turn = TurnContext {
            now: now.or(self.last_request).unwrap_or_default(),
            last_request: self.last_request,
            ids: self.ids.clone(),
            waits_for_models: true,
        };
        let request = AssembleRequest { session_id: self.report.session.path.clone(), view, turn };
        let mut view = self.setup.engine.assemble(request).await?.into_view();
        if let Some(why) = view.engine.as_ref().and_then(|note| note.reason.as_ref()) {
            self.by_others += 1;
            self.report.stand_in_reason.get_or_insert_with(|| why.clone());
        }
        let compacted = view.take_compactions();
        let finished = view.finish()?;
        for compacted in compacted {
            self.compacted(answer, None, compacted);
        }
        self.record(answer, now, &finished, &view)?;
        self.last_request = now.or(self.last_request);
        self.view = Some(view);
        Ok(())
    }

    /// Applies a stored compaction to the view. It is ignored if this engine dropped messages that
    /// the compaction keeps.
    fn take_stored(&mut self, next: &Entry, id: &EntryId, compacted: &Compacted) {
        let Some(view) = &mut self.view else { return };
        if view.compact(compacted.clone(), id.clone(), COMPACTION_LAYERS[0], STORED).is_ok() {
            view.take_compactions();
            self.compacted(next, Some(id.clone()), compacted.clone());
        }
    }

    fn compacted(&mut self, next: &Entry, stored: Option<EntryId>, compacted: Compacted) {
        let report = CompactionReport {
            request: self.report.requests.len(),
            entry_id: next.id().clone(),
            stored: stored.is_some(),
            id: stored,
            first_kept_entry_id: compacted.first_kept_entry_id,
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
            summary: compacted.summary,
            details: compacted.details,
        };
        if let Some(receipt) = report.receipt() {
            let totals = &mut self.report.totals;
            totals.summary_calls += receipt.calls.len();
            if let Some(cost) = receipt.cost_usd {
                *totals.summary_cost_usd.get_or_insert_default() += cost;
                *totals.cost_with_usd.get_or_insert_default() += cost;
            }
        }
        self.report.compactions.push(report);
    }

    fn record(
        &mut self,
        answer: &Entry,
        now: Option<Timestamp>,
        finished: &Finished,
        view: &ContextView,
    ) -> Result<()> {
        let (limit, corrected) = (self.ledger.limit(), |tokens| self.ledger.corrected(tokens));
        let unchanged_prefix = corrected(finished.unchanged_prefix).min(finished.tokens);
        let (raw, sent) = (corrected(self.raw.total), finished.tokens);
        let raw_cached = self.raw.cache.request(self.raw.previous, now);
        let cached = self.sent_cache.request(unchanged_prefix, now);
        self.raw.previous = raw;

        let mut actions: BTreeMap<String, u32> = BTreeMap::new();
        let (mut recalled_tokens, mut trimmed_messages) = (Tokens::ZERO, 0);
        let mut edits = finished.edits.clone();
        for edit in &mut edits {
            (edit.before, edit.after) = (corrected(edit.before), corrected(edit.after));
            *actions.entry(edit.layer.to_string()).or_default() += 1;
            let first = self.tally.add(edit);
            match edit.action {
                Action::Insert if edit.layer == Recall::ID => recalled_tokens += edit.after,
                Action::Drop if edit.layer == Trim::ID => trimmed_messages += u32::from(first),
                _ => {}
            }
        }
        let compacted = COMPACTION_LAYERS.iter().any(|layer| actions.contains_key(*layer));
        let costs = self.charge(answer, (raw, raw_cached), (sent, cached))?;
        let recorded = &self.setup.baseline.recorded;

        let totals = &mut self.report.totals;
        totals.requests += 1;
        totals.raw_tokens += raw.get();
        totals.sent_tokens += sent.get();
        totals.overflows_without += usize::from(raw > limit);
        totals.overflows_with += usize::from(sent > limit);
        totals.compactions += usize::from(compacted);
        totals.recalls += usize::from(recalled_tokens > Tokens::ZERO);
        totals.recalled_tokens += recalled_tokens.get();
        totals.trimmed_messages += u64::from(trimmed_messages);
        totals.prefix_reuse += f64::from(cached.0);
        self.report.requests.push(RequestReport {
            entry_id: answer.id().clone(),
            timestamp: now,
            raw_tokens: raw,
            sent_tokens: sent,
            recorded_tokens: recorded.prompt(answer.id()),
            cost_recorded_usd: recorded.cost(answer.id(), self.setup.default_price()),
            cached_tokens: cached,
            unchanged_prefix,
            fits: sent <= limit,
            cost_usd: costs.map(|(_, with)| with),
            cost_without_usd: costs.map(|(without, _)| without),
            recalled_tokens,
            trimmed_messages,
            actions,
        });
        if self.setup.details {
            self.add_detail(edits, finished, view);
        }
        Ok(())
    }

    fn add_detail(&mut self, edits: Vec<Edit>, finished: &Finished, view: &ContextView) {
        let mut components = view.components();
        for component in &mut components {
            component.tokens = self.ledger.corrected(component.tokens);
        }
        let forms = self.forms.of(&finished.edits, view);
        self.report.details.push(RequestDetail { edits, components, forms });
    }

    /// Adds the costs of both requests to the totals, and returns them: without ctx, with ctx.
    fn charge(
        &mut self,
        answer: &Entry,
        raw: (Tokens, Tokens),
        sent: (Tokens, Tokens),
    ) -> Result<Option<(f64, f64)>> {
        let Some(prices) = self.prices else { return Ok(None) };
        let reported = answer.message()?.meta.usage.and_then(|usage| usage.answer());
        let output = match reported {
            Some(output) => output,
            None => self.ledger.corrected(answer.tokens(self.ledger.counter())?).get(),
        };
        let cost = |(prompt, cached)| prices.cost(&usage(prompt, cached, output)).0;
        let (without, with) = (cost(raw), cost(sent));
        *self.report.totals.cost_without_usd.get_or_insert_default() += without;
        *self.report.totals.cost_with_usd.get_or_insert_default() += with;
        Ok(Some((without, with)))
    }

    fn finish(self) -> ReplayReport {
        let (baseline, mut report) = (&self.setup.baseline, self.report);
        let totals = &mut report.totals;
        if totals.sent_tokens > 0 {
            totals.prefix_reuse /= totals.sent_tokens as f64;
        }
        let (limit, compactions) = (self.ledger.limit(), baseline.compactions.len());
        let default = self.setup.default_price();
        report.recorded = baseline.recorded.totals(limit, compactions, default);
        totals.recorded_tokens = report.recorded.map(|recorded| recorded.tokens);
        totals.cost_recorded_usd = report.recorded.and_then(|recorded| recorded.cost_usd);
        report.engine_answered = totals.requests.saturating_sub(self.by_others);
        let health = self.setup.engine.health();
        report.engine_failures = health.as_ref().map_or(0, |health| health.failures);
        let stand_in = health.and_then(|health| health.stand_in).filter(|_| self.by_others > 0);
        report.stand_in = stand_in.map(Cow::into_owned);
        report.layers = self.tally.totals();
        report.acted = report.layers.keys().cloned().collect();
        report
    }
}
