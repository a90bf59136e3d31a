//! One compaction from beginning to end.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    CompactRequest, CompactResult, Compacted, CompactionTrigger, Counter, IdentifierPolicy,
    Message, Projected, Projection, ProjectionKey, Result, Role, SummaryInstructions,
    SummaryModels, Timestamp, Tokens,
};
use serde::{Deserialize, Serialize};

use crate::anonymize::anonymize;
use crate::cited::Cited;
use crate::hard_prune::{Prunable, plan_prune};
use crate::{
    AuditReport, Config, Draft, Extract, Fact, FileLists, Grounds, HardPrunePlan, History, Item,
    Job, Limits, Log, Plan, Planned, Receipt, Repair, Rung, Said, audit, extract, facts,
    is_oversized_for_summary, ladder, plan, repair, summary_unavailable,
};

/// The layer's name, in manifests and projections.
pub(crate) const ID: &str = "compaction";

/// What the file lists may take of a summary.
const FILES_MAX_SHARE: f64 = 0.25;

/// What the compactor has to say in the `details` of a compaction entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Files that were read and modified, earlier compactions included.
    #[serde(flatten)]
    pub files: FileLists,
    /// When history was cut in an emergency, without a memory flush before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<Timestamp>,
    /// What was done.
    pub receipt: Receipt,
}

/// Why and how one compaction runs.
#[derive(Clone, Debug)]
pub struct Order {
    /// Why it runs.
    pub trigger: CompactionTrigger,
    /// Which attempt at getting one request through it is, from 1.
    pub attempt: u32,
    /// Compact even if the session is small.
    pub force: bool,
    /// What the request may measure afterwards.
    pub token_budget: Option<Tokens>,
    /// What the user wants the summary to dwell on. Untrusted.
    pub focus: Option<String>,
    /// How the summary is to be written.
    pub instructions: SummaryInstructions,
    /// The models that may write it.
    pub models: Option<SummaryModels>,
    /// The time.
    pub now: Timestamp,
}

impl Details {
    /// The details in the JSON of a compaction entry.
    fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }

    /// Reads the details of a compaction entry, if ctx wrote them.
    #[must_use]
    pub fn from_json(json: &serde_json::Value) -> Option<Self> {
        Self::deserialize(json).ok()
    }
}

impl Order {
    /// What the summary does with identifiers.
    fn policy(&self, config: &Config) -> IdentifierPolicy {
        self.instructions.identifier_policy.unwrap_or(config.identifier_policy)
    }

    /// The order in a request to an engine.
    #[must_use]
    pub fn of(request: &CompactRequest) -> Self {
        Self {
            trigger: request.trigger,
            attempt: request.attempt,
            force: request.force,
            token_budget: request.token_budget,
            focus: request.custom_instructions.clone(),
            instructions: request.summary_instructions.clone(),
            models: request.models.clone(),
            now: request.turn.now,
        }
    }
}

/// Compacts a history: plan, draft, audit, repair, receipt. Nothing is stored here.
///
/// Model after model is asked, then the extractive summariser writes, then history is cut without
/// a summary. A text that would not shrink the request is not taken, and the ladder goes on: in the
/// end there is a smaller request, or there was nothing to gain.
///
/// # Errors
///
/// What the plan may give: reading an entry from a file that is gone.
pub async fn compact(history: History, config: Arc<Config>, order: Order) -> Result<CompactResult> {
    if !order.force
        && order.trigger == CompactionTrigger::Threshold
        && history.used() <= config.threshold(&history.ledger)
    {
        return Ok(CompactResult::nothing("the session is below the threshold"));
    }
    let emergency = order.trigger == CompactionTrigger::Overflow
        && order.attempt >= config.emergency.from_attempt;
    // The provider's word that the prompt is too long counts more than our own estimate.
    let force = order.force || order.trigger == CompactionTrigger::Overflow;
    let limits = Limits { token_budget: order.token_budget, force, emergency };
    let plan = match plan(&history, &config, limits)? {
        Planned::Compact(plan) => plan,
        Planned::Nothing(reason) => return Ok(CompactResult::nothing(reason)),
    };
    let work = Work::new(history, plan, config, order, emergency);
    let mut log = Log::default();
    let settled = match work.ask_models(&mut log).await {
        Some(settled) => Some(settled),
        None => work.extract(&mut log).or_else(|| work.cut_only(&log)),
    };
    Ok(settled.unwrap_or_else(|| CompactResult::nothing("a summary would be no shorter")))
}

/// What all rungs work on.
struct Work {
    history: History,
    plan: Plan,
    config: Arc<Config>,
    order: Order,
    emergency: bool,
    said: Arc<[Said]>,
    /// The group of each message in `said`.
    groups: Vec<u32>,
    /// Where the split turn begins in `said`.
    turn_start: Option<usize>,
    facts: Vec<Fact>,
    grounds: Grounds,
    files: FileLists,
}

impl Work {
    fn new(
        history: History,
        plan: Plan,
        config: Arc<Config>,
        order: Order,
        emergency: bool,
    ) -> Self {
        let turn_start = plan.turn_start.unwrap_or(plan.cut);
        let covered = history.items.get(..plan.cut).unwrap_or_default();
        let cited = Cited::of(history.items.iter().map(|item| item.entry.id()));
        let read = covered.iter().enumerate().filter_map(|(at, item)| {
            // What cannot be read is passed over: a file that was damaged meanwhile is no reason to
            // keep all of it in the window.
            let message = item.entry.message().ok()?;
            let said = Said { id: cited.short(item.entry.id()), message, pinned: item.pinned };
            Some((at, item.group, said))
        });
        let read: Vec<_> = read.collect();
        let before_turn = read.iter().take_while(|(at, ..)| *at < turn_start).count();
        let (groups, said): (Vec<u32>, Vec<Said>) =
            read.into_iter().map(|(_, group, said)| (group, said)).unzip();
        let previous = history.previous.as_ref();
        let mut facts = facts(&said);
        if order.policy(&config) == IdentifierPolicy::Anonymize {
            facts.retain(|fact| fact.kind.is_passage());
        }
        let own = [order.focus.as_deref(), config.custom_instructions.as_deref()];
        let own: Vec<&str> = own.into_iter().flatten().collect();
        let grounds = Grounds::of(&said, previous.map(|p| p.text.as_str()), &own);
        let mut files = previous.map(|p| p.files.clone()).unwrap_or_default();
        files.merge(FileLists::of(&said));
        Self {
            turn_start: plan.turn_start.map(|_| before_turn),
            said: said.into(),
            groups,
            history,
            plan,
            config,
            order,
            emergency,
            facts,
            grounds,
            files: files.normalised(),
        }
    }

    fn counter(&self) -> &Counter {
        self.history.ledger.counter()
    }

    /// The configured models, unless there are none.
    async fn ask_models(&self, log: &mut Log) -> Option<CompactResult> {
        let models = self.order.models.as_ref()?;
        let draft = ladder(&self.job(), models, log).await?;
        let settled = self.settle(draft, log);
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
            summary_budget: self.plan.summary_budget - self.counter().text(&self.file_lists()),
            counter,
            focus: self.order.focus.clone(),
            instructions: self.order.instructions.clone(),
        }
    }

    /// The extractive summariser, with less room the second time.
    fn extract(&self, log: &mut Log) -> Option<CompactResult> {
        let half = self.plan.covered_tokens.scale(0.5);
        for budget in [self.plan.summary_budget, self.plan.summary_budget.min(half)] {
            let text = extract(&Extract {
                said: &self.said,
                facts: &self.facts,
                previous: self.history.previous.as_ref(),
                turn_start: self.turn_start,
                focus: self.order.focus.as_deref(),
                budget,
                counter: self.counter(),
            });
            let draft = Draft { text, rung: Rung::Extractive, model: String::new() };
            if let Some(settled) = self.settle(draft, log) {
                return Some(settled);
            }
        }
        log.notes.push("the extractive summary would not have made the request smaller".into());
        None
    }

    /// History up to its share of the window, with a notice in the place of a summary.
    fn cut_only(&self, log: &Log) -> Option<CompactResult> {
        let items = &self.history.items;
        let prunable = items.iter().map(|item| {
            let (tokens, group) = (item.tokens, item.group);
            Some(Prunable { tokens, group, protected: item.pinned })
        });
        let prunable: Vec<_> = prunable.collect();
        let pruned = plan_prune(&prunable, &self.history.ledger, self.config.max_history_share);
        let large =
            |item: &&Item| is_oversized_for_summary(item.tokens, self.history.ledger.window());
        let oversized = items[..self.plan.cut].iter().filter(large).count();
        let text = summary_unavailable(self.plan.cut, oversized);
        let audit = audit(&text, &self.facts, &self.grounds).report;
        let shares =
            (1..=self.plan.cut).contains(&pruned.first_kept) && is_whole(items, pruned.first_kept);
        let shared = shares.then_some(pruned.first_kept);
        [shared, Some(self.plan.cut)].into_iter().flatten().find_map(|cut| {
            let dropped = HardPrunePlan { first_kept: cut, ..pruned.clone() };
            let end = Ending { cut, rung: Rung::HardPrune, model: None, dropped: Some(dropped) };
            self.close(text.clone(), audit.clone(), end, log)
        })
    }

    /// Audits and repairs a draft, and closes the compaction with the exact text to be stored.
    fn settle(&self, draft: Draft, log: &Log) -> Option<CompactResult> {
        let policy = self.order.policy(&self.config);
        let keeps_names = policy != IdentifierPolicy::Anonymize;
        let budget = self.plan.summary_budget;
        let mut text = draft.text;
        if keeps_names {
            text = [text.trim_end(), self.file_lists().trim()].join("\n\n");
        }
        let how = Repair { budget, counter: self.counter(), ungrounded: self.config.ungrounded };
        let repaired = repair(&text, &self.facts, &self.grounds, &how);
        let text = if keeps_names { repaired.text } else { anonymize(&repaired.text) };
        let model = (!draft.model.is_empty()).then_some(draft.model);
        let end = Ending { cut: self.plan.cut, rung: draft.rung, model, dropped: None };
        self.close(text, repaired.report, end, log)
    }

    /// The files as they stand at the end of the summary.
    fn file_lists(&self) -> String {
        if self.order.policy(&self.config) == IdentifierPolicy::Anonymize {
            return String::new();
        }
        let room = self.plan.summary_budget.scale(FILES_MAX_SHARE);
        within(&self.files, room, self.counter()).render()
    }

    /// The result, unless the request would be no smaller with it.
    fn close(
        &self,
        summary: String,
        audit: AuditReport,
        end: Ending,
        log: &Log,
    ) -> Option<CompactResult> {
        let (history, ledger) = (&self.history, &self.history.ledger);
        let message = Message::text(Role::CompactionSummary, summary.as_str());
        let summary_tokens = ledger.count(&message);
        let (covered, kept) = history.items.split_at_checked(end.cut)?;
        let gone: Tokens = covered.iter().map(|item| item.tokens).sum();
        let previous = history.previous.as_ref().map_or(Tokens::ZERO, |p| p.tokens);
        let saved = self.shortening();
        let saved_of = |kept: bool| -> Tokens {
            saved.iter().filter(|s| (s.at >= end.cut) == kept).map(|s| s.saved).sum()
        };
        let taken_out = gone + previous + saved_of(true);
        let staying: Tokens = covered.iter().filter(|i| i.stays).map(|item| item.tokens).sum();
        if summary_tokens + (staying - saved_of(false)) >= taken_out {
            return None;
        }
        // Those that stay do so in this process only, and not where the session is read again.
        let after = history.counted - taken_out + summary_tokens;
        let (first, last, first_kept) = (covered.first()?, covered.last()?, kept.first()?);
        let projections: Vec<Projection> = saved.into_iter().map(|s| s.projection).collect();
        let receipt = Receipt {
            trigger: self.order.trigger,
            attempt: self.order.attempt,
            emergency: self.emergency,
            first_entry_id: first.entry.id().clone(),
            last_entry_id: last.entry.id().clone(),
            first_kept_entry_id: first_kept.entry.id().clone(),
            messages: covered.len() as u32,
            kept_messages: kept.len() as u32,
            split_turn: self.plan.split_turn,
            tokens_before: history.used(),
            tokens_after: ledger.corrected(after),
            summary_tokens,
            strategy: self.config.strategy,
            rung: end.rung,
            model: end.model,
            cost_usd: log.cost_usd,
            calls: log.calls.clone(),
            audit,
            notes: log.notes.clone(),
            shortened: projections.iter().map(|p| p.key.entry.clone()).collect(),
            dropped: end.dropped,
        };
        let compacted = Compacted {
            summary,
            first_kept_entry_id: receipt.first_kept_entry_id.clone(),
            tokens_before: receipt.tokens_before,
            tokens_after: Some(receipt.tokens_after),
            details: Details {
                files: self.files.clone(),
                memory_flush_at: self.emergency.then_some(self.order.now),
                receipt,
            }
            .to_json(),
            projections,
        };
        Some(CompactResult { ok: true, compacted: true, reason: None, result: Some(compacted) })
    }

    /// The shorter forms of messages that stay.
    fn shortening(&self) -> Vec<Saving> {
        let saving = self.plan.shortened.iter().filter_map(|shortened| {
            let item = self.history.items.get(shortened.at)?;
            let projection = Projection {
                key: ProjectionKey {
                    entry: item.entry.id().clone(),
                    hash: item.entry.hash().ok()?,
                },
                layer: ID.to_owned(),
                form: Projected::Replaced(shortened.form.clone()),
                reason: "kept by a compaction, and larger than what may be kept".to_owned(),
            };
            let saved = item.tokens - self.history.ledger.count(&shortened.form);
            Some(Saving { at: shortened.at, saved, projection })
        });
        saving.collect()
    }
}

/// How a compaction ended.
struct Ending {
    cut: usize,
    rung: Rung,
    model: Option<String>,
    dropped: Option<HardPrunePlan>,
}

/// A message that stays, in a shorter form.
struct Saving {
    at: usize,
    saved: Tokens,
    projection: Projection,
}

/// Whether no group stands on both sides of a cut.
fn is_whole(items: &[Item], cut: usize) -> bool {
    let before: HashSet<u32> = items[..cut].iter().map(|item| item.group).collect();
    !items[cut..].iter().any(|item| before.contains(&item.group))
}

/// As many of the files as there is room for, modified ones first.
fn within(files: &FileLists, room: Tokens, counter: &Counter) -> FileLists {
    let mut left = room;
    let mut fits = |path: &&String| {
        let size = counter.text(path) + Tokens(1);
        let fits = size <= left;
        left -= size;
        fits
    };
    let modified_files = files.modified_files.iter().take_while(&mut fits).cloned().collect();
    let read_files = files.read_files.iter().take_while(&mut fits).cloned().collect();
    FileLists { read_files, modified_files }
}
