//! The shared data of a compaction, and the rungs of its ladder.

use std::sync::Arc;

use ctx_core::{Counter, IdentifierPolicy, Tokens};

use crate::answer::sanitised;
use crate::chunk::{boundaries, is_oversized_for_summary};
use crate::hard_prune::{Prunable, plan_prune};
use crate::ladder::summary_unavailable;
use crate::{
    CallLog, CompactionPlan, Config, HardPrunePlan, History, HistoryItem, Rung, SourceIndex,
    SummaryDraft, SummaryJob, audit, ladder,
};
use ctx_extract::{Candidates, ExtractInput, WorkingState, without_blocks};
use ctx_facts::{CitedMessage, FileLists, LedgerFacts, ShortIds};

use super::anonymize::Pseudonyms;
use super::audited::{AuditedSummary, Saving, file_lists};
use super::{CompactOptions, ledger, previous_facts};

/// The share of a summary that a model leaves free for repair.
const REPAIR_SHARE: f64 = 0.15;

/// The share of a summary for rules files, and for open tasks that it does not name.
const STATE_SHARE: f64 = 0.1;

/// The data that all rungs share.
pub(super) struct CompactionRun {
    pub(super) history: History,
    pub(super) plan: CompactionPlan,
    pub(super) config: Arc<Config>,
    pub(super) options: CompactOptions,
    pub(super) emergency: bool,
    pub(super) messages: Arc<[CitedMessage]>,
    /// The group of each message in `messages`.
    groups: Vec<u32>,
    /// The start of the split turn in `messages`.
    turn_start: Option<usize>,
    /// The facts of all messages that the summary covers, over all rounds.
    pub(super) facts: LedgerFacts,
    pub(super) sources: SourceIndex,
    pub(super) files: FileLists,
    /// The file lists at the end of the summary.
    pub(super) file_lists: String,
    /// The rules files and the tasks before the cut.
    session_state: WorkingState,
    /// The same without what the kept messages show.
    state: WorkingState,
    /// The rules files at the end of the summary.
    rules: String,
    pub(super) savings: Vec<Saving>,
    /// Names for identifiers, if the policy is to anonymise them.
    pub(super) names: Option<Pseudonyms>,
}

impl CompactionRun {
    pub(super) fn new(
        mut history: History,
        plan: CompactionPlan,
        config: Arc<Config>,
        options: CompactOptions,
        emergency: bool,
    ) -> Self {
        let turn_start = plan.turn_start.unwrap_or(plan.cut);
        let before = history.previous.as_ref().and_then(|previous| previous.entry.as_ref());
        let entries = history.originals.iter().chain(history.items.iter().map(|item| &item.entry));
        let short_ids = ShortIds::of(entries.map(|entry| entry.id()).chain(before));
        let (mut groups, mut messages, mut before_turn) = (Vec::new(), Vec::new(), 0);
        for (at, item, read) in history.readable(0..plan.cut) {
            before_turn += usize::from(at < turn_start);
            groups.push(item.group);
            messages.push(CitedMessage { id: short_ids.short(&read.id), ..read });
        }
        if let Some(entry) = history.previous.as_mut().and_then(|p| p.entry.as_mut()) {
            *entry = short_ids.short(entry);
        }
        if let Some(previous) = &mut history.previous {
            // They are written again: the summary does not state what a rules file says.
            previous.text = without_blocks(&previous.text);
        }
        let previous = history.previous.as_ref();
        let read = ledger::read(&history, plan.cut);
        let kept = || history.readable(plan.cut..history.items.len()).map(|(_, _, read)| read);
        let mut facts = read.facts.facts_before(kept());
        let mut session_state = read.state.clone();
        session_state.map_ids(|id| short_ids.short(id));
        let mut state = session_state.beside(kept());
        ledger::keep(read, &history, plan.cut);
        let superseded = facts.superseded.iter_mut().map(|old| &mut old.fact);
        for fact in facts.required.iter_mut().chain(superseded) {
            fact.entry = short_ids.short(&fact.entry);
        }
        // Without its messages, only the previous summary knows what it covers.
        if let Some(previous) = previous.filter(|_| history.originals.is_empty()) {
            previous_facts::add(&mut facts.required, previous);
        }
        let hides = options.policy(&config) == IdentifierPolicy::Anonymize;
        let mut names = hides.then(|| Pseudonyms::after(previous.map(|p| p.text.as_str())));
        if let Some(names) = &mut names {
            state = WorkingState::default();
            facts.names.clear();
            facts.required.retain(|fact| fact.kind.is_passage());
            facts.required.iter_mut().for_each(|fact| fact.text = names.apply(&fact.text));
        }
        let own = [options.focus.as_deref(), config.custom_instructions.as_deref()];
        let earlier = previous.map(|p| p.files.render()).unwrap_or_default();
        let own: Vec<&str> = own.into_iter().flatten().chain([earlier.as_str()]).collect();
        let sources = SourceIndex::of(&messages, previous.map(|p| p.text.as_str()), &own)
            .with_entries(previous.and_then(|p| p.entry.as_ref()))
            .with_entries(facts.required.iter().map(|fact| &fact.entry))
            .with_text(&facts.names.join("\n"));
        let mut files = FileLists::default();
        if !hides {
            files = previous.map(|p| p.files.clone()).unwrap_or_default();
            files.merge(FileLists::of(&messages));
        }
        let files = files.normalised();
        let counter = history.ledger.counter();
        Self {
            turn_start: plan.turn_start.map(|_| before_turn),
            messages: messages.into(),
            groups,
            config,
            options,
            emergency,
            facts,
            sources,
            file_lists: file_lists(&files, plan.summary_budget, counter),
            files,
            rules: sanitised(&state.rules(plan.summary_budget.scale(STATE_SHARE), counter)),
            session_state,
            state,
            savings: Saving::all(&plan, &history),
            names,
            history,
            plan,
        }
    }

    pub(super) fn counter(&self) -> &Counter {
        self.history.ledger.counter()
    }

    /// Tries the configured models, if any.
    pub(super) async fn call_models(&self, log: &mut CallLog) -> Option<AuditedSummary> {
        let models = self.options.models.as_ref()?;
        if !self.options.waits_for_models {
            log.notes.push("the request does not wait for a model".into());
            return None;
        }
        let draft = ladder(&self.job(), models, log).await?;
        let settled = self.settle(draft);
        if settled.is_none() {
            log.notes.push("the model's summary would not have made the request smaller".into());
        }
        settled
    }

    fn job(&self) -> SummaryJob {
        let counter = *self.counter();
        SummaryJob {
            config: self.config.clone(),
            messages: self.messages.clone(),
            sizes: self.messages.iter().map(|read| counter.message(&read.message)).collect(),
            groups: self.groups.clone(),
            turn_start: self.turn_start,
            previous: self.history.previous.clone(),
            summary_budget: self.model_budget(),
            counter,
            focus: self.options.focus.clone(),
            instructions: self.options.instructions.clone(),
        }
    }

    /// Runs the extractive summariser. The budget it leaves unused goes to repair; if facts did not
    /// fit, it runs again with a smaller budget.
    pub(super) fn extract(&self, log: &mut CallLog) -> Option<AuditedSummary> {
        let most = self.plan.summary_budget - self.counter().text(&self.rules);
        let input = ExtractInput {
            messages: &self.messages,
            facts: &self.facts,
            state: Some(&self.session_state),
            previous: self.history.previous.as_ref(),
            turn_start: self.turn_start,
            focus: self.options.focus.as_deref(),
            budget: most,
            counter: self.counter(),
        };
        let candidates = Candidates::of(&input);
        let draft = |budget: Tokens| {
            let text = candidates.within(budget);
            let (notes, model) = (String::new(), String::new());
            SummaryDraft { text, notes, rung: Rung::Extractive, model }
        };
        let mut best: Option<AuditedSummary> = None;
        let mut last = String::new();
        for share in [1.0, 0.8, 0.6] {
            let draft = draft(most.scale(share));
            if std::mem::replace(&mut last, draft.text.clone()) == draft.text {
                continue;
            }
            let Some(settled) = self.settle(draft) else { continue };
            if best.as_ref().is_none_or(|best| settled.audit.missing < best.audit.missing) {
                best = Some(settled);
            }
            if best.as_ref().is_some_and(|best| best.audit.missing == 0) {
                break;
            }
        }
        let least = most.min(self.plan.covered_tokens.scale(0.5));
        let settled = best.or_else(|| self.settle(draft(least)));
        if settled.is_none() {
            log.notes.push("the extractive summary would not have made the request smaller".into());
        }
        settled
    }

    /// Returns a model's budget: the summary without the file lists, with some left for repair.
    fn model_budget(&self) -> Tokens {
        let lists = self.counter().text(&self.file_lists) + self.counter().text(&self.rules);
        let words = self.plan.summary_budget - lists;
        words.scale(1.0 - REPAIR_SHARE)
    }

    /// Returns the rules files, and the open tasks that a summary does not name, to put after it.
    pub(super) fn put_back(&self, summary: &str) -> String {
        let room = self.plan.summary_budget.scale(STATE_SHARE);
        let tasks = self.state.missing_tasks(summary, room, self.counter());
        format!("{}{}", sanitised(&tasks), self.rules)
    }

    /// Keeps history up to its share of the window, with a notice in place of a summary.
    pub(super) fn cut_only(&self) -> Option<AuditedSummary> {
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

    /// Returns a cut with its notice and the tokens it removes.
    fn notice(&self, cut: usize, budget_tokens: Tokens) -> AuditedSummary {
        let (gone, kept) = self.history.items.split_at(cut.min(self.history.items.len()));
        let window = self.history.ledger.window();
        let large = |item: &&HistoryItem| is_oversized_for_summary(item.tokens, window);
        let summary = summary_unavailable(gone.len(), gone.iter().filter(large).count());
        let audit = audit(&summary, &self.facts.required, &self.sources).report;
        let dropped = HardPrunePlan {
            first_kept: cut,
            dropped_chunks: 1,
            dropped_messages: gone.len() as u32,
            dropped_tokens: gone.iter().map(|item| item.tokens).sum(),
            kept_tokens: kept.iter().map(|item| item.tokens).sum(),
            budget_tokens,
        };
        AuditedSummary {
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
