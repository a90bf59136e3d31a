//! From a draft to the stored text and its receipt.

use std::borrow::Cow;
use std::collections::HashSet;

use ctx_core::{
    Compacted, Counter, EntryId, Message, Projected, Projection, ProjectionKey, Role, Tokens,
};

use crate::answer::{sanitised, telling};
use crate::audit::coverage;
use crate::prompts::escaped;
use crate::repair::reattribute;
use crate::{
    Audit, AuditReport, CallLog, CompactionPlan, HardPrunePlan, History, Receipt, RepairOptions,
    Repaired, RoundReport, Rung, SummaryDraft, audit, repair,
};
use ctx_extract::WORKING_STATE_TAGS;
use ctx_facts::{FileLists, base_folder, with_relative_paths};

use super::run::CompactionRun;
use super::{Details, ID};

/// The maximum share of a summary for the file lists.
const FILES_MAX_SHARE: f64 = 0.25;

/// `PATH_MAX` of most systems, in bytes.
const LONGEST_PATH: usize = 4_096;

/// A text that was audited and would make the request smaller.
pub(super) struct AuditedSummary {
    /// The exact text to store.
    pub(super) summary: String,
    pub(super) audit: AuditReport,
    pub(super) cut: usize,
    pub(super) rung: Rung,
    pub(super) model: Option<String>,
    pub(super) dropped: Option<HardPrunePlan>,
    pub(super) summary_tokens: Tokens,
}

impl CompactionRun {
    /// Audits and repairs a draft; the result contains the exact text to store. `None` if the text
    /// is empty, or if it would not make the request smaller.
    pub(super) fn settle(&self, draft: SummaryDraft) -> Option<AuditedSummary> {
        let draft_text = match &self.names {
            Some(names) => names.clone().apply(&draft.text),
            None => draft.text,
        };
        let parts = [draft_text.trim_end(), self.file_lists.trim()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let text = sanitised(&parts.collect::<Vec<_>>().join("\n\n"));
        let text = escaped(&text, &WORKING_STATE_TAGS);
        let after = format!("{}{}", draft.notes, self.put_back(&text));
        let text = match &self.names {
            Some(_) => text,
            None => with_relative_paths(&text, self.base_folder()),
        };
        let (text, reattributed) = match draft.rung {
            Rung::Extractive | Rung::HardPrune => (text, Vec::new()),
            _ => reattribute(&text, &self.messages, &self.said_before()),
        };
        let how = RepairOptions {
            budget: self.plan.summary_budget - self.counter().text(&after),
            counter: self.counter(),
            ungrounded: self.config.ungrounded,
        };
        let mut sources = Cow::Borrowed(&self.sources);
        if !draft.notes.is_empty() {
            sources = Cow::Owned(sources.into_owned().with_text(&draft.notes));
        }
        let repaired = self.exact(repair(&text, &self.facts.required, &sources, &how));
        let (mut summary, mut audit) = (repaired.text, repaired.report);
        audit.round = self.round(&repaired.missing);
        audit.superseded = self.facts.superseded.len() as u32;
        for old in &self.facts.superseded {
            audit.kinds.entry(old.fact.kind).or_default().superseded += 1;
        }
        audit.reattributed = reattributed;
        telling(&summary).next()?;
        summary.push_str(&after);
        self.weigh(AuditedSummary {
            summary,
            audit,
            cut: self.plan.cut,
            rung: draft.rung,
            model: (!draft.model.is_empty()).then_some(draft.model),
            dropped: None,
            summary_tokens: Tokens::ZERO,
        })
    }

    /// Audits a summary that is in use already. Returns it with the facts that it lost, in at most
    /// `room` tokens.
    pub(super) fn judge(&self, summary: &str, room: Tokens) -> (AuditedSummary, String) {
        let Audit { mut report, missing, .. } = audit(summary, &self.facts.required, &self.sources);
        report.round = self.round(&missing);
        let lost = missing.iter().filter_map(|at| self.facts.required.get(*at)).cloned();
        let lost: Vec<_> = lost.collect();
        let how = RepairOptions {
            budget: room,
            counter: self.counter(),
            ungrounded: self.config.ungrounded,
        };
        let lost = repair("", &lost, &self.sources, &how).text;
        let judged = AuditedSummary {
            summary: summary.to_owned(),
            audit: report,
            cut: self.plan.cut,
            rung: Rung::Model,
            model: None,
            dropped: None,
            summary_tokens: self.counter().text(summary),
        };
        (judged, sanitised(lost.trim()))
    }

    /// Returns the previous summary, and what the user asks of this one.
    fn said_before(&self) -> Vec<&str> {
        let previous = self.history.previous.as_ref().map(|previous| previous.text.as_str());
        let asked = [self.options.focus.as_deref(), self.config.custom_instructions.as_deref()];
        asked.into_iter().chain([previous]).flatten().collect()
    }

    /// Returns the folder that the paths of the previous summary are relative to: its lines go on.
    fn base_folder(&self) -> Option<&str> {
        base_folder(&self.history.previous.as_ref()?.text)
    }

    /// Returns the audit of the messages that this compaction removes.
    fn round(&self, missing: &[usize]) -> RoundReport {
        let own: HashSet<&EntryId> = self.messages.iter().map(|said| &said.id).collect();
        let missing: HashSet<usize> = missing.iter().copied().collect();
        let facts = self.facts.required.iter().enumerate();
        let facts = facts.filter(|(_, fact)| own.contains(&fact.entry));
        let facts: Vec<_> = facts.map(|(at, fact)| (fact, !missing.contains(&at))).collect();
        RoundReport {
            facts: facts.len() as u32,
            kept: facts.iter().filter(|(_, is_kept)| *is_kept).count() as u32,
            coverage: coverage(facts.into_iter()),
        }
    }

    /// Returns the text to store, and the audit of exactly that text. History that repair quotes
    /// may be as hostile as a model's output.
    fn exact(&self, mut repaired: Repaired) -> Repaired {
        let mut text = sanitised(repaired.text.trim_end());
        let report = &mut repaired.report;
        if let Some(names) = &self.names {
            let mut names = names.clone();
            text = names.apply(&text);
            report.ungrounded = report.ungrounded.iter().map(|name| names.apply(name)).collect();
        }
        if text != repaired.text {
            let exact = audit(&text, &self.facts.required, &self.sources);
            report.kept = exact.report.kept.saturating_sub(report.repaired);
            report.missing = exact.report.missing;
            report.coverage = exact.report.coverage;
            repaired.missing = exact.missing;
        }
        Repaired { text, ..repaired }
    }

    /// Measures a text; `None` if it would not make the request smaller.
    pub(super) fn weigh(&self, mut settled: AuditedSummary) -> Option<AuditedSummary> {
        let message = Message::text(Role::CompactionSummary, settled.summary.as_str());
        settled.summary_tokens = self.history.ledger.count(&message);
        let covered = self.history.items.get(..settled.cut)?;
        let staying = self.staying(settled.cut);
        let smaller = settled.summary_tokens + staying < self.taken_out(settled.cut);
        let is_inside = !covered.is_empty() && settled.cut < self.history.items.len();
        (smaller && is_inside).then_some(settled)
    }

    /// Returns the tokens of messages before the cut that stay in this process, as sent.
    fn staying(&self, cut: usize) -> Tokens {
        let before = self.history.items.iter().take(cut);
        let stays: Tokens = before.filter(|item| item.stays).map(|item| item.tokens).sum();
        stays - self.savings.iter().filter(|s| s.at < cut).map(|s| s.saved).sum()
    }

    /// Returns the tokens of the summarised messages, plus those saved by truncating kept ones.
    fn taken_out(&self, cut: usize) -> Tokens {
        let covered = self.history.items.iter().take(cut).map(|item| item.tokens);
        let previous = self.history.previous.as_ref().map_or(Tokens::ZERO, |p| p.tokens);
        let shortened = self.savings.iter().filter(|s| s.at >= cut).map(|s| s.saved);
        covered.sum::<Tokens>() + previous + shortened.sum()
    }

    /// Returns the compaction with its receipt.
    pub(super) fn compacted(&self, settled: AuditedSummary, log: CallLog) -> Compacted {
        let (history, ledger) = (&self.history, &self.history.ledger);
        let id = |at: usize| history.items.get(at).map(|item| item.entry.id().clone());
        let id = |at: usize| id(at).unwrap_or_default();
        let taken_out = ledger.corrected(self.taken_out(settled.cut));
        let tokens_before = history.tokens_before(&self.config);
        let staying_tokens = self.staying(settled.cut);
        let added = ledger.corrected(settled.summary_tokens + staying_tokens);
        let tokens_after = tokens_before - taken_out + added;
        let projections: Vec<Projection> =
            self.savings.iter().map(|s| s.projection.clone()).collect();
        let receipt = Receipt {
            trigger: self.options.trigger,
            attempt: self.options.attempt,
            emergency: self.emergency,
            first_entry_id: id(0),
            last_entry_id: id(settled.cut.saturating_sub(1)),
            first_kept_entry_id: id(settled.cut),
            messages: settled.cut as u32,
            kept_messages: (history.items.len() - settled.cut) as u32,
            split_turn: self.plan.split_turn,
            tokens_before,
            tokens_after,
            staying_tokens: ledger.corrected(staying_tokens),
            summary_tokens: settled.summary_tokens,
            strategy: self.config.strategy,
            rung: settled.rung,
            model: settled.model,
            cost_usd: log.cost_usd,
            calls: log.calls,
            audit: settled.audit,
            notes: log.notes,
            shortened: projections.iter().map(|p| p.key.entry.clone()).collect(),
            dropped: settled.dropped,
        };
        Compacted {
            summary: settled.summary,
            first_kept_entry_id: receipt.first_kept_entry_id.clone(),
            tokens_before,
            tokens_after: Some(tokens_after),
            details: Details {
                files: self.files.clone(),
                memory_flush_at: self.emergency.then_some(self.options.now),
                receipt,
            }
            .to_json(),
            staying: history
                .items
                .iter()
                .take(settled.cut)
                .filter(|item| item.stays)
                .map(|item| item.entry.id().clone())
                .collect(),
            projections,
        }
    }
}

/// The truncated form of a message that stays.
pub(super) struct Saving {
    at: usize,
    saved: Tokens,
    projection: Projection,
}

impl Saving {
    /// Returns the truncated forms of the messages that stay.
    pub(super) fn all(plan: &CompactionPlan, history: &History) -> Vec<Self> {
        let saving = plan.shortened.iter().filter_map(|shortened| {
            let item = history.items.get(shortened.at)?;
            let hash = item.entry.hash().ok()?;
            let projection = Projection {
                key: ProjectionKey { entry: item.entry.id().clone(), hash },
                layer: ID.into(),
                form: Projected::Replaced(shortened.form.clone()),
                reason: "kept by a compaction, truncated to fit the budget".into(),
                points_to: Vec::new(),
            };
            let saved = item.tokens - history.ledger.count(&shortened.form);
            Some(Self { at: shortened.at, saved, projection })
        });
        saving.collect()
    }
}

/// Returns the file lists for the end of a summary.
pub(super) fn file_lists(files: &FileLists, summary_budget: Tokens, counter: &Counter) -> String {
    within(files, summary_budget.scale(FILES_MAX_SHARE), counter).render()
}

/// Returns as many files as fit, modified ones first. A path that no file system would accept (an
/// argument of several lines) is only in the details.
fn within(files: &FileLists, room: Tokens, counter: &Counter) -> FileLists {
    let mut left = room;
    let mut fits = |path: &&String| {
        let size = counter.text(path) + Tokens(1);
        let fits = size <= left;
        left -= size;
        fits
    };
    let is_path = |path: &&String| path.len() <= LONGEST_PATH && !path.contains(char::is_control);
    let modified_files =
        files.modified_files.iter().filter(is_path).take_while(&mut fits).cloned().collect();
    let read_files =
        files.read_files.iter().filter(is_path).take_while(&mut fits).cloned().collect();
    FileLists { read_files, modified_files }
}
