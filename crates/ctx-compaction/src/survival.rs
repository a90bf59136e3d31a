//! What became of each fact when its message left the context.

use std::collections::{HashMap, HashSet};

use aho_corasick::AhoCorasick;
use ctx_core::EntryId;
use serde::Serialize;

use crate::{Fact, Grounds, Said, audit, facts};

/// Where a fact is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "in")]
pub enum Fate {
    /// In the summary.
    Summary {
        /// The line that has it.
        line: String,
    },
    /// In a message that was kept.
    Kept {
        /// Its entry.
        entry: EntryId,
    },
    /// Nowhere in the context. The original is where it was: in the transcript.
    Lost,
}

/// A fact of what left the context.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Survival {
    /// The fact.
    #[serde(flatten)]
    pub fact: Fact,
    /// Where it is now.
    pub survives: Fate,
}

/// Where the facts of covered messages are, most important first: in the summary that stands for
/// them, else in a message that was kept, else nowhere.
#[must_use]
pub fn survivals(covered: &[Said], kept: &[Said], summary: &str) -> Vec<Survival> {
    let facts = facts(covered);
    let grounds = Grounds::of(covered, None, &[]);
    let missing: HashSet<usize> = audit(summary, &facts, &grounds).missing.into_iter().collect();
    let lost: Vec<&str> = missing.iter().map(|&at| facts[at].text.as_str()).collect();
    let held = held(&lost, kept);
    let fate = |(at, fact): (usize, Fact)| {
        let survives = if missing.contains(&at) {
            let held = held.get(&fact.text);
            held.map_or(Fate::Lost, |id| Fate::Kept { entry: id.clone() })
        } else {
            Fate::Summary { line: line_with(summary, &fact).to_owned() }
        };
        Survival { fact, survives }
    };
    facts.into_iter().enumerate().map(fate).collect()
}

/// Which of the texts stand in kept messages, and where first. One pass over the messages.
fn held(texts: &[&str], kept: &[Said]) -> HashMap<String, EntryId> {
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

/// The line of a summary that has a fact: its words, else most of them, else its citation.
fn line_with<'a>(summary: &'a str, fact: &Fact) -> &'a str {
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
