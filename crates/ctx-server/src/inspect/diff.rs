//! A diff, page by page.

use ctx_eval::Diff;
use ctx_layers::compaction::Fate;

use super::rows::page;
use super::shape::{DiffAsked, DiffPage};

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
