//! Runs the arms over the cuts of one session.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ctx_core::{Result, Tokens};
use ctx_session::Transcript;

use super::arms::{BenchArm, Outcome, Task};
use super::handles::{Handle, HandleIds};
use super::needed::{Needed, horizon, needed};
use super::planted::Planted;
use super::report::{ArmReport, CutReport, Loss, SessionBench, Setting};
use super::score::{Figures, ReceiptFigures};
use super::session::{Item, cuts, parts, tail, tokens};
use super::work::{changed_files, names_todo, open_todos, plain_text};
use super::{BenchSetup, Exported, Hooks, lookup};
use crate::cache::{PromptCache, usage};
use crate::eval::recorded;
use crate::eval::run::{answer_tokens, boundless};

/// The most lost handles of a kind that a loss names.
const LOST_NAMED: usize = 12;

/// Runs the bench over one session.
///
/// # Errors
///
/// Those of reading the transcript and of the export. An arm that fails has figures with the
/// failure.
pub async fn bench(
    transcript: &Transcript,
    arms: &[BenchArm],
    setup: &BenchSetup,
    hooks: &mut Hooks<'_>,
) -> Result<SessionBench> {
    let line = transcript.main_line()?;
    let (counter, mut ids) = (setup.eval.counter, HandleIds::default());
    let items = line.iter().map(|it| Item::of(&it.entry, it.request, &counter, &mut ids));
    let items = items.collect::<Result<Vec<_>>>()?;
    let places = cuts(&items, setup.cuts);
    let points = recorded::points(transcript, line.len())?;
    let steps = places.len() * setup.budgets.len() * setup.rounds.len() + points.len();
    let session = SessionBench {
        session: setup.eval.session.clone(),
        cuts: Vec::new(),
        arms: arms.iter().map(ArmReport::of).collect(),
        losses: Vec::new(),
    };
    let steps = steps * arms.len();
    let mut run = Run { arms, setup, hooks, ids, steps, done: 0, session };
    for (nth, &at) in places.iter().enumerate() {
        let planted = match setup.statements.is_empty() {
            true => None,
            false => {
                let set = setup.number * setup.cuts + nth;
                Some(Planted::of(&items[..at], &setup.statements, set, &counter, &mut run.ids)?)
            }
        };
        let case = Case::of(items[..at].to_vec(), &items[at..], &run.ids);
        run.cut(&case, planted.as_ref()).await?;
    }
    for point in &points {
        let next =
            line.iter().position(|it| transcript.index_of(it.entry.id()) > Some(point.index));
        let Some(next) = next.filter(|&next| tokens(&items[next..]) >= super::session::LEAST_AFTER)
        else {
            continue;
        };
        let mut read = |entries: &[Arc<ctx_core::Entry>]| -> Result<Vec<Arc<Item>>> {
            entries.iter().map(|entry| Item::of(entry, false, &counter, &mut run.ids)).collect()
        };
        let (before, after) = (read(&point.before)?, read(&point.after)?);
        let case = Case::of(before, &items[next..], &run.ids);
        run.recorded(&case, &after).await?;
    }
    Ok(run.session)
}

/// A history, what follows it, and the labels that do not depend on the budget.
struct Case<'a> {
    history: Vec<Arc<Item>>,
    after: &'a [Arc<Item>],
    /// Handles needed next that one retrieval call finds.
    found: HashSet<u32>,
    files: Vec<Handle>,
    todos: Vec<String>,
}

impl<'a> Case<'a> {
    fn of(history: Vec<Arc<Item>>, after: &'a [Arc<Item>], ids: &HandleIds) -> Self {
        let all = needed(&history, &[], after);
        Self {
            found: lookup::found(&history, after, &all, ids),
            files: changed_files(&history).into_iter().collect(),
            todos: open_todos(&history),
            history,
            after,
        }
    }

    fn id(&self) -> &str {
        self.after.first().map_or("", |item| item.entry.id())
    }

    /// Returns the handles needed next beside the kept tail of a budget.
    fn needed(&self, budget: Tokens) -> Vec<Needed> {
        let (before, kept) = self.history.split_at(tail(&self.history, budget).start);
        needed(before, kept, self.after)
    }
}

struct Run<'a, 'h> {
    arms: &'a [BenchArm],
    setup: &'a BenchSetup,
    hooks: &'a mut Hooks<'h>,
    ids: HandleIds,
    steps: usize,
    done: usize,
    session: SessionBench,
}

impl Run<'_, '_> {
    /// Compacts the history before one cut in every way.
    async fn cut(&mut self, case: &Case<'_>, planted: Option<&Planted<'_>>) -> Result<()> {
        self.session.cuts.push(CutReport {
            entry_id: case.id().into(),
            history_tokens: tokens(&case.history).get(),
        });
        for &budget in &self.setup.budgets {
            let wanted = case.needed(tokens(&case.history).scale(budget));
            self.export_labels(case, budget, &wanted)?;
            for &rounds in &self.setup.rounds {
                let setting = Setting { budget: Some(budget), rounds };
                let mut sizes = Sizes::default();
                for arm in 0..self.arms.len() {
                    let mut figures = self.work(arm, case, &wanted, setting, &mut sizes).await?;
                    if let Some(planted) = planted {
                        self.planted(arm, case, planted, setting, &mut sizes, &mut figures).await?;
                    }
                    self.session.arms[arm].add(setting, &figures);
                    self.step();
                }
            }
        }
        Ok(())
    }

    fn step(&mut self) {
        self.done += 1;
        (self.hooks.progress)(self.done, self.steps);
    }

    /// Compacts a history by one arm. The request is brought to the target.
    async fn outcome(
        &self,
        arm: usize,
        history: &[Arc<Item>],
        setting: Setting,
        sizes: &mut Option<Vec<Tokens>>,
    ) -> Result<Outcome> {
        let ends = parts(history, setting.rounds);
        let share = setting.budget.unwrap_or(1.0);
        let budget = |&end: &usize| tokens(&history[..end]).scale(share);
        let budgets: Vec<Tokens> = ends.iter().map(budget).collect();
        let reference = sizes.as_deref().unwrap_or_default();
        let target = |(round, budget): (usize, &Tokens)| {
            reference.get(round).map_or(*budget, |size| *budget.min(size))
        };
        let targets = budgets.iter().enumerate().map(target).collect();
        let counter = self.setup.eval.counter;
        let task = Task { history, ends: &ends, budgets, targets, counter, ids: &self.ids };
        let mut outcome = self.arms[arm].compact(&task, &self.setup.eval).await?;
        outcome.request.cut_to(task.most(), &counter);
        if arm == 0 {
            *sizes = Some(std::mem::take(&mut outcome.sizes));
        }
        Ok(outcome)
    }

    async fn work(
        &mut self,
        arm: usize,
        case: &Case<'_>,
        wanted: &[Needed],
        setting: Setting,
        sizes: &mut Sizes,
    ) -> Result<Figures> {
        match self.outcome(arm, &case.history, setting, &mut sizes.work).await {
            Ok(outcome) => {
                let text = outcome.request.text();
                self.export_request(case, setting, arm, false, &text)?;
                let figures = self.judge(case, wanted, &outcome, &text);
                let figures = Figures { compactions: setting.rounds as u64, ..figures };
                if arm == 0 {
                    self.note_loss(case, wanted, setting, &figures, &text);
                }
                Ok(figures)
            }
            Err(error) => Ok(failed(&error)),
        }
    }

    /// Looks the labels of the work up in a request.
    fn judge(&self, case: &Case<'_>, wanted: &[Needed], outcome: &Outcome, text: &str) -> Figures {
        let mut figures = Figures {
            histories: 1,
            history_tokens: tokens(&case.history).get(),
            tokens: outcome.request.tokens(&self.setup.eval.counter).get(),
            cost_usd: self.cost(case, outcome),
            millis: outcome.millis,
            wedges: outcome.stuck.into(),
            ..Figures::default()
        };
        for one in wanted {
            let Some(handle) = self.ids.get(one.handle) else { continue };
            let (present, found) = (handle.is_in(text), case.found.contains(&one.handle));
            figures.loose.add(handle.kind, present, found);
            if one.strict {
                figures.strict.add(handle.kind, present, found);
            }
        }
        case.files.iter().for_each(|file| figures.files.add(file.is_in(text)));
        let plain = plain_text(text);
        case.todos.iter().for_each(|todo| figures.todos.add(names_todo(&plain, todo)));
        figures
    }

    async fn planted(
        &mut self,
        arm: usize,
        case: &Case<'_>,
        planted: &Planted<'_>,
        setting: Setting,
        sizes: &mut Sizes,
        figures: &mut Figures,
    ) -> Result<()> {
        let outcome = match self.outcome(arm, &planted.history, setting, &mut sizes.planted).await {
            Ok(outcome) => outcome,
            Err(error) => {
                *figures += &failed(&error);
                return Ok(());
            }
        };
        let text = outcome.request.text();
        self.export_request(case, setting, arm, true, &text)?;
        figures.planted = planted.judge(&text);
        let kept = figures.planted.statements.share();
        if let Some((coverage, kept)) = outcome.receipt.zip(kept) {
            figures.receipt =
                ReceiptFigures { receipts: 1, coverage, gap: (coverage - kept).abs() };
        }
        if arm == 0
            && let Some(loss) = self.session.losses.last_mut()
        {
            loss.statements = planted.lost(&text);
        }
        Ok(())
    }

    /// Returns what the summaries and the requests within the horizon cost, by the cache rule of the
    /// replay: a compaction leaves only system prompt and tools cached.
    fn cost(&self, case: &Case<'_>, outcome: &Outcome) -> Option<f64> {
        let eval = &self.setup.eval;
        let prices = eval.baseline.prices(eval.prices)?;
        let price = |prompt, cached, answer| prices.cost(&usage(prompt, cached, answer)).0;
        let calls =
            outcome.calls.iter().map(|(input, output)| price(*input, Tokens::ZERO, output.get()));
        let mut cost = outcome.cost_usd.unwrap_or_default() + calls.sum::<f64>();
        let ledger = eval.baseline.corrected(boundless(eval));
        let mut cache = PromptCache::default();
        let last = case.history.iter().rev().find_map(|item| item.entry.timestamp());
        cache.request(Tokens::ZERO, last);
        let mut messages = ledger.fixed() + outcome.request.tokens(&eval.counter);
        let mut prefix = ledger.corrected(ledger.fixed());
        for item in horizon(case.after) {
            if item.request {
                let prompt = ledger.corrected(messages);
                let cached = cache.request(prefix.min(prompt), item.entry.timestamp());
                cost += price(prompt, cached, answer_tokens(&item.entry, eval).ok()?);
                prefix = prompt;
            }
            messages += item.tokens;
        }
        Some(cost)
    }

    fn note_loss(
        &mut self,
        case: &Case<'_>,
        wanted: &[Needed],
        setting: Setting,
        figures: &Figures,
        text: &str,
    ) {
        let mut lost: BTreeMap<_, Vec<String>> = BTreeMap::new();
        let strict = wanted.iter().filter(|one| one.strict);
        for handle in strict.filter_map(|one| self.ids.get(one.handle)).filter(|it| !it.is_in(text))
        {
            let names = lost.entry(handle.kind).or_default();
            if names.len() < LOST_NAMED {
                names.push(handle.text.clone());
            }
        }
        let files = case.files.iter().filter(|file| !file.is_in(text));
        self.session.losses.push(Loss {
            session: self.setup.eval.session.path.clone(),
            entry_id: case.id().into(),
            setting,
            strict: figures.strict.present,
            lost,
            files: files.map(|file| file.text.clone()).take(LOST_NAMED).collect(),
            statements: Vec::new(),
        });
    }

    /// Compacts where the agent itself did, to the size that it reached.
    async fn recorded(&mut self, case: &Case<'_>, after: &[Arc<Item>]) -> Result<()> {
        let size = tokens(after);
        if size >= tokens(&case.history) {
            return Ok(());
        }
        let wanted = case.needed(size);
        let own = Outcome {
            request: super::request::Request::of_summary(String::new(), after),
            ..Outcome::default()
        };
        let text = own.request.text();
        let own = Figures { cost_usd: None, ..self.judge(case, &wanted, &own, &text) };
        let setting = Setting { budget: None, rounds: 1 };
        for arm in 0..self.arms.len() {
            // The size of the recorded request bounds them all.
            let figures =
                match self.outcome(arm, &case.history, setting, &mut Some(vec![size])).await {
                    Ok(outcome) => self.judge(case, &wanted, &outcome, &outcome.request.text()),
                    Err(error) => failed(&error),
                };
            self.session.arms[arm].add(setting, &figures);
            self.step();
        }
        if self.session.arms.len() == self.arms.len() {
            self.session.arms.push(ArmReport::recorded());
        }
        if let Some(recorded) = self.session.arms.last_mut() {
            recorded.add(setting, &own);
        }
        Ok(())
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
        let (name, tokens) = (self.arms[arm].name(), self.setup.eval.counter.text(text).get());
        (self.hooks.export)(&Exported::Request {
            entry_id: case.id(),
            setting,
            arm: &name,
            planted,
            tokens,
            text,
        })
    }
}

/// The sizes that the reference reached in each round, which no other arm may exceed.
#[derive(Default)]
struct Sizes {
    work: Option<Vec<Tokens>>,
    planted: Option<Vec<Tokens>>,
}

fn failed(error: &ctx_core::Error) -> Figures {
    Figures { failures: 1, failed: Some(error.to_string()), ..Figures::default() }
}
