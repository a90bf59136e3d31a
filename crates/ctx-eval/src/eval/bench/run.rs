//! Runs the arms over the cuts of one session.

use std::sync::Arc;

use ctx_core::{Entry, Error, Result, Tokens};

use super::arms::{BenchArm, Outcome, Task};
use super::case::Case;
use super::handles::HandleIds;
use super::needed::{Needed, horizon};
use super::planted::Planted;
use super::report::{ArmReport, CutReport, SessionBench, Setting};
use super::request::Request;
use super::score::{Figures, ReceiptFigures};
use super::session::{Item, LEAST_AFTER, cuts, parts, tokens};
use super::{BenchPlan, BenchSession, Exported, Hooks};
use crate::eval::{EvalSetup, recorded};

/// A request up to this factor over its target still counts as within it, because the counter
/// rounds up for each message.
const TOLERANCE: f64 = 1.01;

/// Runs the bench over one session.
///
/// # Errors
///
/// Errors of reading the transcript and of the export. An arm that fails has figures with the
/// failure.
pub async fn bench(
    session: &BenchSession<'_>,
    arms: &[BenchArm],
    plan: &BenchPlan,
    hooks: &mut Hooks<'_>,
) -> Result<SessionBench> {
    let BenchSession { transcript, eval, number } = session;
    let line = transcript.main_line()?;
    let (counter, mut ids) = (eval.counter, HandleIds::default());
    let items = line.iter().map(|it| Item::of(&it.entry, it.request, &counter, &mut ids));
    let items = items.collect::<Result<Vec<_>>>()?;
    let places = cuts(&items, plan.cuts);
    let points = recorded::points(transcript, line.len())?;
    let report = SessionBench {
        session: eval.session.clone(),
        cuts: Vec::new(),
        arms: arms.iter().map(ArmReport::of).collect(),
        losses: Vec::new(),
    };
    let steps = places.len() * plan.budgets.len() * plan.rounds.len() + points.len();
    let steps = steps * arms.len();
    let mut run = Run { arms, plan, eval, hooks, ids, steps, done: 0, report };
    for (nth, &at) in places.iter().enumerate() {
        let set = number * plan.cuts + nth;
        let planted = Planted::of(&items[..at], &plan.statements, set, &counter, &mut run.ids)?;
        let after = &items[at..];
        let case = Case::of(items[..at].to_vec(), after, horizon(after), &run.ids);
        run.cut(&case, planted.as_ref()).await?;
    }
    for point in &points {
        let is_later = |it: &ctx_session::BranchMessage| {
            transcript.index_of(it.entry.id()) > Some(point.index)
        };
        let next = line.iter().position(is_later).unwrap_or(line.len());
        if tokens(&items[next..]) < LEAST_AFTER {
            continue;
        }
        let mut read = |entries: &[Arc<Entry>]| -> Result<Vec<Arc<Item>>> {
            entries.iter().map(|entry| Item::of(entry, false, &counter, &mut run.ids)).collect()
        };
        let (before, after) = (read(&point.before)?, read(&point.after)?);
        let case = Case::of(before, &items[next..], &items[next..], &run.ids);
        run.recorded(&case, &after).await?;
    }
    Ok(run.report)
}

/// Returns the most tokens of a request that is made from a history.
type Limit<'l> = &'l dyn Fn(&[Arc<Item>]) -> Tokens;

/// The sizes that the reference reached in each round, which no other arm may exceed.
#[derive(Default)]
struct Sizes {
    work: Option<Vec<Tokens>>,
    planted: Option<Vec<Tokens>>,
}

struct Run<'a, 'h> {
    arms: &'a [BenchArm],
    plan: &'a BenchPlan,
    eval: &'a EvalSetup,
    hooks: &'a mut Hooks<'h>,
    ids: HandleIds,
    steps: usize,
    done: usize,
    report: SessionBench,
}

impl Run<'_, '_> {
    /// Compacts the history before one cut in every way.
    async fn cut(&mut self, case: &Case<'_>, planted: Option<&Planted<'_>>) -> Result<()> {
        let all = tokens(&case.history);
        let cut = CutReport { entry_id: case.id().into(), history_tokens: all.get() };
        self.report.cuts.push(cut);
        for &budget in &self.plan.budgets {
            let wanted = case.needed(all.scale(budget));
            self.export_labels(case, budget, &wanted)?;
            for &rounds in &self.plan.rounds {
                let setting = Setting { budget: Some(budget), rounds };
                let limit = |history: &[Arc<Item>]| tokens(history).scale(budget);
                let how: (Limit<'_>, _) = (&limit, rounds);
                let mut sizes = Sizes::default();
                for arm in 0..self.arms.len() {
                    let figures = match self.outcome(arm, &case.history, how, &mut sizes.work).await
                    {
                        Err(error) => failed(&error),
                        Ok(outcome) => {
                            let figures = self.work(arm, case, &wanted, setting, &outcome)?;
                            match planted {
                                None => figures,
                                Some(planted) => {
                                    let history = &planted.history;
                                    let outcome =
                                        self.outcome(arm, history, how, &mut sizes.planted);
                                    let outcome = outcome.await;
                                    self.planted(arm, case, planted, setting, outcome, figures)?
                                }
                            }
                        }
                    };
                    self.add(arm, setting, &figures);
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, arm: usize, setting: Setting, figures: &Figures) {
        self.report.arms[arm].add(setting, figures);
        self.done += 1;
        (self.hooks.progress)(self.done, self.steps);
    }

    /// Compacts a history by one arm. The request is brought to the target.
    async fn outcome(
        &self,
        arm: usize,
        history: &[Arc<Item>],
        (limit, rounds): (Limit<'_>, usize),
        sizes: &mut Option<Vec<Tokens>>,
    ) -> Result<Outcome> {
        let ends = parts(history, rounds);
        let budgets: Vec<Tokens> = ends.iter().map(|&end| limit(&history[..end])).collect();
        let reference = sizes.as_deref().unwrap_or_default();
        let bound = |round| reference.get(round).copied().unwrap_or(Tokens(u32::MAX));
        let targets = budgets.iter().enumerate().map(|(round, &it)| it.min(bound(round)));
        let targets = targets.collect();
        let counter = self.eval.counter;
        let task = Task { history, ends: &ends, budgets, targets, counter, ids: &self.ids };
        let mut outcome = self.arms[arm].compact(&task, self.eval).await?;
        outcome.rounds = ends.len();
        outcome.stuck = outcome.request.tokens(&counter) > task.most().scale(TOLERANCE);
        outcome.request.cut_to(task.most(), &counter);
        if arm == 0 {
            let mut reached = std::mem::take(&mut outcome.sizes);
            reached.pop();
            reached.push(outcome.request.tokens(&counter));
            *sizes = Some(reached);
        }
        Ok(outcome)
    }

    fn work(
        &mut self,
        arm: usize,
        case: &Case<'_>,
        wanted: &[Needed],
        setting: Setting,
        outcome: &Outcome,
    ) -> Result<Figures> {
        let text = outcome.request.text();
        self.export_request(case, setting, arm, false, &text)?;
        if arm == 0 {
            let loss = case.loss(wanted, &text, &self.ids, setting);
            let session = self.eval.session.path.clone();
            self.report.losses.push(super::Loss { session, ..loss });
        }
        Ok(case.judge(wanted, outcome, &text, &self.ids, self.eval))
    }

    /// Adds the planted statements that an arm kept to its figures.
    fn planted(
        &mut self,
        arm: usize,
        case: &Case<'_>,
        planted: &Planted<'_>,
        setting: Setting,
        outcome: Result<Outcome>,
        mut figures: Figures,
    ) -> Result<Figures> {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                figures += &failed(&error);
                return Ok(figures);
            }
        };
        let text = outcome.request.text();
        self.export_request(case, setting, arm, true, &text)?;
        figures.planted = planted.judge(&text);
        if let Some((coverage, kept)) = outcome.receipt.zip(figures.planted.statements.share()) {
            let gap = (coverage - kept).abs();
            figures.receipt = ReceiptFigures { receipts: 1, coverage, gap };
        }
        if let Some(loss) = self.report.losses.last_mut().filter(|_| arm == 0) {
            loss.statements = planted.lost(&text);
        }
        Ok(figures)
    }

    /// Compacts where the agent itself compacted, to the agent's size.
    async fn recorded(&mut self, case: &Case<'_>, after: &[Arc<Item>]) -> Result<()> {
        let size = tokens(after);
        if size >= tokens(&case.history) {
            return Ok(());
        }
        let setting = Setting { budget: None, rounds: 1 };
        let wanted = case.needed(size);
        for arm in 0..self.arms.len() {
            let mut sizes = None;
            let how: (Limit<'_>, _) = (&|_| size, 1);
            let figures = match self.outcome(arm, &case.history, how, &mut sizes).await {
                Ok(outcome) => self.judge(case, &wanted, &outcome),
                Err(error) => failed(&error),
            };
            self.add(arm, setting, &figures);
        }
        let request = Request::of_summary(String::new(), after);
        let own = self.judge(case, &wanted, &Outcome { request, ..Outcome::default() });
        if self.report.arms.len() == self.arms.len() {
            self.report.arms.push(ArmReport::recorded());
        }
        if let Some(recorded) = self.report.arms.last_mut() {
            // The cost of the agent's own model is not known.
            recorded.add(setting, &Figures { cost_usd: None, ..own });
        }
        Ok(())
    }

    fn judge(&self, case: &Case<'_>, wanted: &[Needed], outcome: &Outcome) -> Figures {
        let text = outcome.request.text();
        case.judge(wanted, outcome, &text, &self.ids, self.eval)
    }

    fn export_labels(&mut self, case: &Case<'_>, budget: f64, wanted: &[Needed]) -> Result<()> {
        let named = wanted.iter().filter_map(|one| {
            let handle = self.ids.get(one.handle)?;
            Some((handle.kind, &*handle.text, one.strict, case.found.contains(&one.handle)))
        });
        (self.hooks.export)(&Exported::Labels {
            entry_id: case.id(),
            budget,
            needed: named.collect(),
            files: case.files.iter().map(|file| &*file.text).collect(),
            todos: &case.todos,
        })
    }

    fn export_request(
        &mut self,
        case: &Case<'_>,
        setting: Setting,
        arm: usize,
        planted: bool,
        text: &str,
    ) -> Result<()> {
        let (arm, tokens) = (self.arms[arm].name(), self.eval.counter.text(text).get());
        let (entry_id, arm) = (case.id(), arm.as_str());
        (self.hooks.export)(&Exported::Request { entry_id, setting, arm, planted, tokens, text })
    }
}

fn failed(error: &Error) -> Figures {
    Figures { failures: 1, failed: Some(error.to_string()), ..Figures::default() }
}
