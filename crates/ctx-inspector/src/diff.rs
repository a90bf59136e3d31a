//! The diff of a compaction, in pages.

use std::collections::BTreeMap;

use ctx_eval::CompactionDiff;
use ctx_layers::compaction::{FactStatus, TracedFact};
use serde::{Deserialize, Serialize};

use super::rows::page;

/// The requested part of a diff.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DiffQuery {
    /// `facts` (default) or `removed`.
    pub(crate) part: Option<String>,
    /// Only facts with this fate: `summary`, `kept` or `lost`.
    pub(crate) fate: Option<String>,
    /// The position of the first row to return among the matching rows.
    pub(crate) from: usize,
    /// The maximum number to return.
    pub(crate) count: Option<usize>,
}

/// The messages that a compaction removed, and where their facts are now.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffPage {
    /// The compaction.
    pub(crate) compaction: String,
    /// The summary.
    pub(crate) summary: String,
    /// The number of facts by fate.
    pub(crate) fates: BTreeMap<&'static str, usize>,
    /// Messages removed from the context.
    pub(crate) removed_messages: usize,
    /// Their tokens.
    pub(crate) removed_tokens: u64,
    /// The number of matches.
    pub(crate) matching: usize,
    /// The position of the first one returned.
    pub(crate) from: usize,
    /// Facts, most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) facts: Vec<TracedFact>,
    /// Messages, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<ctx_eval::RemovedMessage>,
    /// Why facts are missing.
    pub(crate) note: Option<String>,
}

impl DiffPage {
    /// Returns the requested part of a diff.
    #[must_use]
    pub(crate) fn of(diff: &CompactionDiff, query: &DiffQuery) -> Self {
        let mut diff_page = Self {
            compaction: diff.compaction.to_string(),
            summary: diff.summary.clone(),
            removed_messages: diff.removed.len(),
            removed_tokens: diff.removed.iter().map(|removed| removed.tokens).sum(),
            ..Self::default()
        };
        for fact in &diff.facts {
            *diff_page.fates.entry(fate_name(&fact.status)).or_default() += 1;
        }
        if query.part.as_deref() == Some("removed") {
            let (from, count) = page(query.from, query.count, diff.removed.len());
            (diff_page.matching, diff_page.from) = (diff.removed.len(), from);
            diff_page.removed = diff.removed.iter().skip(from).take(count).cloned().collect();
            return diff_page;
        }
        let wanted = query.fate.as_deref().filter(|fate| !fate.is_empty());
        let fits = |fate: &FactStatus| wanted.is_none_or(|wanted| fate_name(fate) == wanted);
        let facts = || diff.facts.iter().filter(|fact| fits(&fact.status));
        let all = facts().count();
        let (from, count) = page(query.from, query.count, all);
        (diff_page.matching, diff_page.from) = (all, from);
        diff_page.facts = facts().skip(from).take(count).cloned().collect();
        diff_page
    }
}

fn fate_name(fate: &FactStatus) -> &'static str {
    match fate {
        FactStatus::Summary { .. } => "summary",
        FactStatus::Kept { .. } => "kept",
        FactStatus::Lost => "lost",
    }
}
