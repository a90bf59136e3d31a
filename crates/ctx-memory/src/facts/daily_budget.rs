//! The daily budget for extracting facts.

use ctx_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// `agents.defaults.memoryContext.knowledgeBudget`: the daily limit for models that extract facts.
/// A day begins at midnight UTC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DailyBudget {
    /// The maximum cost per day in USD. Default: 0.5.
    #[schemars(range(min = 0))]
    pub usd_per_day: f64,
    /// The maximum number of calls per day. Default: 100.
    pub calls_per_day: u32,
}

impl Default for DailyBudget {
    fn default() -> Self {
        Self { usd_per_day: 0.5, calls_per_day: 100 }
    }
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spent {
    /// Model calls, including failed ones.
    pub calls: u32,
    /// Their known cost.
    pub usd: f64,
}

/// What was spent on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DailySpend {
    /// The day, counted from the epoch.
    pub(crate) day: i64,
    /// What was spent on it.
    pub(crate) spent: Spent,
}

impl DailySpend {
    /// Returns what was spent on the day of `now`: a new day starts at zero. A clock that was set
    /// back does not start a new day.
    #[must_use]
    pub(crate) fn at(self, now: Timestamp) -> Self {
        let day = now.0.div_euclid(DAY);
        if day > self.day { Self { day, spent: Spent::default() } } else { self }
    }

    /// Whether one more call with this expected cost is allowed.
    pub(crate) fn allows(&self, cap: &DailyBudget, usd: f64) -> bool {
        // A negative or NaN price counts as 0: it neither raises the limit nor blocks every call.
        let total = self.spent.usd + usd.max(0.0);
        self.spent.calls < cap.calls_per_day && total <= cap.usd_per_day
    }

    /// Replaces the expected cost of a call by its actual cost.
    pub(crate) fn correct(&mut self, expected: f64, paid: f64) {
        let usd = self.spent.usd + paid.max(0.0) - expected.max(0.0);
        if usd.is_finite() {
            self.spent.usd = usd.max(0.0);
        }
    }

    /// Adds spending.
    pub(crate) fn add(&mut self, spent: Spent) {
        self.spent.calls = self.spent.calls.saturating_add(spent.calls);
        if spent.usd.is_finite() {
            self.spent.usd += spent.usd.max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_resets_the_budget_and_a_clock_set_back_does_not() {
        let cap = DailyBudget { usd_per_day: 1.0, calls_per_day: 2 };
        let mut budget = DailySpend::default().at(Timestamp(5 * DAY));
        assert!(budget.allows(&cap, 1.0) && !budget.allows(&cap, 1.1));
        budget.add(Spent { calls: 1, usd: 0.9 });
        assert!(budget.at(Timestamp(5 * DAY + 9)).allows(&cap, 0.1));
        assert!(!budget.at(Timestamp(2 * DAY)).allows(&cap, 0.2));
        assert!(budget.at(Timestamp(6 * DAY)).allows(&cap, 0.2));
        budget.add(Spent { calls: 1, usd: f64::NAN });
        assert!(!budget.allows(&cap, 0.0), "calls are counted without a price");
        budget.correct(0.5, 0.1);
        assert!((budget.spent.usd - 0.5).abs() < 1e-9 && budget.spent.calls == 2);
        budget.correct(9.0, f64::NAN);
        assert_eq!(budget.spent.usd, 0.0, "it is never less than nothing");
    }
}
