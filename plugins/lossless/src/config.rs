//! The configuration, and the sizes derived from it.

use ctx_engine_sdk::{Error, Result};
use serde::Deserialize;

/// Minimum size of a summary, enough for its first line and some content.
const LEAST_SUMMARY: u64 = 160;

/// `plugins.engines.lossless.config`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Config {
    /// The share of the budget for the newest messages, which are folded only if they alone exceed
    /// the budget. Default 0.3.
    pub(crate) fresh_tail: f64,
    /// The share of the budget at which folding starts. Default 0.75.
    pub(crate) threshold: f64,
    /// The maximum share of the budget for all summaries. Default 0.25.
    pub(crate) summaries: f64,
    /// The tokens of the messages that a leaf covers; fewer if the budget is small. Default 8000.
    pub(crate) leaf_tokens: u64,
    /// Maximum number of adjacent summaries of a level. This number is folded into one. Default 4.
    pub(crate) fanout: usize,
    /// Maximum number of calls of the host's model during one call of the engine. Beyond it, and
    /// without a model, summaries are excerpts. Default 4.
    pub(crate) model_calls: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fresh_tail: 0.3,
            threshold: 0.75,
            summaries: 0.25,
            leaf_tokens: 8_000,
            fanout: 4,
            model_calls: 4,
        }
    }
}

impl Config {
    /// Parses the user's configuration.
    pub(crate) fn read(json: &serde_json::Value) -> Result<Self> {
        if json.is_null() {
            return Ok(Self::default());
        }
        let config = Self::deserialize(json).map_err(|error| {
            Error::failed(format!("invalid configuration of lossless: {error}"))
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &str, hint: &str| Err(Error::failed(what).hint(hint));
        let shares = [self.fresh_tail, self.threshold, self.summaries];
        if shares.iter().any(|share| !(*share > 0.0 && *share <= 1.0)) {
            return refuse(
                "'freshTail', 'threshold' and 'summaries' must be above 0 and at most 1",
                "omit them for the defaults 0.3, 0.75 and 0.25",
            );
        }
        if self.fresh_tail + self.summaries >= self.threshold {
            return refuse(
                "the sum of 'freshTail' and 'summaries' must be below 'threshold'",
                "otherwise every request is folded; try 0.3, 0.25 and 0.75",
            );
        }
        if self.fanout < 2 {
            return refuse("'fanout' must be at least 2", "omit it for the default 4");
        }
        Ok(())
    }

    /// Returns the sizes for a budget of `room` tokens.
    pub(crate) fn sizes(&self, room: u64) -> Sizes {
        let summary = (room / 64).clamp(LEAST_SUMMARY, 1_000);
        Sizes {
            room,
            threshold: part(room, self.threshold),
            tail: part(room, self.fresh_tail),
            summaries: part(room, self.summaries),
            summary,
            leaf: self.leaf_tokens.min(room / 12).max(summary.saturating_mul(4)),
            root: (room / 16).clamp(2 * LEAST_SUMMARY, 4_000),
        }
    }
}

/// Sizes in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// The whole budget.
    pub(crate) room: u64,
    /// Folding starts here.
    pub(crate) threshold: u64,
    /// The newest messages, which are folded last.
    pub(crate) tail: u64,
    /// All summaries together.
    pub(crate) summaries: u64,
    /// One summary.
    pub(crate) summary: u64,
    /// The messages covered by a leaf.
    pub(crate) leaf: u64,
    /// The summary of a compaction.
    pub(crate) root: u64,
}

/// Returns a share of a number of tokens.
pub(crate) fn part(tokens: u64, share: f64) -> u64 {
    (tokens as f64 * share) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_values_are_refused_with_a_valid_one() {
        for (json, named) in [
            (json!({"freshtail": 0.3}), "freshtail"),
            (json!({"threshold": 2}), "'threshold'"),
            (json!({"freshTail": 0.6}), "'freshTail'"),
            (json!({"fanout": 1}), "'fanout'"),
            (json!("all"), "configuration of lossless"),
        ] {
            let error = Config::read(&json).unwrap_err();
            assert!(error.message.contains(named), "{json}: {error}");
        }
        assert_eq!(Config::read(&json!({})), Ok(Config::default()));
        assert_eq!(Config::read(&json!(null)), Ok(Config::default()));
    }

    #[test]
    fn a_leaf_is_much_smaller_than_the_messages_it_covers() {
        for room in [0, 1, 500, 4_000, 32_000, 200_000, 2_000_000, u64::MAX] {
            let sizes = Config::default().sizes(room);
            assert!(sizes.leaf >= 4 * sizes.summary, "{room}: {sizes:?}");
        }
    }
}
