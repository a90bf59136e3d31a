//! When a compaction that is ready pays, although the provider's cache breaks for it.

use ctx_core::Tokens;
use ctx_model::Prices;

/// A compaction that could be applied to a request below the threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swap {
    /// The tokens by which requests become smaller.
    pub(super) saved: Tokens,
    /// The tokens of the smaller request that are written to the cache again: all of it but the
    /// system prompt and the tools.
    pub(super) rewritten: Tokens,
    /// The tokens that the request may still grow until the compaction is applied anyway.
    pub(super) left: Tokens,
    /// The mean growth of the conversation per request.
    pub(super) growth: Tokens,
}

impl Swap {
    /// Whether what later requests save is more than what the cache break costs now:
    ///
    /// ```text
    /// saved × price of a cached token × requests until the threshold
    ///     > rewritten × price of writing a token to the cache
    /// ```
    ///
    /// The number of requests is `left / growth`, rounded down. The price of writing depends on the
    /// lifetime of the cache ([`Prices::with_hour_writes`]). Never for a compaction that saves
    /// nothing, or a model that costs nothing.
    pub(super) fn pays(self, prices: Prices) -> bool {
        let requests = self.left.get() / self.growth.get().max(1);
        let tokens = |tokens: Tokens| tokens.get() as f64;
        let saving = tokens(self.saved) * prices.cache_read() * requests as f64;
        saving > tokens(self.rewritten) * prices.cache_write()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SONNET: Prices =
        Prices { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };

    const SWAP: Swap = Swap {
        saved: Tokens(60_000),
        rewritten: Tokens(40_000),
        left: Tokens(30_000),
        growth: Tokens(1_000),
    };

    #[test]
    fn it_pays_from_that_number_of_requests_on() {
        // 40,000 × 3.75 / (60,000 × 0.3) = 8.3 requests, and 13.3 with an hour's writes for 6.0.
        let pays = |left, prices| Swap { left: Tokens(left), ..SWAP }.pays(prices);
        assert!(!pays(8_999, SONNET) && pays(9_000, SONNET));
        let hour = SONNET.with_hour_writes(1.0);
        assert!(!pays(13_999, hour) && pays(14_000, hour));
        let free = Prices { input: 0.0, output: 0.0, cache_read: None, cache_write: None };
        assert!(!pays(30_000, free));
    }

    prop_compose! {
        fn swap()(n in prop::array::uniform3(0_u32..2_000_000), growth in 0_u32..50_000) -> Swap {
            let [saved, rewritten, left] = n.map(Tokens);
            Swap { saved, rewritten, left, growth: Tokens(growth) }
        }
    }

    prop_compose! {
        fn prices()(input in 0.0..100.0, read in 0.0..=1.0, write in 1.0..=2.0) -> Prices {
            let (cache_read, cache_write) = (Some(input * read), Some(input * write));
            Prices { input, output: input, cache_read, cache_write }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_swapped_that_saves_nothing(swap in swap(), prices in prices()) {
            let nothing = Swap { saved: Tokens::ZERO, ..swap };
            prop_assert!(!nothing.pays(prices));
        }

        #[test]
        fn what_pays_pays_too_if_it_saves_more_lasts_longer_or_writes_less(
            swap in swap(), prices in prices(), more in 0_u32..1_000_000,
        ) {
            let more = Tokens(more);
            let better = [
                Swap { saved: swap.saved + more, ..swap },
                Swap { left: swap.left + more, ..swap },
                Swap { growth: swap.growth - more, ..swap },
                Swap { rewritten: swap.rewritten - more, ..swap },
            ];
            prop_assert!(better.into_iter().all(|better| !swap.pays(prices) || better.pays(prices)));
        }
    }
}
