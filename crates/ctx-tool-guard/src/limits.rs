//! The caps that follow from a configuration and a window.

use ctx_core::{Chars, Tokens};

use crate::Config;

/// No cap is smaller, so that each notice fits under it by any counter.
pub(crate) const MIN_CHARS: Chars = Chars(256);
const MIN_TOKENS: Tokens = Tokens(256);

/// The caps for one window. An absent one does not bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What one result may measure.
    pub single: Option<Single>,
    /// A result larger than this is replaced unseen, unless its call is in progress.
    pub preemptive: Option<Tokens>,
    /// What all results together may measure.
    pub aggregate: Option<Tokens>,
}

/// What one result may measure, notice included. Both bind: OpenClaw's cap counts characters, and
/// tokens keep a text that is denser than it assumes inside its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single {
    /// In characters.
    pub chars: Chars,
    /// In tokens.
    pub tokens: Tokens,
}

impl Limits {
    /// The caps of `config` for a window.
    ///
    /// # Example
    ///
    /// ```
    /// use ctx_core::{Chars, Tokens};
    /// use ctx_tool_guard::{Config, Limits};
    ///
    /// let limits = Limits::new(&Config::default(), Tokens(200_000));
    /// assert_eq!(limits.single.map(|s| s.chars), Some(Chars(64_000)));
    /// assert_eq!(limits.aggregate, Some(Tokens(100_000)));
    /// ```
    #[must_use]
    pub fn new(config: &Config, window: Tokens) -> Self {
        let share = |share: f64| (share > 0.0).then(|| window.scale(share).max(MIN_TOKENS));
        let single = share(config.max_context_share).map(|tokens| {
            let most = config.max_result_chars.unwrap_or_else(|| most_chars(window));
            let chars = Chars(tokens.0.saturating_mul(4)).min(most).max(MIN_CHARS);
            Single { chars, tokens }
        });
        let four = single.map_or(Tokens::ZERO, |s| s.chars_as_tokens(4));
        Self {
            single,
            preemptive: share(config.preemptive_share),
            aggregate: share(config.aggregate_share).map(|tokens| tokens.max(four)),
        }
    }
}

impl Limits {
    /// The cap for a result in progress that takes more than `most`, where one of the past would be
    /// replaced unseen: that for any single result, and never more than `most`.
    pub(crate) fn single_within(&self, most: Tokens) -> Single {
        match self.single {
            Some(cap) => Single { tokens: cap.tokens.min(most), ..cap },
            None => Single { chars: Chars(u32::MAX), tokens: most },
        }
    }
}

impl Single {
    fn chars_as_tokens(self, times: u32) -> Tokens {
        Tokens(self.chars.0.div_ceil(4).saturating_mul(times))
    }
}

/// OpenClaw's live cap by size of the window.
fn most_chars(window: Tokens) -> Chars {
    Chars(match window.0 {
        200_000.. => 64_000,
        100_000.. => 32_000,
        _ => 16_000,
    })
}

#[cfg(test)]
mod tests {
    use ctx_core::Profile;

    use super::*;

    fn caps(window: u32) -> (u32, u32, u32) {
        let limits = Limits::new(&Config::default(), Tokens(window));
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
    fn a_share_of_nothing_is_no_cap() {
        let limits = Limits::new(&Config::for_profile(Profile::Copaw), Tokens(131_072));
        assert_eq!(limits, Limits { single: None, preemptive: None, aggregate: None });
        let nonsense = Config { max_context_share: f64::NAN, ..Config::default() };
        assert_eq!(Limits::new(&nonsense, Tokens(16_000)).single, None);
    }
}
