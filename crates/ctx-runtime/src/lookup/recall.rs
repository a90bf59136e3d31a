//! The block that memory would insert into a request.

use std::collections::HashSet;

use ctx_core::{
    MemoryStore, Passage, RecallRequest, RecalledFact, Recollection, Result, Timestamp, Tokens,
};
use ctx_memory::{SessionMemory, build_recall_block};
use ctx_search::question::is_query;
use serde::Serialize;

use super::Lookup;

/// A recall query.
#[derive(Clone, Debug, Default)]
pub struct RecallQuery<'a> {
    /// The question.
    pub query: &'a str,
    /// The session of the query, by its name in memory.
    pub session: Option<&'a str>,
    /// Whether to search other sessions of the agent, regardless of the configuration.
    pub everywhere: bool,
    /// Maximum number of tokens of the block; by default the configured one.
    pub budget: Option<Tokens>,
    /// The current time.
    pub now: Timestamp,
}

/// What was recalled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecallReport {
    /// The agent.
    pub agent: String,
    /// The session of the query.
    pub session: Option<String>,
    /// The question.
    pub query: String,
    /// Maximum number of tokens of the block.
    pub budget: Tokens,
    /// Number of tokens of the block.
    pub tokens: Tokens,
    /// Minimum score of a passage.
    pub min_score: f64,
    /// The block as it would be injected; null if nothing fits.
    pub block: Option<String>,
    /// The matching facts; the first `facts_used` are in the block.
    pub facts: Vec<RecalledFact>,
    /// Number of facts in the block.
    pub facts_used: usize,
    /// The matching passages.
    pub passages: Vec<RecalledPassage>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A passage that matches, or is adjacent to a matching passage.
#[derive(Clone, Debug, Serialize)]
pub struct RecalledPassage {
    /// The passage.
    #[serde(flatten)]
    pub passage: Passage,
    /// Whether it is in the block.
    pub used: bool,
}

impl RecallReport {
    /// Returns the number of passages in the block.
    pub fn passages_used(&self) -> usize {
        self.passages.iter().filter(|passage| passage.used).count()
    }

    /// Returns the reason for a missing block.
    pub fn why_nothing(&self) -> String {
        let (facts, passages, budget) = (self.facts.len(), self.passages.len(), self.budget);
        match facts + passages {
            _ if !is_query(&self.query) => {
                "too short a query: it needs three letters, or two Chinese characters".to_owned()
            }
            0 => "no passage scores high enough; a search shows the nearest ones".to_owned(),
            _ => format!(
                "matching facts: {facts}, passages: {passages}; none fits into {budget} tokens: \
                 give a larger budget"
            ),
        }
    }
}

impl Lookup {
    /// Returns what memory would insert into the request of a session with this question.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub async fn recall(&self, query: &RecallQuery<'_>) -> Result<RecallReport> {
        let budget = query.budget.unwrap_or(Tokens(self.config.hard_cap_tokens));
        let name = query.session.unwrap_or_default();
        let across = query.everywhere || self.config.cross_session;
        let mut memory = SessionMemory::new(self.memory.clone(), name, self.maker(name))
            .with_cross_session(across);
        if let Some(facts) = self.facts.clone() {
            memory = memory.with_facts(facts);
        }
        let request = RecallRequest {
            query: query.query.to_owned(),
            now: query.now,
            visible: HashSet::new(),
            min_score: self.config.auto_recall_min_score as f32,
            passages: self.config.recall.passages as usize,
            facts: self.config.recall.facts as usize,
        };
        let found = match is_query(query.query) {
            true => memory.recall(request).await?,
            false => Recollection::default(),
        };
        let block = build_recall_block(&found.facts, &found.passages, budget, &self.counter);
        let used: HashSet<usize> =
            block.iter().flat_map(|block| block.passages.iter().copied()).collect();
        let passages = found.passages.into_iter().enumerate();
        let passages =
            passages.map(|(at, passage)| RecalledPassage { passage, used: used.contains(&at) });
        Ok(RecallReport {
            agent: self.agent.to_string(),
            session: query.session.map(str::to_owned),
            query: query.query.to_owned(),
            budget,
            tokens: block.as_ref().map_or(Tokens::ZERO, |block| block.tokens),
            min_score: self.config.auto_recall_min_score,
            facts_used: block.as_ref().map_or(0, |block| block.facts),
            block: block.map(|block| block.text),
            facts: found.facts,
            passages: passages.collect(),
            warnings: found.warnings,
        })
    }
}
