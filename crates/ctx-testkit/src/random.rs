//! Pseudo-random numbers.

use std::ops::RangeInclusive;

/// Pseudo-random numbers that are the same for the same seed, on every machine and in every
/// version: SplitMix64 (Steele, Lea and Flood, 2014).
///
/// ```
/// use ctx_testkit::Random;
///
/// let (mut one, mut other) = (Random::seeded(7), Random::seeded(7));
/// assert_eq!(one.next(), other.next());
/// assert!(one.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it needs no Option")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in that range. The small bias of the remainder does not matter here.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let (low, high) = (*range.start() as u64, *range.end() as u64);
        let span = high.saturating_sub(low).saturating_add(1);
        (low + self.next() % span) as usize
    }

    /// Returns a number less than `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.within(0..=n.saturating_sub(1))
    }

    /// Returns true once in `times` calls, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.within(1..=times.max(1)) == 1
    }

    /// Returns a random element; the default value if there are none.
    pub fn pick<T: Copy + Default>(&mut self, of: &[T]) -> T {
        let last = of.len().saturating_sub(1);
        of.get(self.within(0..=last)).copied().unwrap_or_default()
    }

    /// Returns the index of a random element, chosen by weight.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
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

    /// Shuffles the elements.
    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.within(0..=at));
        }
    }
}
