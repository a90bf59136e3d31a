//! The usage that the provider reported for a recorded session.

use std::collections::HashMap;

use ctx_core::{EntryId, Result, Tokens, Usage};
use ctx_model::{Catalogue, Prices};
use ctx_session::{ReportedAnswer, Transcript};
use serde::Serialize;

/// The usage that the provider reported for each answer of a session.
#[derive(Clone, Debug, Default)]
pub struct RecordedUsage {
    answers: Vec<ReportedAnswer>,
    by_entry: HashMap<EntryId, usize>,
}

/// Sums of the reported usage over all requests of a session. Requests of abandoned branches are
/// included, because they were paid too. Requests of subagents are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedTotals {
    /// Requests with a report.
    pub requests: usize,
    /// Prompt tokens: fresh, read from the cache and written to it.
    pub tokens: u64,
    /// Prompt tokens that were read from the cache.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// The largest prompt.
    pub largest: u64,
    /// Prompts over the limit that the session is measured against.
    pub over_limit: usize,
    /// How often the agent itself compacted the history.
    pub compactions: usize,
    /// The cost at today's prices, in USD; null if a price is not known.
    pub cost_usd: Option<f64>,
}

impl RecordedUsage {
    /// Reads the usage of the answers of a transcript.
    ///
    /// # Errors
    ///
    /// Errors of reading a message.
    pub fn of(transcript: &Transcript) -> Result<Self> {
        let answers = transcript.reported()?.to_vec();
        let places = answers.iter().enumerate().map(|(at, answer)| (answer.entry.clone(), at));
        Ok(Self { by_entry: places.collect(), answers })
    }

    /// Returns the usage reported with the answer `entry`.
    pub fn usage(&self, entry: &EntryId) -> Option<Usage> {
        Some(self.answers.get(*self.by_entry.get(entry)?)?.usage)
    }

    /// Returns the prompt tokens reported with the answer `entry`.
    pub fn prompt(&self, entry: &EntryId) -> Option<u64> {
        self.usage(entry).map(|usage| usage.prompt())
    }

    /// Returns the cost of the answer `entry` in USD, priced as in [`totals`](Self::totals).
    pub fn cost(&self, entry: &EntryId, default: (Option<&str>, Option<Prices>)) -> Option<f64> {
        cost_of(self.answers.get(*self.by_entry.get(entry)?)?, default)
    }

    /// Returns the share of cache writes that the provider kept for an hour.
    pub fn hour_writes(&self) -> f64 {
        let sum = |tokens: fn(&Usage) -> u64| {
            self.answers.iter().map(|answer| tokens(&answer.usage) as f64).sum::<f64>()
        };
        sum(|usage| usage.cache_write_hour.min(usage.cache_write)) / sum(|u| u.cache_write).max(1.0)
    }

    /// Returns the sums; `None` if nothing was reported. Each answer is priced by its own model;
    /// the model of `default` has the prices of `default`, and so do answers whose model is not known.
    #[must_use]
    pub fn totals(
        &self,
        limit: Tokens,
        compactions: usize,
        default: (Option<&str>, Option<Prices>),
    ) -> Option<RecordedTotals> {
        let mut totals = RecordedTotals { compactions, ..RecordedTotals::default() };
        let mut cost = Some(0.0);
        for answer in &self.answers {
            let (usage, prompt) = (answer.usage, answer.usage.prompt());
            totals.requests += 1;
            totals.tokens += prompt;
            totals.cached_tokens += usage.cache_read;
            totals.output_tokens += usage.output.min(Usage::MAX);
            totals.largest = totals.largest.max(prompt);
            totals.over_limit += usize::from(prompt > limit.get());
            cost = cost.zip(cost_of(answer, default)).map(|(sum, cost)| sum + cost);
        }
        (totals.requests > 0).then_some(RecordedTotals { cost_usd: cost, ..totals })
    }
}

fn cost_of(
    answer: &ReportedAnswer,
    (model, prices): (Option<&str>, Option<Prices>),
) -> Option<f64> {
    let own = answer.model.as_deref().filter(|own| Some(*own) != model);
    let catalogued = own.and_then(|own| Catalogue::embedded().find(own));
    let prices = catalogued.map(|model| model.prices).or(prices)?;
    Some(prices.cost(&answer.usage).0)
}
