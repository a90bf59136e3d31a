//! Arms that edit a view, round by round: engines, and the policies of other agents.

use std::time::Instant;

use ctx_core::{
    CompactRequest, Compacted, CompactionTrigger, ContextView, EntryId, Result, TokenLedger,
    TurnContext,
};
use ctx_layers::compaction::Details;

use super::super::request::Request;
use super::{Outcome, Task};
use crate::eval::presets::{PresetContext, squeeze};
use crate::eval::run::{boundless, own_ledger};
use crate::eval::{EngineArm, EvalSetup, Preset};

/// A view, and the measurements of its compactions.
struct Rolled<'a> {
    task: &'a Task<'a>,
    view: ContextView,
    outcome: Outcome,
}

impl<'a> Rolled<'a> {
    fn new(task: &'a Task<'a>, ledger: TokenLedger) -> Self {
        Self { task, view: ContextView::new(ledger), outcome: Outcome::default() }
    }

    /// Ends a round that began at `started`.
    fn settle(&mut self, started: Instant) -> Result<()> {
        self.outcome.millis += started.elapsed().as_secs_f64() * 1_000.0;
        self.view.take_compactions();
        self.view.finish()?;
        let size = Request::of_view(&self.view)?.tokens(&self.task.counter);
        self.outcome.sizes.push(size);
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome> {
        self.outcome.request = Request::of_view(&self.view)?;
        Ok(self.outcome)
    }
}

fn append(view: &mut ContextView, task: &Task<'_>, from: usize, end: usize) -> Result<()> {
    task.history[from..end].iter().try_for_each(|item| view.append(item.entry.clone()))
}

/// Lets an engine compact. Its window is as large as the history and the reserve.
pub(super) async fn engine(arm: &EngineArm, task: &Task<'_>, setup: &EvalSetup) -> Result<Outcome> {
    let all = super::super::session::tokens(task.history);
    // At most a quarter of the window is reserve.
    let window = all.scale(4.0 / 3.0).max(arm.ledger.window());
    let ledger = own_ledger(arm, setup, window);
    let mut rolled = Rolled::new(task, ledger.clone());
    let mut made: Vec<(usize, Compacted)> = Vec::new();
    let mut from = 0;
    for (end, target) in task.rounds() {
        append(&mut rolled.view, task, from, end)?;
        from = end;
        let last = task.history[..end].iter().rev().find_map(|item| item.entry.timestamp());
        let turn = TurnContext::at(last.unwrap_or_default());
        let copy = copy_of(task, &made, end, ledger.clone())?;
        let session = setup.session.path.clone();
        let mut request = CompactRequest::new(session, copy, turn, CompactionTrigger::Manual);
        request.token_budget = Some(target);
        request.force = true;
        let started = Instant::now();
        let answer = arm.engine.compact(request).await?;
        if let Some(compacted) = answer.result.filter(|_| answer.compacted) {
            rolled.outcome.note(&compacted);
            rolled.view.compact(compacted.clone(), id_of(end), "eval", "compacted")?;
            made.push((end, compacted));
        }
        rolled.settle(started)?;
    }
    rolled.finish()
}

/// Returns another view of the history up to `end` with the same compactions, because an engine
/// consumes its view.
fn copy_of(
    task: &Task<'_>,
    made: &[(usize, Compacted)],
    end: usize,
    ledger: TokenLedger,
) -> Result<ContextView> {
    let mut view = ContextView::new(ledger);
    let mut from = 0;
    for (at, compacted) in made {
        append(&mut view, task, from, *at)?;
        view.compact(compacted.clone(), id_of(*at), "eval", "compacted")?;
        view.take_compactions();
        view.finish()?;
        from = *at;
    }
    append(&mut view, task, from, end)?;
    Ok(view)
}

fn id_of(end: usize) -> EntryId {
    format!("c{end:07x}").into()
}

impl Outcome {
    /// Reads the details of a compaction by ctx.
    fn note(&mut self, compacted: &Compacted) {
        let Some(details) = compacted.details.as_ref().and_then(Details::from_json) else { return };
        self.receipt = Some(details.receipt.audit.coverage);
        if let Some(cost) = details.receipt.cost_usd {
            *self.cost_usd.get_or_insert_default() += cost;
        }
    }
}

/// Lets another agent's policy compact. The history fills its window exactly.
pub(super) fn preset(preset: &Preset, task: &Task<'_>, setup: &EvalSetup) -> Result<Outcome> {
    let mut rolled = Rolled::new(task, boundless(setup));
    let history: Vec<_> = task.history.iter().map(|item| item.entry.clone()).collect();
    let mut from = 0;
    for (end, target) in task.rounds() {
        append(&mut rolled.view, task, from, end)?;
        from = end;
        let window = rolled.view.used();
        let moment = PresetContext { window, new_turn: true, history: &history[..end] };
        let started = Instant::now();
        let done = squeeze(preset, &mut rolled.view, &moment, target)?;
        if let Some(made) = done.summary {
            let calls = std::iter::repeat_n((made.input, made.output), made.calls as usize);
            rolled.outcome.calls.extend(calls);
        }
        rolled.settle(started)?;
    }
    rolled.finish()
}
