//! Facts by a model, in what was archived.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{Result, Role, SummaryModels, Timestamp};

use crate::Segment;
use crate::apart::apart;
use crate::facts::{
    Cap, Extractor, Fact, FactQuery, FactStore, ModelExtractor, Purse, SOURCES_MAX, Said, Spending,
    is_injected,
};

/// So many messages wait to be shown to a model; the oldest go, in which rules have looked.
const WAITING: usize = 2_048;

/// So many facts that are known are shown with them.
const KNOWN: usize = 40;

/// So much of what was said is compared with what is known.
const COMPARED: ctx_core::Chars = ctx_core::Chars(4_000);

/// A call has so long: less than any host waits for all of it.
const DEADLINE: Duration = Duration::from_secs(90);

/// Models that look for facts, and what they may cost.
#[derive(Debug)]
pub(super) struct Study {
    models: SummaryModels,
    cap: Cap,
    purse: Arc<Purse>,
    waiting: Mutex<VecDeque<Segment>>,
}

impl Study {
    /// `purse` is the file where all processes keep what was spent.
    pub(super) fn new(models: SummaryModels, cap: Cap, purse: Option<PathBuf>) -> Self {
        let purse = purse.map_or_else(|| Purse::Held(Mutex::default()), Purse::File);
        Self { models, cap, purse: Arc::new(purse), waiting: Mutex::default() }
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
    /// told. While somebody else looks, what waits waits on. Who drops it loses what one call looks at;
    /// that it was paid for is known.
    pub(super) async fn run(
        &self,
        facts: &Arc<Mutex<FactStore>>,
        session: Option<&str>,
        now: Timestamp,
    ) -> Vec<String> {
        let mut told = Vec::new();
        while !self.waiting().is_empty() {
            let spending = match self.purse.open(now) {
                Ok(Some(spending)) => spending,
                Ok(None) => return told,
                Err(error) => {
                    told.push(format!("facts were not learned: {error}"));
                    return told;
                }
            };
            if !spending.budget().allows(&self.cap, 0.0) {
                told.push(
                    "the day's budget for finding facts is spent (memoryContext.knowledgeBudget): \
                     rules find them"
                        .into(),
                );
                self.waiting().clear();
                return told;
            }
            let next: Vec<Segment> = {
                let mut waiting = self.waiting();
                let most = waiting.len().min(SOURCES_MAX);
                waiting.drain(..most).collect()
            };
            if let Err(error) = self.look(&next, spending, (facts, session), &mut told).await {
                told.push(format!("facts were not learned: {error}"));
                return told;
            }
        }
        told
    }

    /// Shows some messages to a model, and learns what it says of them.
    async fn look(
        &self,
        segments: &[Segment],
        spending: Spending,
        (facts, session): (&Arc<Mutex<FactStore>>, Option<&str>),
        told: &mut Vec<String>,
    ) -> Result<()> {
        let ids: Vec<String> = segments.iter().map(|segment| segment.id.to_string()).collect();
        let said: Vec<Said<'_>> =
            segments.iter().zip(&ids).map(|(segment, id)| Said::of(segment, id)).collect();
        let known = known(facts.clone(), &said, session).await?;
        let budget = spending.budget();
        let extractor = ModelExtractor::new(self.models.clone(), budget, self.cap)
            .with_deadline(DEADLINE)
            .with_accounts(Arc::new(Mutex::new(spending)));
        let found = extractor.extract(&said, &known).await?;
        let (store, proposals, candidates) = (facts.clone(), found.proposals, found.candidates);
        let learn = move || -> Result<_> {
            let pen = FactStore::pen_of(&store)?;
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, refused) = store.accept_under(&pen, proposals)?;
            store.learn_under(&pen, candidates)?;
            Ok(refused)
        };
        let refused = apart("ctx-memory-facts", learn).await??;
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
        Ok(())
    }
}

/// The facts that are most like what was said.
async fn known(
    facts: Arc<Mutex<FactStore>>,
    said: &[Said<'_>],
    session: Option<&str>,
) -> Result<Vec<Fact>> {
    let mut text = String::new();
    for one in said {
        text.push_str(ctx_core::text::head(one.text, COMPARED));
        text.push('\n');
    }
    let session = session.map(str::to_owned);
    let search = move || {
        let text = ctx_core::text::head(&text, COMPARED);
        let query = FactQuery { session: session.as_deref(), limit: KNOWN, ..FactQuery::new(text) };
        let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.search(&query).into_iter().map(|hit| hit.fact.clone()).collect()
    };
    apart("ctx-memory-facts", search).await
}
