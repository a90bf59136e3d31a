//! Extracts facts from archived messages by a model.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{Result, Role, SummaryModels, Timestamp};

use crate::facts::{
    DailyBudget, Fact, FactQuery, FactStore, ModelExtractor, SOURCES_MAX, SourceMessage,
    SpendGuard, SpendLedger,
};
use ctx_search::{Segment, spawn_blocking};
use ctx_text::without_injected;

/// The maximum number of messages waiting for a model; the oldest are dropped. Rules have already
/// processed them.
const WAITING: usize = 2_048;

/// The number of known facts shown with them.
const KNOWN: usize = 40;

/// The number of characters of the messages that are compared with known facts.
const COMPARED: ctx_core::Chars = ctx_core::Chars(4_000);

/// Models that extract facts, and their budget.
#[derive(Debug)]
pub(super) struct FactExtraction {
    models: SummaryModels,
    cap: DailyBudget,
    ledger: Arc<SpendLedger>,
    waiting: Mutex<VecDeque<Segment>>,
}

impl FactExtraction {
    /// `ledger` is the file in which all processes record their spending.
    pub(super) fn new(models: SummaryModels, cap: DailyBudget, ledger: Option<PathBuf>) -> Self {
        let ledger =
            ledger.map_or_else(|| SpendLedger::InMemory(Mutex::default()), SpendLedger::File);
        Self { models, cap, ledger: Arc::new(ledger), waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Segment>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a segment for the next [`run`](Self::run), if it may hold facts.
    pub(super) fn push(&self, segment: &Segment) {
        let speaks = matches!(segment.role, Role::User | Role::Assistant | Role::Other(_));
        if speaks && !without_injected(&segment.content).is_empty() {
            let mut waiting = self.waiting();
            waiting.push_back(segment.clone());
            let spare = waiting.len().saturating_sub(WAITING);
            waiting.drain(..spare);
        }
    }

    /// Extracts facts from queued messages within the budget, and returns warnings for the user.
    /// While another run is active, the messages keep waiting. If the future is dropped, the
    /// messages of one call are lost, but its cost is recorded.
    pub(super) async fn run(
        &self,
        facts: &Arc<Mutex<FactStore>>,
        session: Option<&str>,
        now: Timestamp,
    ) -> Vec<String> {
        let mut told = Vec::new();
        while !self.waiting().is_empty() {
            let spending = match self.ledger.open(now) {
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

    /// Shows some messages to a model, and learns the facts it returns.
    async fn look(
        &self,
        segments: &[Segment],
        spending: SpendGuard,
        (facts, session): (&Arc<Mutex<FactStore>>, Option<&str>),
        told: &mut Vec<String>,
    ) -> Result<()> {
        let said: Vec<_> = segments.iter().map(SourceMessage::of).collect();
        let known = known(facts.clone(), &said, session).await?;
        let extractor = ModelExtractor::new(self.models.clone(), self.cap).with_spending(spending);
        let found = extractor.extract(&said, &known).await;
        let (store, proposals, candidates) = (facts.clone(), found.proposals, found.candidates);
        let learn = move || -> Result<_> {
            let pen = FactStore::pen_of(&store)?;
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, refused) = store.accept_under(&pen, proposals)?;
            store.learn_under(&pen, candidates)?;
            Ok(refused)
        };
        let refused = spawn_blocking("ctx-memory-facts", learn).await??;
        for warning in found.warnings {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
        let refused: Vec<_> = found.rejected.iter().chain(&refused).collect();
        if let Some(first) = refused.first() {
            told.push(format!(
                "{} of what a model said of facts was not taken: {first}",
                refused.len()
            ));
        }
        Ok(())
    }
}

/// Returns the known facts most similar to the messages.
async fn known(
    facts: Arc<Mutex<FactStore>>,
    said: &[SourceMessage<'_>],
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
    spawn_blocking("ctx-memory-facts", search).await
}
