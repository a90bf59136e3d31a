//! The signs of the components of vectors, as bits. Two vectors differ in the fewer signs the smaller
//! the angle between them is (random hyperplane hashing), and bits are compared 64 at a time.

use std::panic::resume_unwind;
use std::thread::{ScopedJoinHandle, available_parallelism};

use pulp::{Arch, Simd, WithSimd};

/// Up to this many vectors, a query is compared with each: it takes no longer than finding candidates.
pub const EXACT_UP_TO: usize = 2 * CANDIDATES;

/// The minimum number of candidates.
const CANDIDATES: usize = 2_048;

/// Of more vectors, more are candidates: one in 128.
const ONE_IN: usize = 128;

/// The number of vectors that are compared before the nearest of them are kept.
const BLOCK: usize = 1_024;

/// A thread compares a query with this many vectors, or more, in about a millisecond.
const PER_THREAD: usize = 250_000;

/// The signs of vectors of equal length, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Signs {
    /// The number of words per vector.
    words: usize,
    bits: Vec<u64>,
}

impl Signs {
    pub(super) fn new(dimensions: usize) -> Self {
        Self { words: dimensions.div_ceil(64), bits: Vec::new() }
    }

    /// Returns the signs of vectors with these dimensions, by their words.
    pub(super) fn kept(dimensions: usize, bits: Vec<u64>) -> Self {
        Self { bits, ..Self::new(dimensions) }
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.bits
    }

    pub(super) fn add(&mut self, vector: &[f32]) {
        self.bits.extend(of(vector));
    }

    /// Returns the slots of the vectors whose signs differ least from those of a query, in order: at
    /// least `CANDIDATES`, if there are that many, or one in `ONE_IN`. Of those that differ equally,
    /// all are returned.
    pub(super) fn nearest(&self, query: &[f32]) -> Vec<u32> {
        let query: Vec<u64> = of(query).collect();
        let vectors = self.bits.len() / self.words.max(1);
        let wanted = CANDIDATES.max(vectors / ONE_IN);
        let threads =
            (vectors / PER_THREAD + 1).min(available_parallelism().map_or(1, usize::from));
        let share = vectors.div_ceil(threads).max(1);
        let nearest = |(bits, first): (&[u64], u32)| Nearest::of(bits, &query, wanted, first);
        let found = std::thread::scope(|scope| {
            let firsts = (0u32..).step_by(share);
            let mut parts = self.bits.chunks((share * self.words).max(1)).zip(firsts);
            let own = parts.next();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || nearest(part))).collect();
            let joined = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            let own = own.map_or_else(|| Nearest::new(&query, wanted), nearest);
            others.into_iter().map(joined).fold(own, Nearest::and)
        });
        found.into_slots()
    }
}

/// The vectors that differ least from a query, of those that were compared with it.
struct Nearest {
    wanted: usize,
    /// Slots, and in how many signs each differs. Some differ in more than `most`.
    found: Vec<(u32, u16)>,
    /// How many vectors differ in each number of signs.
    counts: Vec<usize>,
    /// At least `wanted` vectors differ in at most this many signs, or all do.
    most: usize,
}

impl Nearest {
    fn new(query: &[u64], wanted: usize) -> Self {
        let counts = vec![0; 64 * query.len() + 1];
        Self { wanted, found: Vec::with_capacity(wanted), most: counts.len(), counts }
    }

    /// Compares a query with vectors, the first of which has the slot `first`.
    fn of(bits: &[u64], query: &[u64], wanted: usize, first: u32) -> Self {
        let mut nearest = Self::new(query, wanted);
        let (mut differences, arch) = ([0; BLOCK], Arch::new());
        let blocks = bits.chunks((BLOCK * query.len()).max(1));
        for (block, first) in blocks.zip((first..).step_by(BLOCK)) {
            let vectors = block.len() / query.len().max(1);
            let differences = &mut differences[..vectors];
            arch.dispatch(Compare { bits: block, query, differences });
            nearest.add(differences, first);
        }
        nearest
    }

    fn add(&mut self, differences: &[u16], first: u32) {
        differences.iter().for_each(|apart| self.counts[usize::from(*apart)] += 1);
        self.narrow();
        let near = |(_, apart): &(u32, u16)| usize::from(*apart) <= self.most;
        self.found.extend((first..).zip(differences.iter().copied()).filter(near));
    }

    /// Updates `most`: the more vectors were compared, the fewer differences are enough.
    fn narrow(&mut self) {
        let mut within = 0;
        let enough = self.counts.iter().position(|count| {
            within += count;
            within >= self.wanted
        });
        self.most = enough.unwrap_or(self.counts.len());
    }

    /// Adds vectors with higher slots.
    fn and(mut self, other: Self) -> Self {
        self.found.extend(other.found);
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
        self.narrow();
        self
    }

    fn into_slots(self) -> Vec<u32> {
        let near = self.found.into_iter().filter(|(_, apart)| usize::from(*apart) <= self.most);
        near.map(|(slot, _)| slot).collect()
    }
}

/// A comparison of the signs of vectors with those of a query, compiled for each kind of processor.
struct Compare<'a> {
    bits: &'a [u64],
    query: &'a [u64],
    differences: &'a mut [u16],
}

impl WithSimd for Compare<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        // Loops of known length are unrolled: 384, 512, 768 and 1,024 dimensions.
        match self.query.len() {
            6 => self.each::<6>(),
            8 => self.each::<8>(),
            12 => self.each::<12>(),
            16 => self.each::<16>(),
            length => {
                let vectors = self.bits.chunks_exact(length.max(1));
                for (bits, to) in vectors.zip(self.differences) {
                    *to = differences(bits, self.query);
                }
            }
        }
    }
}

impl Compare<'_> {
    #[inline(always)]
    fn each<const WORDS: usize>(self) {
        let (Some(query), (vectors, _)) = (self.query.first_chunk(), self.bits.as_chunks()) else {
            return;
        };
        for (bits, to) in vectors.iter().zip(self.differences) {
            *to = differences::<[u64; WORDS]>(bits, query);
        }
    }
}

/// Counts the signs that differ.
#[inline(always)]
fn differences<V: AsRef<[u64]> + ?Sized>(one: &V, other: &V) -> u16 {
    let both = one.as_ref().iter().zip(other.as_ref());
    let differ: u32 = both.map(|(a, b)| (a ^ b).count_ones()).sum();
    u16::try_from(differ).unwrap_or(u16::MAX)
}

/// Returns the signs of a vector: a bit is set if the component is positive.
fn of(vector: &[f32]) -> impl Iterator<Item = u64> {
    vector.chunks(64).map(|part| {
        let bits = part.iter().zip(0..).map(|(x, at)| u64::from(*x > 0.0) << at);
        bits.fold(0, |word, bit| word | bit)
    })
}

#[cfg(test)]
mod tests {
    use crate::near::{Direction, Rows};

    use super::*;

    /// Pseudo-random numbers from -0.5 to 0.5, the same each time.
    fn noise(seed: &mut u64) -> f32 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 40) as f32) / ((1u64 << 24) as f32) - 0.5
    }

    /// Returns vectors around the centres of topics, and a query near the first centre.
    fn rows(count: u32, dimensions: usize, topics: u32, spread: f32) -> (Rows, Direction) {
        let mut seed = 7;
        let centres: Vec<Vec<f32>> =
            (0..topics).map(|_| (0..dimensions).map(|_| noise(&mut seed)).collect()).collect();
        let mut near = |centre: &[f32]| -> Vec<f32> {
            centre.iter().map(|x| x + spread * noise(&mut seed)).collect()
        };
        let query = Direction::of(&near(&centres[0])).unwrap();
        let mut rows = Rows::new(dimensions);
        for row in 0..count {
            assert!(rows.add(row, &near(&centres[(row % topics) as usize])));
        }
        (rows, query)
    }

    fn found(rows: &Rows, query: &Direction) -> f32 {
        let mut all: Vec<_> =
            (0..rows.count()).map(|slot| (rows.cosine(slot, query).unwrap(), slot)).collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        let near: Vec<u32> = rows.near(query).collect();
        all[..20].iter().filter(|(_, slot)| near.contains(&(*slot as u32))).count() as f32 / 20.0
    }

    #[test]
    fn near_vectors_are_among_the_candidates() {
        let (rows, query) = rows(8_000, 100, 200, 0.6);
        assert_eq!(found(&rows, &query), 1.0);
        let near = rows.near(&query).count();
        assert!((CANDIDATES..3_000).contains(&near), "{near}");
    }

    #[test]
    fn most_are_found_even_if_vectors_have_no_structure() {
        let (rows, query) = rows(8_000, 384, 8_000, 1.0);
        assert!(found(&rows, &query) >= 0.8);
    }

    #[test]
    fn threads_share_many_vectors() {
        let (mut signs, mut seed) = (Signs::new(8), 7);
        let mut vector = || -> Vec<f32> { (0..8).map(|_| noise(&mut seed)).collect() };
        let all: Vec<Vec<f32>> = (0..2 * PER_THREAD + 3).map(|_| vector()).collect();
        all.iter().for_each(|vector| signs.add(vector));
        let near = signs.nearest(&all[PER_THREAD + 9]);
        let same = |slot: &u32| of(&all[*slot as usize]).eq(of(&all[PER_THREAD + 9]));
        assert!(near.len() >= CANDIDATES && near.is_sorted());
        assert_eq!(
            near.iter().filter(|slot| same(slot)).count(),
            (0..all.len() as u32).filter(same).count()
        );
    }

    #[test]
    fn all_are_candidates_if_there_are_few_or_if_all_are_equal() {
        let (few, query) = rows(300, 7, 10, 0.5);
        assert_eq!(few.near(&query).count(), 300);
        let mut equal = Rows::new(64);
        (0..5_000).for_each(|row| assert!(equal.add(row, &[1.0; 64])));
        let query = Direction::of(&[1.0; 64]).unwrap();
        assert_eq!(equal.near(&query).count(), 5_000);
        assert_eq!(Rows::new(8).near(&query).count(), 0);
    }
}
