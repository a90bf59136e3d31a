//! Numbers that look random and are the same for the same seed, on every machine, for ever.

use std::ops::RangeInclusive;

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in that range. What little the remainder favours small numbers does no harm here.
    pub(super) fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let (low, high) = (*range.start() as u64, *range.end() as u64);
        let span = high.saturating_sub(low).saturating_add(1);
        (low + self.next() % span) as usize
    }

    /// True once in so many times.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.within(1..=times.max(1)) == 1
    }

    /// One of them; the default of its type where there are none.
    pub(super) fn pick<T: Copy + Default>(&mut self, of: &[T]) -> T {
        let last = of.len().saturating_sub(1);
        of.get(self.within(0..=last)).copied().unwrap_or_default()
    }

    /// The place of one of them, chosen by weight.
    pub(super) fn weighted(&mut self, weights: &[usize]) -> usize {
        let sum: usize = weights.iter().sum();
        let mut left = self.within(0..=sum.saturating_sub(1));
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        0
    }

    /// Puts them in another order.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.within(0..=at));
        }
    }
}
