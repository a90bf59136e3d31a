//! A simulated provider's prompt cache.

use std::time::Duration;

use ctx_core::{Timestamp, Tokens};

/// A cached prefix lives this long after it was last used (Anthropic's default).
pub const CACHE_TTL: Duration = Duration::from_secs(5 * 60);

/// Shorter prefixes are not cached.
pub const CACHE_MIN_TOKENS: Tokens = Tokens(1_024);

/// Remembers when the previous request was, and so whether its prefix is still cached.
#[derive(Clone, Debug, Default)]
pub struct PromptCache {
    last: Option<Timestamp>,
    used: bool,
}

impl PromptCache {
    /// A request at `now` that shares `prefix` tokens with the one before: how many of them are
    /// read from the cache. Where the transcript has no times, the cache is taken to be warm.
    pub fn request(&mut self, prefix: Tokens, now: Option<Timestamp>) -> Tokens {
        let warm = match (self.last, now) {
            (Some(last), Some(now)) => {
                u128::try_from(now.0.saturating_sub(last.0)).unwrap_or(0) <= CACHE_TTL.as_millis()
            }
            _ => true,
        };
        let cached =
            if self.used && warm && prefix >= CACHE_MIN_TOKENS { prefix } else { Tokens::ZERO };
        self.used = true;
        self.last = now.or(self.last);
        cached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_cached_when_it_is_long_enough_and_young_enough() {
        let mut cache = PromptCache::default();
        let at = |minutes: i64| Some(Timestamp(minutes * 60_000));
        assert_eq!(cache.request(Tokens(5_000), at(0)), Tokens(0));
        assert_eq!(cache.request(Tokens(5_000), at(4)), Tokens(5_000));
        assert_eq!(cache.request(Tokens(1_023), at(5)), Tokens(0));
        assert_eq!(cache.request(Tokens(6_000), at(10)), Tokens(6_000));
        assert_eq!(cache.request(Tokens(6_000), at(16)), Tokens(0));
        assert_eq!(cache.request(Tokens(6_000), None), Tokens(6_000));
    }
}
