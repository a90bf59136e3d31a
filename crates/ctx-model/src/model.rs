//! A row of the catalogue.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use ctx_core::{Tokens, Usage};
use serde::{Deserialize, Serialize};

/// An amount of US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(pub f64);

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Usd {
    /// Writes two decimals, or four below ten cents: `$42.60`, `$0.0031`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.0 != 0.0 && self.0.abs() < 0.1 { 4 } else { 2 };
        f.pad(&format!("${:.decimals$}", self.0))
    }
}

/// Token prices in US dollars per million.
///
/// A missing cache price means that the provider does not bill such tokens separately: they cost as
/// much as fresh input. OpenAI, for example, charges nothing extra for cache writes; the tokens
/// written are billed as ordinary input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// Prompt tokens neither read from nor written to the cache.
    pub input: f64,
    /// Answer tokens, including reasoning.
    pub output: f64,
    /// Prompt tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to the cache with the provider's shortest lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Anthropic's price of a one-hour cache write, as a multiple of the input price
/// (<https://docs.claude.com/en/docs/build-with-claude/prompt-caching>).
const HOUR_WRITE: f64 = 2.0;

impl Prices {
    /// Returns the price per million tokens read from the cache.
    pub fn cache_read(&self) -> f64 {
        self.cache_read.unwrap_or(self.input)
    }

    /// Returns the price per million tokens written to the cache.
    pub fn cache_write(&self) -> f64 {
        self.cache_write.unwrap_or(self.input)
    }

    /// Adjusts the prices for this share of one-hour cache writes.
    #[must_use]
    pub fn with_hour_writes(self, share: f64) -> Self {
        if share <= 0.0 {
            return self;
        }
        let mixed = self.cache_write() * (1.0 - share) + self.input * HOUR_WRITE * share;
        Self { cache_write: Some(mixed), ..self }
    }

    /// Returns the cost of a request with this usage.
    pub fn cost(&self, usage: &Usage) -> Usd {
        let hour = usage.cache_write_hour.min(usage.cache_write);
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read()),
            (usage.cache_write - hour, self.cache_write()),
            (hour, self.input * HOUR_WRITE),
        ];
        Usd(parts.into_iter().map(|(tokens, price)| tokens as f64 * price).sum::<f64>() / 1e6)
    }

    /// Whether every price is a non-negative number.
    pub(crate) fn is_valid(&self) -> bool {
        [self.input, self.output, self.cache_read(), self.cache_write()]
            .into_iter()
            .all(|price| price.is_finite() && price >= 0.0)
    }
}

/// The generation of a row's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vintage {
    /// The numbers come from the documents that ctx was built from, and never change.
    Seed,
    /// The numbers follow the provider's price list.
    Today,
}

/// A model: its window, its prices, and their source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Model {
    /// The provider's own id, for example `claude-sonnet-4-5`.
    pub id: String,
    /// The name people use.
    pub name: String,
    /// The maker of the model, which may differ from the provider that serves it.
    pub provider: String,
    /// Other ids for the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The context window: prompt and answer together.
    pub window: Tokens,
    /// The part of the window that works well in practice, if the source states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<Tokens>,
    /// The longest answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Tokens>,
    /// Token prices. If long prompts cost more, these are the lower prices.
    pub prices: Prices,
    /// The source of the numbers.
    pub source: String,
    /// The date of the source, as `YYYY-MM-DD`.
    pub date: String,
    /// The generation of the numbers.
    pub vintage: Vintage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_prices_fall_back_to_the_input_price() {
        let prices = Prices { input: 2.0, output: 8.0, cache_read: Some(0.5), cache_write: None };
        let usage = Usage {
            input: 100_000,
            output: 10_000,
            cache_read: 1_000_000,
            cache_write: 200_000,
            ..Usage::default()
        };
        let Usd(cost) = prices.cost(&usage);
        assert!((cost - (0.2 + 0.08 + 0.5 + 0.4)).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn amounts_read_well() {
        assert_eq!(Usd(42.6).to_string(), "$42.60");
        assert_eq!(Usd(0.00314).to_string(), "$0.0031");
        assert_eq!(Usd(0.0).to_string(), "$0.00");
        assert_eq!([Usd(1.5), Usd(0.25)].into_iter().sum::<Usd>(), Usd(1.75));
    }

    #[test]
    fn negative_and_infinite_prices_are_not_prices() {
        let prices = Prices { input: 1.0, output: 1.0, cache_read: None, cache_write: None };
        assert!(prices.is_valid());
        assert!(!Prices { output: -0.1, ..prices }.is_valid());
        assert!(!Prices { cache_write: Some(f64::NAN), ..prices }.is_valid());
    }
}
