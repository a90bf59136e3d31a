//! The figures of a group, and their sums.

use ctx_layers::compaction::Receipt;
use serde::Serialize;

use super::Origin;

/// The figures of a group. Tokens and dollars are those of answered requests, without the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The number of requests.
    pub requests: u64,
    /// Requests that the provider refused or did not answer.
    pub failed: u64,
    /// Tokens of what the client sent. Simulated: of what the agent sent, as the provider reported,
    /// else of the full history.
    pub tokens_before: u64,
    /// Tokens of what ctx sent, or would have sent.
    pub tokens_after: u64,
    /// The difference of the two; negative if ctx added more than it removed.
    pub tokens_saved: i64,
    /// Requests with a size that the provider reported: `tokensAfter` if measured, `tokensBefore` if
    /// simulated. ctx counted the others.
    pub reported: u64,
    /// The difference in USD at the catalogue's prices, minus the cost of summaries; negative if ctx
    /// cost more. Null if no request has a price.
    pub saved_usd: Option<f64>,
    /// Requests that have a price.
    pub priced: u64,
    /// The share of the prompt that was read from the provider's cache, from 0 to 1; null if it is
    /// not reported.
    pub cache_hit_rate: Option<f64>,
    /// Requests that were larger than the window until ctx cut them.
    pub overflows_avoided: u64,
    /// Compactions, without undone ones.
    pub compactions: u64,
    /// The mean share of required facts that the compactions kept, from 0 to 1; null if none was
    /// audited.
    pub facts_kept: Option<f64>,
    /// Requests that the provider refused at first and answered after ctx cut them; null if
    /// simulated.
    pub recoveries: Option<u64>,
    /// Calls of `ctx_expand` and `ctx_recall` by the model; null if simulated.
    pub expansions: Option<u64>,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) before: u64,
    pub(super) after: u64,
    /// Tokens read from the cache, and the prompt that contained them.
    pub(super) cached: Option<(u64, u64)>,
    pub(super) is_reported: bool,
    pub(super) saved_usd: Option<f64>,
    pub(super) overflow_avoided: bool,
    pub(super) is_answered: bool,
}

/// Figures, and what their shares are made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    figures: Figures,
    cached: u64,
    prompt: u64,
    coverage: f64,
    audited: u64,
    recoveries: u64,
    expansions: u64,
}

impl Sums {
    pub(super) fn add(&mut self, request: &Request) {
        let figures = &mut self.figures;
        figures.requests += 1;
        if !request.is_answered {
            figures.failed += 1;
            return;
        }
        figures.tokens_before += request.before;
        figures.tokens_after += request.after;
        figures.reported += u64::from(request.is_reported);
        figures.overflows_avoided += u64::from(request.overflow_avoided);
        if let Some(saved) = request.saved_usd {
            *figures.saved_usd.get_or_insert_default() += saved;
            figures.priced += 1;
        }
        if let Some((cached, prompt)) = request.cached {
            self.cached += cached;
            self.prompt += prompt;
        }
    }

    pub(super) fn compacted(&mut self, receipt: Option<&Receipt>) {
        self.figures.compactions += 1;
        let Some(receipt) = receipt else { return };
        self.audited += 1;
        self.coverage += receipt.audit.coverage;
        if let Some(cost) = receipt.cost_usd {
            *self.figures.saved_usd.get_or_insert_default() -= cost;
        }
    }

    pub(super) fn recovered(&mut self, is_recovered: bool) {
        self.recoveries += u64::from(is_recovered);
    }

    pub(super) fn expanded(&mut self, calls: u32) {
        self.expansions += u64::from(calls);
    }

    pub(super) fn figures(&self, origin: Origin) -> Figures {
        let figures = self.figures.clone();
        let share = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let is_measured = origin == Origin::Measured;
        Figures {
            tokens_saved: figures.tokens_before.cast_signed() - figures.tokens_after.cast_signed(),
            cache_hit_rate: share(self.cached as f64, self.prompt),
            facts_kept: share(self.coverage, self.audited),
            recoveries: is_measured.then_some(self.recoveries),
            expansions: is_measured.then_some(self.expansions),
            ..figures
        }
    }
}
