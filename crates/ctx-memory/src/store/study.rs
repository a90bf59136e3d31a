//! Facts by a model, in what was archived.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::{Result, Role, SummaryModels, Timestamp};

use crate::Segment;
use crate::facts::{
    Cap, Extractor, Fact, FactQuery, FactStore, ModelExtractor, Purse, SOURCES_MAX, Said, Spent,
    is_injected,
};

/// So many messages wait to be shown to a model; the oldest go, in which rules have looked.
const WAITING: usize = 2_048;

/// So many facts that are known are shown with them.
const KNOWN: usize = 40;

/// So much of what was said is compared with what is known.
const COMPARED: ctx_core::Chars = ctx_core::Chars(4_000);

/// Models that look for facts, and what they may cost.
#[derive(Debug)]
pub(super) struct Study {
    models: SummaryModels,
    cap: Cap,
    purse: Purse,
    waiting: Mutex<VecDeque<Segment>>,
}

impl Study {
    /// `purse` is the file where all processes keep what was spent.
    pub(super) fn new(models: SummaryModels, cap: Cap, purse: Option<PathBuf>) -> Self {
        let purse = purse.map_or_else(|| Purse::Held(Mutex::default()), Purse::File);
        Self { models, cap, purse, waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a segment looked at by the next [`run`](Self::run), if it may hold facts.
    pub(super) fn push(&self, segment: &Segment) {
        let speaks = matches!(segment.role, Role::User | Role::Assistant | Role::Other(_));
        if speaks && !segment.content.trim().is_empty() && !is_injected(&segment.content) {
            let mut waiting = self.waiting();
            waiting.push_back(segment.clone());
            let spare = waiting.len().saturating_sub(WAITING);
            waiting.drain(..spare);
        }
    }

    /// Looks for facts in what waits, as far as the budget goes, and gives what a person should be
    /// told. Who drops it loses what one call looks at.
    pub(super) async fn run(
        &self,
        facts: &Mutex<FactStore>,
        session: Option<&str>,
        now: Timestamp,
    ) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let next: Vec<Segment> = {
                let mut waiting = self.waiting();
                let most = waiting.len().min(SOURCES_MAX);
                waiting.drain(..most).collect()
            };
            if next.is_empty() {
                return told;
            }
            match self.look(&next, facts, session, now, &mut told).await {
                Ok(true) => {}
                // Another process is at it, or the day's budget is spent: rules have looked.
                Ok(false) => {
                    self.waiting().clear();
                    return told;
                }
                Err(error) => {
                    told.push(format!("facts were not learned: {error}"));
                    return told;
                }
            }
        }
    }

    /// Shows some messages to a model, and learns what it says of them. False where none may be
    /// asked now.
    async fn look(
        &self,
        segments: &[Segment],
        facts: &Mutex<FactStore>,
        session: Option<&str>,
        now: Timestamp,
        told: &mut Vec<String>,
    ) -> Result<bool> {
        let Some(mut spending) = self.purse.open(now)? else { return Ok(false) };
        let budget = spending.budget();
        if !budget.allows(&self.cap, 0.0) {
            told.push(
                "the day's budget for finding facts is spent (memoryContext.knowledgeBudget): \
                 rules find them"
                    .into(),
            );
            return Ok(false);
        }
        // A process that is killed while it waits has paid for a call all the same.
        spending.note(Spent { calls: 1, usd: 0.0 })?;
        let ids: Vec<String> = segments.iter().map(|segment| segment.id.to_string()).collect();
        let said: Vec<Said<'_>> =
            segments.iter().zip(&ids).map(|(segment, id)| Said::of(segment, id)).collect();
        let known = known(facts, &said, session);
        let extractor = ModelExtractor::new(self.models.clone(), budget, self.cap);
        let found = extractor.extract(&said, &known).await?;
        let Spent { calls, usd } = found.spent;
        spending.note(Spent { calls: calls.saturating_sub(1), usd })?;
        let refused = {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, refused) = facts.accept(found.proposals)?;
            facts.learn(found.candidates)?;
            refused
        };
        for warning in found.warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
        let refused: Vec<_> = found.refused.iter().chain(&refused).collect();
        if let Some(first) = refused.first() {
            told.push(format!(
                "{} of what a model said of facts was not taken: {first}",
                refused.len()
            ));
        }
        Ok(true)
    }
}

/// The facts that are most like what was said.
fn known(facts: &Mutex<FactStore>, said: &[Said<'_>], session: Option<&str>) -> Vec<Fact> {
    let mut text = String::new();
    for one in said {
        text.push_str(ctx_core::text::head(one.text, COMPARED));
        text.push('\n');
    }
    let text = ctx_core::text::head(&text, COMPARED);
    let query = FactQuery { session, limit: KNOWN, ..FactQuery::new(text) };
    let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
    facts.search(&query).into_iter().map(|hit| hit.fact.clone()).collect()
}
