//! The caps derived from a configuration and a context window.

use ctx_core::{Chars, Tokens};

use crate::Config;

/// The minimum of every cap, so that each notice fits under it with any counter.
pub(crate) const MIN_CHARS: Chars = Chars(256);
const MIN_TOKENS: Tokens = Tokens(256);

/// The caps for one context window. `None` means no cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimits {
    /// The cap on one result.
    pub single: Option<ResultLimit>,
    /// A result larger than this is replaced by a placeholder, unless its call is in progress.
    pub preemptive: Option<Tokens>,
    /// The cap on all results together.
    pub aggregate: Option<Tokens>,
}

/// The cap on one result, notice included. Both limits apply: OpenClaw's cap counts characters, and
/// the token cap bounds a text with more tokens per character than that cap assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimit {
    /// In characters.
    pub chars: Chars,
    /// In tokens.
    pub tokens: Tokens,
}

impl ResultLimits {
    /// Returns the caps of `config` for a window.
    ///
    /// # Example
    ///
    /// ```
    /// use ctx_core::{Chars, Tokens};
    /// use ctx_tool_guard::{Config, ResultLimits};
    ///
    /// let limits = ResultLimits::new(&Config::default(), Tokens(200_000));
    /// assert_eq!(limits.single.map(|s| s.chars), Some(Chars(64_000)));
    /// assert_eq!(limits.aggregate, Some(Tokens(100_000)));
    /// ```
    #[must_use]
    pub fn new(config: &Config, window: Tokens) -> Self {
        let share = |share: f64| (share > 0.0).then(|| window.scale(share).max(MIN_TOKENS));
        let single = share(config.max_context_share).map(|tokens| {
            let most = config.max_result_chars.unwrap_or_else(|| most_chars(window));
            let chars = Chars(tokens.0.saturating_mul(4)).min(most).max(MIN_CHARS);
            ResultLimit { chars, tokens }
        });
        let four = single.map_or(Tokens::ZERO, |s| s.chars_as_tokens(4));
        Self {
            single,
            preemptive: share(config.preemptive_share),
            aggregate: share(config.aggregate_share).map(|tokens| tokens.max(four)),
        }
    }
}

impl ResultLimits {
    /// Returns the cap for a result in progress that takes more than `most`: the cap for any single
    /// result, and at most `most`. A past result of that size is replaced instead.
    pub(crate) fn limit_within(&self, most: Tokens) -> ResultLimit {
        match self.single {
            Some(cap) => ResultLimit { tokens: cap.tokens.min(most), ..cap },
            None => ResultLimit { chars: Chars(u32::MAX), tokens: most },
        }
    }
}

impl ResultLimit {
    fn chars_as_tokens(self, times: u32) -> Tokens {
        Tokens(self.chars.0.div_ceil(4).saturating_mul(times))
    }
}

/// Returns OpenClaw's cap on a result, in characters, for a window of the given size.
fn most_chars(window: Tokens) -> Chars {
    Chars(match window.0 {
        200_000.. => 64_000,
        100_000.. => 32_000,
        _ => 16_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(window: u32) -> (u32, u32, u32) {
        let limits = ResultLimits::new(&Config::default(), Tokens(window));
        (limits.single.unwrap().chars.0, limits.preemptive.unwrap().0, limits.aggregate.unwrap().0)
    }

    #[test]
    fn caps_follow_the_window() {
        assert_eq!(caps(0), (1_024, 256, 1_024));
        assert_eq!(caps(8_000), (9_600, 4_000, 9_600));
        assert_eq!(caps(16_000), (16_000, 8_000, 16_000));
        assert_eq!(caps(99_999), (16_000, 49_999, 49_999));
        assert_eq!(caps(100_000), (32_000, 50_000, 50_000));
        assert_eq!(caps(200_000), (64_000, 100_000, 100_000));
        assert_eq!(caps(u32::MAX).0, 64_000);
    }

    #[test]
    fn a_share_of_zero_is_no_cap() {
        let no_share = Config {
            max_context_share: 0.0,
            preemptive_share: 0.0,
            aggregate_share: 0.0,
            ..Config::default()
        };
        let limits = ResultLimits::new(&no_share, Tokens(131_072));
        assert_eq!(limits, ResultLimits { single: None, preemptive: None, aggregate: None });
        let nonsense = Config { max_context_share: f64::NAN, ..Config::default() };
        assert_eq!(ResultLimits::new(&nonsense, Tokens(16_000)).single, None);
    }
}
