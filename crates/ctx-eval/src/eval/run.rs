//! Replays one session under one candidate, request by request.

use std::sync::Arc;

use ctx_core::{
    Action, AssembleRequest, Compacted, ContextView, Entry, Result, Role, SequentialIds, Timestamp,
    TokenLedger, Tokens, TurnContext,
};
use ctx_layers::compaction::{Details, Receipt};
use ctx_memory::Recall;
use ctx_session::BranchMessage;

use super::arm_totals::ArmTotals;
use super::bench::ReplayLabels;
use super::losses::{Losses, cited_messages_in, ungrounded};
use super::presets::{PresetContext, act};
use super::{EngineArm, EvalArm, EvalSetup};

/// Replays a session under one candidate. A failing engine ends its replay: the remaining requests
/// count as wedges.
pub(super) async fn run(
    line: &[BranchMessage],
    candidate: &EvalArm,
    setup: &EvalSetup,
    labels: &ReplayLabels,
) -> ArmTotals {
    let mut run = EvalRun::new(candidate, setup, labels);
    for (done, item) in line.iter().enumerate() {
        if let Err(error) = run.step(item).await {
            run.sums.row.failed = Some(error.to_string());
            run.sums.row.wedges += line[done..].iter().filter(|item| item.request).count();
            break;
        }
    }
    run.finish()
}

/// Returns the tokens of an answer: as reported by the provider, if plausible.
pub(super) fn answer_tokens(answer: &Entry, setup: &EvalSetup) -> Result<u64> {
    let reported = answer.message()?.meta.usage.and_then(|usage| usage.answer());
    Ok(match reported {
        Some(output) => output,
        None => setup
            .baseline
            .corrected(boundless(setup))
            .corrected(answer.tokens(&setup.counter)?)
            .get(),
    })
}

/// Returns the ledger of a window that is never full, so that the view itself does not trim.
pub(super) fn boundless(setup: &EvalSetup) -> TokenLedger {
    TokenLedger::new(setup.counter, Tokens(u32::MAX), Tokens::ZERO)
        .with_system(setup.system)
        .with_tools(setup.tools)
}

/// Returns the ledger of a window under an engine's own reserve, with the report's counter.
pub(super) fn own_ledger(contender: &EngineArm, setup: &EvalSetup, window: Tokens) -> TokenLedger {
    TokenLedger::new(setup.counter, window, contender.ledger.reserve())
        .with_system(setup.system)
        .with_tools(setup.tools)
}

/// The state of a replay between two messages.
struct EvalRun<'a> {
    candidate: &'a EvalArm,
    setup: &'a EvalSetup,
    labels: &'a ReplayLabels,
    view: Option<ContextView>,
    history: Vec<Arc<Entry>>,
    user_spoke: bool,
    losses: Losses,
    previous: Option<String>,
    ids: Arc<SequentialIds>,
    last_request: Option<Timestamp>,
    sums: ArmTotals,
}

impl<'a> EvalRun<'a> {
    fn new(candidate: &'a EvalArm, setup: &'a EvalSetup, labels: &'a ReplayLabels) -> Self {
        let ledger = match candidate {
            EvalArm::Engine(contender) => own_ledger(contender, setup, setup.window),
            // Under another agent's policy, ctx does not trim the request to fit.
            EvalArm::Preset(_) | EvalArm::FullHistory => boundless(setup),
        };
        Self {
            candidate,
            setup,
            labels,
            view: Some(ContextView::new(setup.baseline.corrected(ledger))),
            history: Vec::new(),
            user_spoke: false,
            losses: Losses::new(setup.window),
            previous: None,
            ids: Arc::default(),
            last_request: None,
            sums: ArmTotals::new(
                candidate.name(),
                candidate.kind(),
                setup.baseline.prices(setup.prices),
            ),
        }
    }

    async fn step(&mut self, item: &BranchMessage) -> Result<()> {
        if item.request {
            self.request(&item.entry).await?;
        }
        let facts = item.entry.outline()?;
        self.user_spoke = facts.role == Role::User && facts.has_content;
        self.losses.add_message(&item.entry);
        self.history.push(item.entry.clone());
        self.view.as_mut().map_or(Ok(()), |view| view.append(item.entry.clone()))
    }

    /// Lets an engine assemble the request, and collects its summaries.
    async fn assemble(
        &mut self,
        engine: &EngineArm,
        view: ContextView,
        now: Option<Timestamp>,
        summaries: &mut Vec<String>,
    ) -> Result<ContextView> {
        let turn = TurnContext {
            now: now.or(self.last_request).unwrap_or_default(),
            last_request: self.last_request,
            ids: self.ids.clone(),
            waits_for_models: true,
        };
        let session_id = self.setup.session.path.clone();
        let request = AssembleRequest { session_id, view, turn };
        let mut view = engine.engine.assemble(request).await?.into_view();
        for compacted in view.take_compactions() {
            let receipt = receipt_of(&compacted);
            self.sums.row.calls += receipt.as_ref().map_or(0, |r| r.calls.len() as u64);
            self.sums.add_cost(receipt.and_then(|receipt| receipt.cost_usd));
            summaries.extend(Some(compacted.summary).filter(|text| !text.is_empty()));
        }
        Ok(view)
    }

    async fn request(&mut self, answer: &Arc<Entry>) -> Result<()> {
        let Some(mut view) = self.view.take() else { return Ok(()) };
        let now = answer.timestamp();
        let before = view.used();
        let mut stuck = false;
        let mut summaries = Vec::new();
        match self.candidate {
            EvalArm::FullHistory => {}
            EvalArm::Preset(preset) => {
                let moment = PresetContext {
                    window: self.setup.window,
                    new_turn: self.user_spoke,
                    history: &self.history,
                };
                let done = act(preset, &mut view, &moment)?;
                stuck = done.stuck;
                if let Some(made) = done.summary {
                    for _ in 0..made.calls {
                        self.sums.summary_call(made.input, made.output);
                    }
                    summaries.extend((!made.text.is_empty()).then_some(made.text));
                }
                // The presets' own compactions need not be stored.
                view.take_compactions();
            }
            EvalArm::Engine(engine) => {
                view = self.assemble(engine, view, now, &mut summaries).await?;
            }
        }
        let finished = view.finish()?;
        let cut = self.losses.note(&finished.edits);
        self.labels.judge(answer.id(), &view, &mut self.sums.row.needed_next)?;
        let blocks = finished.edits.iter().filter(|edit| edit.layer == Recall::ID);
        let blocks = blocks.filter(|edit| edit.action == Action::Insert);
        self.sums.row.block_tokens += blocks.map(|edit| edit.after.get()).sum::<u64>();
        for summary in summaries {
            self.audit(&view, summary);
        }
        if cut && finished.tokens < before {
            self.sums.cut(before, finished.tokens);
        }
        if self.losses.is_due() {
            self.judge(&view)?;
        }
        let answer_tokens = answer_tokens(answer, self.setup)?;
        let prefix = view.ledger().corrected(finished.unchanged_prefix);
        self.sums.request(finished.tokens, prefix, now, answer_tokens);
        self.sums.row.wedges += usize::from(stuck || finished.tokens > self.setup.window);
        self.last_request = now.or(self.last_request);
        self.view = Some(view);
        Ok(())
    }

    /// Audits a summary for unsupported claims. Its sources are the replaced messages, the messages
    /// still in the view, and the previous summary.
    fn audit(&mut self, view: &ContextView, summary: String) {
        let mut source = self.losses.messages();
        source.extend(cited_messages_in(view));
        let invented = ungrounded(&summary, &source, self.previous.as_deref());
        self.sums.unsupported(&invented);
        self.previous = Some(summary);
    }

    fn judge(&mut self, view: &ContextView) -> Result<()> {
        self.sums.coverage += self.losses.judge(view)?;
        Ok(())
    }

    fn finish(mut self) -> ArmTotals {
        // Losses since the last judgement were too small to be judged before.
        if let Some(view) = self.view.take().filter(|_| self.losses.is_pending())
            && self.judge(&view).is_err()
        {
            self.sums
                .row
                .failed
                .get_or_insert_with(|| "the last request cannot be read".to_owned());
        }
        self.sums
    }
}

/// Returns the receipt of a compaction by layer 3. Other engines' details have any format.
fn receipt_of(compacted: &Compacted) -> Option<Receipt> {
    Some(Details::from_json(compacted.details.as_ref()?)?.receipt)
}
