//! The signs of the components of vectors, as bits. Two vectors differ in the fewer signs the smaller
//! the angle between them is (random hyperplane hashing), and bits are compared 64 at a time.

use std::thread::available_parallelism;

/// Up to this many vectors, a query is compared with each: it takes no longer than finding candidates.
pub const EXACT_UP_TO: usize = 2 * CANDIDATES;

/// The minimum number of candidates.
const CANDIDATES: usize = 2_048;

/// Of more vectors, more are candidates: one in 128.
const ONE_IN: usize = 128;

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

    pub(super) fn add(&mut self, vector: &[f32]) {
        self.bits.extend(of(vector));
    }

    /// Returns the slots of the vectors whose signs differ least from those of a query: at least
    /// `CANDIDATES`, if there are that many, or one in `ONE_IN`. Of those that differ equally, all
    /// are returned.
    pub(super) fn nearest(&self, query: &[f32]) -> Vec<usize> {
        let query: Vec<u64> = of(query).collect();
        let vectors = self.bits.len() / self.words.max(1);
        let wanted = CANDIDATES.max(vectors / ONE_IN);
        let mut differences = vec![0; vectors];
        let threads =
            (vectors / PER_THREAD + 1).min(available_parallelism().map_or(1, usize::from));
        let share = vectors.div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let parts = differences.chunks_mut(share);
            let mut parts = parts.zip(self.bits.chunks((share * self.words).max(1)));
            let first = parts.next();
            for (differences, bits) in parts {
                let query = &query;
                scope.spawn(move || compare(bits, query, differences));
            }
            if let Some((differences, bits)) = first {
                compare(bits, &query, differences);
            }
        });
        let mut counts = vec![0; 64 * self.words + 1];
        differences.iter().for_each(|difference| counts[usize::from(*difference)] += 1);
        let mut within = 0;
        let most = counts.iter().position(|count| {
            within += count;
            within >= wanted
        });
        let most = most.unwrap_or(counts.len());
        let near = |(_, apart): &(usize, u16)| usize::from(*apart) <= most;
        (0..).zip(differences).filter(near).map(|(slot, _)| slot).collect()
    }
}

/// Counts the signs that differ between a query and each vector.
fn compare(bits: &[u64], query: &[u64], differences: &mut [u16]) {
    for (bits, difference) in bits.chunks_exact(query.len().max(1)).zip(differences) {
        let apart: u32 = bits.iter().zip(query).map(|(a, b)| (a ^ b).count_ones()).sum();
        *difference = u16::try_from(apart).unwrap_or(u16::MAX);
    }
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
        let same = |slot: &usize| of(&all[*slot]).eq(of(&all[PER_THREAD + 9]));
        assert!(near.len() >= CANDIDATES && near.is_sorted());
        assert_eq!(
            near.iter().filter(|slot| same(slot)).count(),
            (0..all.len()).filter(same).count()
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
