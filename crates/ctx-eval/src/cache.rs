//! A simulated provider's prompt cache.

use std::time::Duration;

use ctx_core::{Timestamp, Tokens, Usage};

/// The lifetime of a cached prefix after its last use (Anthropic's default).
pub(crate) const CACHE_TTL: Duration = Duration::from_secs(5 * 60);

/// Shorter prefixes are neither stored nor found.
pub(crate) const CACHE_MIN_TOKENS: Tokens = Tokens(1_024);

/// Remembers the time of the previous request, to know whether its prefix is still cached.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptCache {
    last: Option<Timestamp>,
    used: bool,
}

impl PromptCache {
    /// Records a request at `now` that shares `prefix` tokens with the previous one, and returns
    /// how many of them are read from the cache. If the transcript has no times, the cache counts
    /// as warm.
    pub(crate) fn request(&mut self, prefix: Tokens, now: Option<Timestamp>) -> Tokens {
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

/// Returns the usage that a provider would report for a prompt with `cached` cached tokens. The
/// rest is written to the cache, unless the prompt is too short for it.
pub(crate) fn usage(prompt: Tokens, cached: Tokens, output: u64) -> Usage {
    let fresh = (prompt - cached).get();
    let (input, cache_write) = if prompt < CACHE_MIN_TOKENS { (fresh, 0) } else { (0, fresh) };
    Usage { input, cache_read: cached.get(), cache_write, output, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_cached_if_it_is_long_enough_and_recent_enough() {
        let mut cache = PromptCache::default();
        let at = |minutes: i64| Some(Timestamp(minutes * 60_000));
        assert_eq!(cache.request(Tokens(5_000), at(0)), Tokens(0));
        assert_eq!(cache.request(Tokens(5_000), at(4)), Tokens(5_000));
        assert_eq!(cache.request(Tokens(1_023), at(5)), Tokens(0));
        assert_eq!(cache.request(Tokens(6_000), at(10)), Tokens(6_000));
        assert_eq!(cache.request(Tokens(6_000), at(16)), Tokens(0));
        assert_eq!(cache.request(Tokens(6_000), None), Tokens(6_000));
    }

    #[test]
    fn a_prompt_too_short_for_the_cache_is_plain_input() {
        let parts = |prompt, cached| {
            let usage = usage(Tokens(prompt), Tokens(cached), 7);
            (usage.input, usage.cache_read, usage.cache_write, usage.output)
        };
        assert_eq!(parts(1_023, 0), (1_023, 0, 0, 7));
        assert_eq!(parts(1_024, 0), (0, 0, 1_024, 7));
        assert_eq!(parts(9_000, 5_000), (0, 5_000, 4_000, 7));
    }
}
