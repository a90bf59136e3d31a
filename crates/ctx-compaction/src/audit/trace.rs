//! Reports where each fact is after its message left the context.

use std::collections::{HashMap, HashSet};

use aho_corasick::AhoCorasick;
use ctx_core::EntryId;
use serde::Serialize;

use crate::SourceIndex;
use ctx_facts::{CitedMessage, RequiredFact, required_facts};

use super::audit;

/// Where a fact is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "in")]
pub enum FactStatus {
    /// In the summary.
    Summary {
        /// The line that contains it.
        line: String,
    },
    /// In a message that was kept.
    Kept {
        /// The id of its entry.
        entry: EntryId,
    },
    /// Nowhere in the context. The original is still in the transcript.
    Lost,
}

/// A fact of a message that left the context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracedFact {
    /// The fact.
    #[serde(flatten)]
    pub fact: RequiredFact,
    /// Where it is now.
    #[serde(rename = "survives")]
    pub status: FactStatus,
}

/// Returns where each fact of the covered messages is, most important first: in the summary, else
/// in a kept message, else lost.
#[must_use]
pub fn trace_facts(
    covered: &[CitedMessage],
    kept: &[CitedMessage],
    summary: &str,
) -> Vec<TracedFact> {
    let facts = required_facts(covered);
    let grounds = SourceIndex::of(covered, None, &[]);
    let missing: HashSet<usize> = audit(summary, &facts, &grounds).missing.into_iter().collect();
    let lost: Vec<&str> = missing.iter().map(|&at| facts[at].text.as_str()).collect();
    let held = held(&lost, kept);
    let traced = |(at, fact): (usize, RequiredFact)| {
        let status = if missing.contains(&at) {
            let held = held.get(&fact.text);
            held.map_or(FactStatus::Lost, |id| FactStatus::Kept { entry: id.clone() })
        } else {
            FactStatus::Summary { line: line_with(summary, &fact).to_owned() }
        };
        TracedFact { fact, status }
    };
    facts.into_iter().enumerate().map(traced).collect()
}

/// Finds which of the texts occur in kept messages, and where first, in one pass.
fn held(texts: &[&str], kept: &[CitedMessage]) -> HashMap<String, EntryId> {
    let mut held = HashMap::new();
    let Ok(finder) = AhoCorasick::new(texts) else { return held };
    for said in kept {
        for hit in finder.find_overlapping_iter(&said.message.plain_text()) {
            let text = texts[hit.pattern().as_usize()];
            if !held.contains_key(text) {
                held.insert(text.to_owned(), said.id.clone());
            }
        }
    }
    held
}

/// Finds the line of a summary that has a fact: its words, else most of them, else its citation.
fn line_with<'a>(summary: &'a str, fact: &RequiredFact) -> &'a str {
    if let Some(at) = summary.find(&fact.text) {
        let start = summary[..at].rfind('\n').map_or(0, |line| line + 1);
        return summary[start..].lines().next().unwrap_or_default().trim();
    }
    // A citation may be a shortened id.
    let beginning: String = fact.entry.chars().take(8).collect();
    let cited = format!("[e:{beginning}");
    let words: HashSet<&str> = fact.text.split_whitespace().collect();
    let score = |line: &&str| {
        let shared = line.split_whitespace().filter(|word| words.contains(word)).count();
        (shared, line.contains(&cited))
    };
    summary.lines().rev().max_by_key(score).unwrap_or_default().trim()
}
