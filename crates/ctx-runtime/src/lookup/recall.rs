//! The block that memory would put into a request.

use std::collections::HashSet;

use ctx_core::{
    EntryId, MemoryStore, Passage, RecallRequest, RecalledFact, Recollection, Result, Role,
    Timestamp, Tokens,
};
use ctx_memory::{SessionMemory, build, is_query};
use serde::Serialize;

use super::Lookup;

/// What is to be recalled.
#[derive(Clone, Debug, Default)]
pub struct RecallAsked<'a> {
    /// The question.
    pub query: &'a str,
    /// The session that asks, as it stands in memory.
    pub session: Option<&'a str>,
    /// Whether other sessions of the agent are looked through, whatever the configuration says.
    pub everywhere: bool,
    /// The most tokens the block may have; by default what the configuration says.
    pub budget: Option<Tokens>,
    /// What time it is.
    pub now: Timestamp,
}

/// What was recalled.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recalled {
    /// Whose memory it is.
    pub agent: String,
    /// The session that asked.
    pub session: Option<String>,
    /// The question.
    pub query: String,
    /// The most tokens the block may have.
    pub budget: Tokens,
    /// What it has.
    pub tokens: Tokens,
    /// Passages that score less do not come back.
    pub min_score: f32,
    /// The block as it would be injected; null where nothing fits.
    pub block: Option<String>,
    /// What is known; the first of these are in the block.
    pub facts: Vec<RecalledFactReport>,
    /// How many are.
    pub facts_used: usize,
    /// What was said.
    pub passages: Vec<RecalledPassage>,
    /// What a person should be told.
    pub warnings: Vec<String>,
}

/// A fact that fits.
#[derive(Clone, Debug, Serialize)]
pub struct RecalledFactReport {
    /// What kind of fact it is.
    pub kind: String,
    /// What it says.
    pub text: String,
    /// How well it fits.
    pub score: f32,
    /// What it is drawn from.
    pub entries: Vec<EntryId>,
}

/// A passage that fits, or stands next to one that does.
#[derive(Clone, Debug, Serialize)]
pub struct RecalledPassage {
    /// The session it was said in.
    pub session: Option<String>,
    /// The message it is of.
    pub entry: Option<EntryId>,
    /// Who said it.
    pub role: Role,
    /// When.
    pub timestamp: Timestamp,
    /// How well it fits.
    pub score: f32,
    /// Whether it is there only because it is next to one that fits.
    pub adjacent: bool,
    /// Whether the block had room for it.
    pub used: bool,
    /// What was said.
    pub text: String,
}

impl Recalled {
    /// How many passages are in the block.
    #[must_use]
    pub fn passages_used(&self) -> usize {
        self.passages.iter().filter(|passage| passage.used).count()
    }

    /// Why there is no block, where there is none.
    #[must_use]
    pub fn why_nothing(&self) -> String {
        let (facts, passages, budget) = (self.facts.len(), self.passages.len(), self.budget);
        match facts + passages {
            _ if !is_query(&self.query) => {
                "a query of less than three letters, or two characters of \
                                            Chinese, recalls nothing"
                    .to_owned()
            }
            0 => {
                "nothing that was said fits well enough; a search shows what is nearest".to_owned()
            }
            _ => format!(
                "facts that fit: {facts}, passages: {passages}; none fits into {budget} tokens: give a \
                 larger budget"
            ),
        }
    }
}

impl Lookup {
    /// What memory would put into the request of a session that asks this.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub async fn recall(&self, asked: &RecallAsked<'_>) -> Result<Recalled> {
        let budget = asked.budget.unwrap_or(Tokens(self.config.hard_cap_tokens));
        let name = asked.session.unwrap_or_default();
        let across = asked.everywhere || self.config.cross_session;
        let mut memory = SessionMemory::new(self.memory.clone(), name, self.maker(name))
            .with_cross_session(across);
        if let Some(facts) = self.facts.clone() {
            memory = memory.with_facts(facts);
        }
        let request = RecallRequest {
            query: asked.query.to_owned(),
            now: asked.now,
            visible: HashSet::new(),
            min_score: self.config.auto_recall_min_score,
            passages: self.config.recall.passages as usize,
            facts: self.config.recall.facts as usize,
        };
        let found = match is_query(asked.query) {
            true => memory.recall(request).await?,
            false => Recollection::default(),
        };
        let block = build(&found.facts, &found.passages, budget, &self.counter());
        let used: HashSet<usize> =
            block.iter().flat_map(|block| block.passages.iter().copied()).collect();
        let facts = found.facts.into_iter().map(|fact| {
            let RecalledFact { kind, text, score, entries } = fact;
            RecalledFactReport { kind, text, score, entries }
        });
        let passages = found.passages.into_iter().enumerate().map(|(at, passage)| {
            let Passage { text, score, role, timestamp, session, entry, adjacent } = passage;
            let used = used.contains(&at);
            RecalledPassage { session, entry, role, timestamp, score, adjacent, used, text }
        });
        Ok(Recalled {
            agent: self.agent.to_string(),
            session: asked.session.map(str::to_owned),
            query: asked.query.to_owned(),
            budget,
            tokens: block.as_ref().map_or(Tokens::ZERO, |block| block.tokens),
            min_score: self.config.auto_recall_min_score,
            facts_used: block.as_ref().map_or(0, |block| block.facts),
            block: block.map(|block| block.text),
            facts: facts.collect(),
            passages: passages.collect(),
            warnings: found.warnings,
        })
    }
}
