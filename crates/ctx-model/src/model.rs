//! One row of the catalogue.

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
    /// Two decimals, or four below ten cents: `$42.60`, `$0.0031`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = if self.0 != 0.0 && self.0.abs() < 0.1 { 4 } else { 2 };
        f.pad(&format!("${:.decimals$}", self.0))
    }
}

/// What tokens cost, in US dollars per million.
///
/// A cache price that is absent means that the provider does not bill such tokens apart: they cost
/// what fresh input costs. OpenAI, for one, charges nothing extra for filling its cache, but the
/// tokens that fill it are ordinary input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// Prompt tokens that touch no cache.
    pub input: f64,
    /// Tokens of the answer, reasoning included.
    pub output: f64,
    /// Prompt tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to the cache, kept for the provider's shortest time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Anthropic's price of a token that is kept for an hour, in those of a fresh one
/// (<https://docs.claude.com/en/docs/build-with-claude/prompt-caching>).
const HOUR_WRITE: f64 = 2.0;

impl Prices {
    /// The price of a million tokens read from the cache.
    #[must_use]
    pub fn cache_read(&self) -> f64 {
        self.cache_read.unwrap_or(self.input)
    }

    /// The price of a million tokens written to the cache.
    #[must_use]
    pub fn cache_write(&self) -> f64 {
        self.cache_write.unwrap_or(self.input)
    }

    /// These prices, where that share of what is written to the cache is kept for an hour.
    #[must_use]
    pub fn with_hour_writes(self, share: f64) -> Self {
        if share <= 0.0 {
            return self;
        }
        let mixed = self.cache_write() * (1.0 - share) + self.input * HOUR_WRITE * share;
        Self { cache_write: Some(mixed), ..self }
    }

    /// What a request with this usage costs.
    #[must_use]
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

    /// Whether every price is a number, and none negative.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        [self.input, self.output, self.cache_read(), self.cache_write()]
            .into_iter()
            .all(|price| price.is_finite() && price >= 0.0)
    }
}

/// Which of two generations of facts a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vintage {
    /// The row's numbers are those of the documents ctx was built from. They stay as they are.
    Seed,
    /// The row follows the provider's price list.
    Today,
}

/// A model: its window and its prices, and who says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Model {
    /// The provider's own id, for example `claude-sonnet-4-5`.
    pub id: String,
    /// The name people use.
    pub name: String,
    /// Who makes it, not who serves it.
    pub provider: String,
    /// Other ids for the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The context window: prompt and answer together.
    pub window: Tokens,
    /// How much of the window works well in practice, where the source says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usable: Option<Tokens>,
    /// The longest answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<Tokens>,
    /// What its tokens cost. Where a provider raises prices for long prompts, these are the lower.
    pub prices: Prices,
    /// Where the numbers come from.
    pub source: String,
    /// When the source said so, as `YYYY-MM-DD`.
    pub date: String,
    /// Which generation of facts this is.
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
