//! A history that is compacted, its labels, and the search for the labels in a request.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ctx_core::Tokens;

use super::arms::Outcome;
use super::handles::{Handle, HandleIds};
use super::lookup;
use super::needed::{Needed, horizon, needed};
use super::report::{Loss, Setting};
use super::score::Figures;
use super::session::{Item, tail, tokens};
use super::work::{changed_files, names_todo, open_todos, plain_text};
use crate::cache::{PromptCache, usage};
use crate::eval::EvalSetup;
use crate::eval::run::{answer_tokens, boundless};

/// The most lost handles of a kind, and the most files, that a loss names.
const LOST_NAMED: usize = 12;

/// A history, the messages after it, and the labels that do not depend on the budget.
pub(super) struct Case<'a> {
    pub(super) history: Vec<Arc<Item>>,
    after: &'a [Arc<Item>],
    /// Those of the messages after it whose uses count.
    uses: &'a [Arc<Item>],
    /// Handles needed next that one retrieval call finds.
    pub(super) found: HashSet<u32>,
    /// Changed files.
    pub(super) files: Vec<Handle>,
    /// Open items of the todo list.
    pub(super) todos: Vec<String>,
}

impl<'a> Case<'a> {
    /// Creates a case of the history before `after`. Of the messages after it, `uses` name what is
    /// needed.
    pub(super) fn of(
        history: Vec<Arc<Item>>,
        after: &'a [Arc<Item>],
        uses: &'a [Arc<Item>],
        ids: &HandleIds,
    ) -> Self {
        let all = needed(&history, &[], uses);
        Self {
            found: lookup::found(&history, after, &all, ids),
            files: changed_files(&history).into_iter().collect(),
            todos: open_todos(&history),
            history,
            after,
            uses,
        }
    }

    /// Returns the id of the answer before which the session is cut.
    pub(super) fn id(&self) -> &str {
        self.after.first().map_or("", |item| item.entry.id())
    }

    /// Returns the needed handles that are not in the kept tail of a budget.
    pub(super) fn needed(&self, budget: Tokens) -> Vec<Needed> {
        let (before, kept) = self.history.split_at(tail(&self.history, budget).start);
        needed(before, kept, self.uses)
    }

    /// Looks up the labels in a request with this `text`.
    pub(super) fn judge(
        &self,
        wanted: &[Needed],
        outcome: &Outcome,
        text: &str,
        ids: &HandleIds,
        eval: &EvalSetup,
    ) -> Figures {
        let mut figures = Figures {
            histories: 1,
            history_tokens: tokens(&self.history).get(),
            tokens: outcome.request.tokens(&eval.counter).get(),
            cost_usd: self.cost(outcome, eval),
            compactions: outcome.rounds as u64,
            millis: outcome.millis,
            wedges: outcome.stuck.into(),
            ..Figures::default()
        };
        for one in wanted {
            let Some(handle) = ids.get(one.handle) else { continue };
            let (present, found) = (handle.is_in(text), self.found.contains(&one.handle));
            figures.loose.add(handle.kind, present, found);
            if one.strict {
                figures.strict.add(handle.kind, present, found);
            }
        }
        self.files.iter().for_each(|file| figures.files.add(file.is_in(text)));
        let plain = plain_text(text);
        self.todos.iter().for_each(|todo| figures.todos.add(names_todo(&plain, todo)));
        figures
    }

    /// Returns the cost of the summaries and of the requests within the horizon. As in a replay,
    /// only system prompt and tools stay cached after a compaction.
    fn cost(&self, outcome: &Outcome, eval: &EvalSetup) -> Option<f64> {
        let prices = eval.baseline.prices(eval.prices)?;
        let price = |prompt, cached, answer| prices.cost(&usage(prompt, cached, answer)).0;
        let calls = outcome.calls.iter();
        let calls = calls.map(|(input, output)| price(*input, Tokens::ZERO, output.get()));
        let mut cost = outcome.cost_usd.unwrap_or_default() + calls.sum::<f64>();
        let ledger = eval.baseline.corrected(boundless(eval));
        let mut cache = PromptCache::default();
        let last = self.history.iter().rev().find_map(|item| item.entry.timestamp());
        cache.request(Tokens::ZERO, last);
        let mut messages = ledger.fixed() + outcome.request.tokens(&eval.counter);
        let mut prefix = ledger.corrected(ledger.fixed());
        for item in horizon(self.after) {
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

    /// Returns the handles and files that a request lost.
    pub(super) fn loss(
        &self,
        wanted: &[Needed],
        text: &str,
        ids: &HandleIds,
        setting: Setting,
    ) -> Loss {
        let (mut lost, mut share) = (BTreeMap::<_, Vec<String>>::new(), super::Share::default());
        let strict = wanted.iter().filter(|one| one.strict);
        for handle in strict.filter_map(|one| ids.get(one.handle)) {
            let kept = handle.is_in(text);
            share.add(kept);
            let names = lost.entry(handle.kind).or_default();
            if !kept && names.len() < LOST_NAMED {
                names.push(handle.text.clone());
            }
        }
        lost.retain(|_, names| !names.is_empty());
        let files = self.files.iter().filter(|file| !file.is_in(text));
        Loss {
            session: String::new(),
            entry_id: self.id().into(),
            setting,
            strict: share,
            lost,
            files: files.map(|file| file.text.clone()).take(LOST_NAMED).collect(),
            statements: Vec::new(),
        }
    }
}
