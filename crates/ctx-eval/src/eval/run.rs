//! One candidate over one session, request by request.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, Compacted, ContextView, Entry, Result, Role, SequentialIds, Timestamp,
    TokenLedger, Tokens, TurnContext,
};
use ctx_layers::compaction::{Details, Receipt};
use ctx_session::LineItem;

use super::losses::{Losses, said_in, ungrounded};
use super::presets::{Moment, act};
use super::tally::Sums;
use super::{Candidate, Contender, EvalSetup};

/// Replays a session under one candidate. An engine that fails ends its replay: the requests that
/// were left count as wedges.
pub(super) async fn run(line: &[LineItem], candidate: &Candidate, setup: &EvalSetup) -> Sums {
    let mut run = Run::new(candidate, setup);
    for (done, item) in line.iter().enumerate() {
        if let Err(error) = run.step(item).await {
            run.sums.failed = Some(error.to_string());
            run.sums.wedges += line[done..].iter().filter(|item| item.request).count();
            break;
        }
    }
    run.finish()
}

/// What an answer measures: what the provider reported, where that can be.
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

/// A window that nothing fills: a view does not trim what is inside of it.
pub(super) fn boundless(setup: &EvalSetup) -> TokenLedger {
    TokenLedger::new(setup.counter, Tokens(u32::MAX), Tokens::ZERO)
        .with_system(setup.system)
        .with_tools(setup.tools)
}

/// A window under an engine's own reserve, counted as the report counts.
pub(super) fn own_ledger(contender: &Contender, setup: &EvalSetup, window: Tokens) -> TokenLedger {
    TokenLedger::new(setup.counter, window, contender.ledger.reserve())
        .with_system(setup.system)
        .with_tools(setup.tools)
}

/// The state of a replay between two messages.
struct Run<'a> {
    candidate: &'a Candidate,
    setup: &'a EvalSetup,
    view: Option<ContextView>,
    history: Vec<Arc<Entry>>,
    user_spoke: bool,
    losses: Losses,
    previous: Option<String>,
    ids: Arc<SequentialIds>,
    last_request: Option<Timestamp>,
    sums: Sums,
}

impl<'a> Run<'a> {
    fn new(candidate: &'a Candidate, setup: &'a EvalSetup) -> Self {
        let ledger = match candidate {
            Candidate::Engine(contender) => own_ledger(contender, setup, setup.window),
            // Under a policy of somebody else's nobody trims the request to fit.
            Candidate::Preset(_) | Candidate::Nothing => boundless(setup),
        };
        Self {
            candidate,
            setup,
            view: Some(ContextView::new(setup.baseline.corrected(ledger))),
            history: Vec::new(),
            user_spoke: false,
            losses: Losses::new(setup.window),
            previous: None,
            ids: Arc::default(),
            last_request: None,
            sums: Sums::new(
                candidate.name(),
                candidate.kind(),
                setup.baseline.prices(setup.prices),
            ),
        }
    }

    async fn step(&mut self, item: &LineItem) -> Result<()> {
        if item.request {
            self.request(&item.entry).await?;
        }
        let facts = item.entry.facts()?;
        self.user_spoke = facts.role == Role::User && facts.has_content;
        self.losses.know(&item.entry);
        self.history.push(item.entry.clone());
        match &mut self.view {
            Some(view) => view.append(item.entry.clone()),
            None => Ok(()),
        }
    }

    async fn request(&mut self, answer: &Arc<Entry>) -> Result<()> {
        let Some(mut view) = self.view.take() else { return Ok(()) };
        let now = answer.timestamp();
        let before = view.used();
        let mut stuck = false;
        let mut summaries = Vec::new();
        match self.candidate {
            Candidate::Nothing => {}
            Candidate::Preset(preset) => {
                let moment = Moment {
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
            Candidate::Engine(contender) => {
                let turn = TurnContext {
                    now: now.or(self.last_request).unwrap_or_default(),
                    last_request: self.last_request,
                    ids: self.ids.clone(),
                    profile: contender.profile,
                };
                let session_id = self.setup.session.path.clone();
                let request = AssembleRequest { session_id, view, turn };
                view = contender.engine.assemble(request).await?.into_view();
                for compacted in view.take_compactions() {
                    let receipt = receipt_of(&compacted);
                    self.sums.calls += receipt.as_ref().map_or(0, |r| r.calls.len() as u64);
                    self.sums.add_cost(receipt.and_then(|receipt| receipt.cost_usd));
                    summaries.extend(Some(compacted.summary).filter(|text| !text.is_empty()));
                }
            }
        }
        let finished = view.finish()?;
        let cut = self.losses.note(&finished.edits);
        for summary in summaries {
            self.audit(&view, summary);
        }
        if cut && finished.tokens < before {
            self.sums.cut(before, finished.tokens);
        }
        if self.losses.are_due() {
            self.judge(&view)?;
        }
        let answer_tokens = answer_tokens(answer, self.setup)?;
        let prefix = view.ledger().corrected(finished.unchanged_prefix);
        self.sums.request(finished.tokens, prefix, now, answer_tokens);
        self.sums.wedges += usize::from(stuck || finished.tokens > self.setup.window);
        self.last_request = now.or(self.last_request);
        self.view = Some(view);
        Ok(())
    }

    /// Looks for what a summary made up: it may draw on what it stands for, on what is still there,
    /// and on the summary before it.
    fn audit(&mut self, view: &ContextView, summary: String) {
        let mut source = self.losses.said();
        source.extend(said_in(view));
        let invented = ungrounded(&summary, &source, self.previous.as_deref());
        self.sums.invented(&invented);
        self.previous = Some(summary);
    }

    fn judge(&mut self, view: &ContextView) -> Result<()> {
        self.sums.coverage += self.losses.judge(view)?;
        Ok(())
    }

    fn finish(mut self) -> Sums {
        // What was lost last was too little to be judged before.
        if let Some(view) = self.view.take().filter(|_| self.losses.any())
            && self.judge(&view).is_err()
        {
            self.sums.failed.get_or_insert_with(|| "the last request cannot be read".to_owned());
        }
        self.sums
    }
}

/// What layer 3 says of its compaction. Another engine's details say what they like.
fn receipt_of(compacted: &Compacted) -> Option<Receipt> {
    Some(Details::from_json(compacted.details.as_ref()?)?.receipt)
}
