//! The sums of one candidate, which can be added over sessions.

use ctx_core::{Timestamp, Tokens};
use ctx_model::Prices;

use super::report::{EvalRow, RowKind};
use super::share::Share;
use crate::RecordedTotals;
use crate::cache::{PromptCache, usage};
use crate::calibration::median;

/// The number of unsupported claims that a row names.
const INVENTED_NAMED: usize = 20;

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(super) fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    fn join(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
}

/// The sums of one candidate.
#[derive(Clone, Debug, Default)]
pub(super) struct ArmTotals {
    /// The sums. [`Self::row`] adds figures that are computed from the other fields.
    pub(super) row: EvalRow,
    cached: u64,
    ratio: Mean,
    pub(super) errors: Vec<f64>,
    pub(super) coverage: Share,
    cache: PromptCache,
    prices: Option<Prices>,
}

impl ArmTotals {
    pub(super) fn new(name: impl Into<String>, kind: RowKind, prices: Option<Prices>) -> Self {
        let cost_usd = prices.map(|_| 0.0);
        let row = EvalRow { name: name.into(), kind, cost_usd, ..EvalRow::default() };
        Self { row, prices, ..Self::default() }
    }

    /// Adds a request of `sent` tokens. It shares the first `prefix` tokens with the previous one.
    pub(super) fn request(
        &mut self,
        sent: Tokens,
        prefix: Tokens,
        now: Option<Timestamp>,
        answer: u64,
    ) {
        let cached = self.cache.request(prefix.min(sent), now);
        self.row.requests += 1;
        self.row.sent_tokens += sent.get();
        self.cached += cached.get();
        self.charge(sent, cached, answer);
    }

    /// Adds a summary call. Its beginning differs from the requests, so no cache applies.
    pub(super) fn summary_call(&mut self, input: Tokens, output: Tokens) {
        self.row.calls += 1;
        self.charge(input, Tokens::ZERO, output.get());
    }

    /// Adds a cut that left `after` of `before` tokens.
    pub(super) fn cut(&mut self, before: Tokens, after: Tokens) {
        self.row.cuts += 1;
        self.ratio.add(f64::from(after.0) / f64::from(before.0.max(1)));
    }

    /// Adds unsupported claims of a summary.
    pub(super) fn unsupported(&mut self, texts: &[String]) {
        self.row.ungrounded += texts.len() as u64;
        self.name_invented(texts);
    }

    fn name_invented(&mut self, texts: &[String]) {
        let room = INVENTED_NAMED.saturating_sub(self.row.invented.len());
        self.row.invented.extend(texts.iter().take(room).cloned());
    }

    /// Adds the actual cost of model calls, if a receipt has it.
    pub(super) fn add_cost(&mut self, usd: Option<f64>) {
        if let (Some(usd), Some(cost)) = (usd, &mut self.row.cost_usd) {
            *cost += usd;
        }
    }

    fn charge(&mut self, prompt: Tokens, cached: Tokens, output: u64) {
        if let (Some(prices), Some(cost)) = (self.prices, &mut self.row.cost_usd) {
            *cost += prices.cost(&usage(prompt, cached, output)).0;
        }
    }

    /// Replaces counted sums by the provider's figures.
    pub(super) fn report(&mut self, reported: &RecordedTotals) {
        self.row.requests = reported.requests;
        self.row.sent_tokens = reported.tokens;
        self.cached = reported.cached_tokens;
        self.row.cost_usd = reported.cost_usd;
    }

    /// Adds another session's sums. If one has no price, the sum of costs is `None`.
    pub(super) fn join(&mut self, other: &Self) {
        self.row.requests += other.row.requests;
        self.row.sent_tokens += other.row.sent_tokens;
        self.cached += other.cached;
        self.row.cost_usd = self.row.cost_usd.zip(other.row.cost_usd).map(|(one, two)| one + two);
        self.ratio.join(other.ratio);
        self.row.calls += other.row.calls;
        self.errors.extend(&other.errors);
        self.coverage += other.coverage;
        self.row.ungrounded += other.row.ungrounded;
        self.name_invented(&other.row.invented);
        self.row.wedges += other.row.wedges;
        self.row.cuts += other.row.cuts;
        self.row.needed_next += other.row.needed_next;
        self.row.block_tokens += other.row.block_tokens;
        self.row.failed = self.row.failed.take().or_else(|| other.row.failed.clone());
    }

    pub(super) fn row(&self) -> EvalRow {
        let sent = self.row.sent_tokens;
        EvalRow {
            prefix_reuse: (sent > 0).then(|| self.cached as f64 / sent as f64),
            compression_ratio: self.ratio.get(),
            estimate_error: median(self.errors.clone()),
            coverage: self.coverage.share(),
            ..self.row.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_sessions_equal_the_sums_of_all_requests() {
        let prices = Prices { input: 1.0, output: 2.0, cache_read: None, cache_write: None };
        let session = |sent| {
            let mut sums = ArmTotals::new("a", RowKind::Preset, Some(prices));
            sums.request(Tokens(sent), Tokens::ZERO, None, 10);
            sums.request(Tokens(sent * 2), Tokens(sent), None, 10);
            sums.cut(Tokens(1_000), Tokens(sent / 10));
            sums.errors.push(f64::from(sent) / 10_000.0);
            sums
        };
        let (mut one, two) = (session(2_000), session(4_000));
        one.join(&two);
        let row = one.row();
        assert_eq!((row.requests, row.sent_tokens, row.cuts), (4, 18_000, 2));
        assert_eq!(row.prefix_reuse, Some(6_000.0 / 18_000.0));
        assert!((row.compression_ratio.unwrap() - 0.3).abs() < 1e-9);
        assert!((row.estimate_error.unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(row.coverage, None);
        assert!(row.cost_usd.unwrap() > 0.0);

        one.join(&ArmTotals::new("a", RowKind::Preset, None));
        assert_eq!(one.row().cost_usd, None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
