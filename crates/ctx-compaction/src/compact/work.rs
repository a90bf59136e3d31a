//! What a compaction works on, and the rungs of its ladder.

use std::sync::Arc;

use ctx_core::{Counter, IdentifierPolicy, Tokens};

use crate::anonymize::Names;
use crate::chunk::boundaries;
use crate::cited::Cited;
use crate::hard_prune::{Prunable, plan_prune};
use crate::{
    Config, Draft, Extract, Fact, FileLists, Grounds, HardPrunePlan, History, Item, Job, Log, Plan,
    Rung, Said, audit, extract, facts, is_oversized_for_summary, ladder, summary_unavailable,
};

use super::settle::{Saving, Settled, file_lists};
use super::{Order, carried};

/// What of a summary a model leaves to repair.
const REPAIR_SHARE: f64 = 0.15;

/// What all rungs work on.
pub(super) struct Work {
    pub(super) history: History,
    pub(super) plan: Plan,
    pub(super) config: Arc<Config>,
    pub(super) order: Order,
    pub(super) emergency: bool,
    said: Arc<[Said]>,
    /// The group of each message in `said`.
    groups: Vec<u32>,
    /// Where the split turn begins in `said`.
    turn_start: Option<usize>,
    pub(super) facts: Vec<Fact>,
    pub(super) grounds: Grounds,
    pub(super) files: FileLists,
    /// The files as they stand at the end of the summary.
    pub(super) file_lists: String,
    pub(super) savings: Vec<Saving>,
    /// What identifiers are called, where they may not be told.
    pub(super) names: Option<Names>,
}

impl Work {
    pub(super) fn new(
        mut history: History,
        plan: Plan,
        config: Arc<Config>,
        order: Order,
        emergency: bool,
    ) -> Self {
        let turn_start = plan.turn_start.unwrap_or(plan.cut);
        let before = history.previous.as_ref().and_then(|previous| previous.entry.as_ref());
        let cited = Cited::of(history.items.iter().map(|item| item.entry.id()).chain(before));
        let (mut groups, mut said, mut before_turn) = (Vec::new(), Vec::new(), 0);
        for (at, item, read) in history.readable(0..plan.cut) {
            before_turn += usize::from(at < turn_start);
            groups.push(item.group);
            said.push(Said { id: cited.short(&read.id), ..read });
        }
        if let Some(entry) = history.previous.as_mut().and_then(|p| p.entry.as_mut()) {
            *entry = cited.short(entry);
        }
        let previous = history.previous.as_ref();
        let mut facts = facts(&said);
        if let Some(previous) = previous {
            carried::add(&mut facts, previous);
        }
        let hides = order.policy(&config) == IdentifierPolicy::Anonymize;
        let mut names = hides.then(|| Names::after(previous.map(|p| p.text.as_str())));
        if let Some(names) = &mut names {
            facts.retain(|fact| fact.kind.is_passage());
            facts.iter_mut().for_each(|fact| fact.text = names.apply(&fact.text));
        }
        let own = [order.focus.as_deref(), config.custom_instructions.as_deref()];
        let earlier = previous.map(|p| p.files.render()).unwrap_or_default();
        let own: Vec<&str> = own.into_iter().flatten().chain([earlier.as_str()]).collect();
        let grounds = Grounds::of(&said, previous.map(|p| p.text.as_str()), &own)
            .with_entry(previous.and_then(|p| p.entry.as_ref()));
        let mut files = FileLists::default();
        if !hides {
            files = previous.map(|p| p.files.clone()).unwrap_or_default();
            files.merge(FileLists::of(&said));
        }
        let files = files.normalised();
        Self {
            turn_start: plan.turn_start.map(|_| before_turn),
            said: said.into(),
            groups,
            config,
            order,
            emergency,
            facts,
            grounds,
            file_lists: file_lists(&files, plan.summary_budget, history.ledger.counter()),
            files,
            savings: Saving::all(&plan, &history),
            names,
            history,
            plan,
        }
    }

    pub(super) fn counter(&self) -> &Counter {
        self.history.ledger.counter()
    }

    /// The configured models, unless there are none.
    pub(super) async fn ask_models(&self, log: &mut Log) -> Option<Settled> {
        let models = self.order.models.as_ref()?;
        let draft = ladder(&self.job(), models, log).await?;
        let settled = self.settle(draft);
        if settled.is_none() {
            log.notes.push("the model's summary would not have made the request smaller".into());
        }
        settled
    }

    fn job(&self) -> Job {
        let counter = *self.counter();
        Job {
            config: self.config.clone(),
            said: self.said.clone(),
            sizes: self.said.iter().map(|said| counter.message(&said.message)).collect(),
            groups: self.groups.clone(),
            turn_start: self.turn_start,
            previous: self.history.previous.clone(),
            summary_budget: self.room_for_words(),
            counter,
            focus: self.order.focus.clone(),
            instructions: self.order.instructions.clone(),
        }
    }

    /// The extractive summariser. What it does not need for the story is for repair: where facts
    /// found no room, it tells less of the story.
    pub(super) fn extract(&self, log: &mut Log) -> Option<Settled> {
        let most = self.plan.summary_budget;
        let less = [0.8, 0.6].map(|share| most.scale(share));
        let least = most.min(self.plan.covered_tokens.scale(0.5));
        let mut best: Option<Settled> = None;
        for budget in [most, less[0], less[1], least] {
            let text = extract(&Extract {
                said: &self.said,
                facts: &self.facts,
                previous: self.history.previous.as_ref(),
                turn_start: self.turn_start,
                focus: self.order.focus.as_deref(),
                budget,
                counter: self.counter(),
            });
            let draft =
                Draft { text, notes: String::new(), rung: Rung::Extractive, model: String::new() };
            if let Some(settled) = self.settle(draft) {
                let is_better = |best: &Settled| settled.audit.missing < best.audit.missing;
                if best.as_ref().is_none_or(is_better) {
                    best = Some(settled);
                }
            }
            if best.as_ref().is_some_and(|best| best.audit.missing == 0) {
                break;
            }
        }
        if best.is_none() {
            log.notes.push("the extractive summary would not have made the request smaller".into());
        }
        best
    }

    /// What a model may fill: the summary without the file lists, and some room for repair.
    fn room_for_words(&self) -> Tokens {
        let words = self.plan.summary_budget - self.counter().text(&self.file_lists);
        words.scale(1.0 - REPAIR_SHARE)
    }

    /// History up to its share of the window, with a notice in the place of a summary.
    pub(super) fn cut_only(&self) -> Option<Settled> {
        let items = &self.history.items;
        let prunable = items.iter().map(|item| {
            let (tokens, group) = (item.tokens, item.group);
            Some(Prunable { tokens, group, protected: item.pinned })
        });
        let prunable: Vec<_> = prunable.collect();
        let pruned = plan_prune(&prunable, &self.history.ledger, self.config.max_history_share);
        let groups: Vec<u32> = items.iter().map(|item| item.group).collect();
        let boundaries = boundaries(items.len(), &groups);
        let by_share = Some(pruned.first_kept)
            .filter(|cut| (1..=self.plan.cut).contains(cut))
            .filter(|&cut| boundaries.get(cut).copied().unwrap_or_default());
        let cuts = [by_share, Some(self.plan.cut)].into_iter().flatten();
        cuts.map(|cut| self.notice(cut, pruned.budget_tokens)).find_map(|cut| self.weigh(cut))
    }

    /// A cut with what stands for it, and what it takes out.
    fn notice(&self, cut: usize, budget_tokens: Tokens) -> Settled {
        let (gone, kept) = self.history.items.split_at(cut.min(self.history.items.len()));
        let window = self.history.ledger.window();
        let large = |item: &&Item| is_oversized_for_summary(item.tokens, window);
        let summary = summary_unavailable(gone.len(), gone.iter().filter(large).count());
        let audit = audit(&summary, &self.facts, &self.grounds).report;
        let dropped = HardPrunePlan {
            first_kept: cut,
            dropped_chunks: 1,
            dropped_messages: gone.len() as u32,
            dropped_tokens: gone.iter().map(|item| item.tokens).sum(),
            kept_tokens: kept.iter().map(|item| item.tokens).sum(),
            budget_tokens,
        };
        Settled {
            summary,
            audit,
            cut,
            rung: Rung::HardPrune,
            model: None,
            dropped: Some(dropped),
            summary_tokens: Tokens::ZERO,
        }
    }
}
