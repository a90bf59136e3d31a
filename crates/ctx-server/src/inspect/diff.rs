//! A diff, page by page.

use std::collections::BTreeMap;

use ctx_eval::Diff;
use ctx_layers::compaction::{Fate, Survival};
use serde::{Deserialize, Serialize};

use super::rows::page;

/// Which part of a diff is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiffAsked {
    /// `facts` (default) or `removed`.
    pub part: Option<String>,
    /// Of the facts those that are now `summary`, `kept` or `lost`.
    pub fate: Option<String>,
    /// The first, among those that fit.
    pub from: usize,
    /// How many at most.
    pub count: Option<usize>,
}

/// What a compaction took out, and where it is now.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffPage {
    /// The compaction.
    pub compaction: String,
    /// The summary.
    pub summary: String,
    /// Facts by fate.
    pub fates: BTreeMap<&'static str, usize>,
    /// Messages that left the context.
    pub removed_messages: usize,
    /// Their tokens.
    pub removed_tokens: u64,
    /// How many fit what was asked for.
    pub matching: usize,
    /// The place of the first one given among them.
    pub from: usize,
    /// Facts, most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Survival>,
    /// Messages, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<ctx_eval::Removed>,
    /// Why something is not there.
    pub note: Option<String>,
}

impl DiffPage {
    /// What was asked for of a diff.
    #[must_use]
    pub fn of(diff: &Diff, asked: &DiffAsked) -> Self {
        let mut told = Self {
            compaction: diff.compaction.to_string(),
            summary: diff.summary.clone(),
            removed_messages: diff.removed.len(),
            removed_tokens: diff.removed.iter().map(|removed| removed.tokens).sum(),
            ..Self::default()
        };
        for fact in &diff.facts {
            *told.fates.entry(fate_name(&fact.survives)).or_default() += 1;
        }
        if asked.part.as_deref() == Some("removed") {
            let (from, count) = page(asked.from, asked.count, diff.removed.len());
            (told.matching, told.from) = (diff.removed.len(), from);
            told.removed = diff.removed.iter().skip(from).take(count).cloned().collect();
            return told;
        }
        let wanted = asked.fate.as_deref().filter(|fate| !fate.is_empty());
        let fits = |fate: &Fate| wanted.is_none_or(|wanted| fate_name(fate) == wanted);
        let facts = || diff.facts.iter().filter(|fact| fits(&fact.survives));
        let all = facts().count();
        let (from, count) = page(asked.from, asked.count, all);
        (told.matching, told.from) = (all, from);
        told.facts = facts().skip(from).take(count).cloned().collect();
        told
    }
}

fn fate_name(fate: &Fate) -> &'static str {
    match fate {
        Fate::Summary { .. } => "summary",
        Fate::Kept { .. } => "kept",
        Fate::Lost => "lost",
    }
}
