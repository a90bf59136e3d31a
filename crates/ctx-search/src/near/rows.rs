//! Vectors by row.

use pulp::{Arch, Simd, WithSimd};

use super::quantise::{bytes, factor, fixed, product};
use super::signs::Signs;
use crate::lexical::Scores;

/// No vector.
const NONE: u32 = u32::MAX;

/// The number of vectors per block. A block is never moved when more are added.
const BLOCK: usize = 1_024;

/// Vectors of equal dimensions, one per row.
#[derive(Debug)]
pub struct Rows {
    dimensions: usize,
    /// Consecutive vectors, [`BLOCK`] at a time.
    blocks: Vec<Vec<i8>>,
    /// By vector: what turns a product with it into a cosine.
    factors: Vec<f32>,
    signs: Signs,
    /// The row of each vector.
    rows: Vec<u32>,
    /// The vector of each row.
    slots: Vec<u32>,
}

/// A query vector, normalised and in the stored format.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    vector: Vec<f32>,
    fixed: Vec<i16>,
}

impl Direction {
    /// Normalises a vector; returns `None` if it is all zeros or contains a NaN or infinity.
    pub fn of(vector: &[f32]) -> Option<Self> {
        let vector = unit(vector)?;
        let fixed = vector.iter().map(|x| fixed(*x)).collect();
        Some(Self { vector, fixed })
    }

    /// The vector, normalised.
    pub fn as_slice(&self) -> &[f32] {
        &self.vector
    }
}

/// Normalises a vector; `None` if it has no direction.
fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    let shorter = 1.0 / length;
    let all = || vector.iter().map(|x| (f64::from(*x) * shorter) as f32).collect();
    length.is_normal().then(all)
}

impl Rows {
    /// Returns an empty set of vectors with these dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            blocks: Vec::new(),
            factors: Vec::new(),
            signs: Signs::new(dimensions),
            rows: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// The number of vectors.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The length of each vector.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Whether a row has a vector.
    pub fn has(&self, row: u32) -> bool {
        self.slot(row).is_some()
    }

    /// Returns the slot of a row's vector.
    fn slot(&self, row: u32) -> Option<usize> {
        self.slots.get(row as usize).filter(|slot| **slot != NONE).map(|slot| *slot as usize)
    }

    /// Sets the vector of a row. An existing vector stays; a vector with other dimensions or
    /// without a direction is rejected.
    pub fn add(&mut self, row: u32, vector: &[f32]) -> bool {
        if vector.len() != self.dimensions || self.has(row) || row == NONE {
            return false;
        }
        let Some(kept) = bytes(vector) else { return false };
        if self.rows.len().is_multiple_of(BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK * self.dimensions));
        }
        if let Some(block) = self.blocks.last_mut() {
            let start = block.len();
            block.extend(kept);
            self.factors.push(factor(&block[start..]));
        }
        self.signs.add(vector);
        if self.slots.len() <= row as usize {
            self.slots.resize(row as usize + 1, NONE);
        }
        self.slots[row as usize] = self.rows.len() as u32;
        self.rows.push(row);
        true
    }

    /// Returns the row of a vector.
    fn row(&self, slot: usize) -> Option<u32> {
        self.rows.get(slot).copied()
    }

    /// Returns rows whose vectors may be near the query, unordered: all up to 2,048, at least 2,048
    /// of more, and at least one in 128.
    pub fn near(&self, query: &Direction) -> impl Iterator<Item = u32> {
        self.signs.nearest(&query.vector).into_iter().filter_map(|slot| self.row(slot as usize))
    }

    /// Returns the vector in a slot.
    fn vector(&self, slot: usize) -> Option<&[i8]> {
        let start = (slot % BLOCK) * self.dimensions;
        self.blocks.get(slot / BLOCK)?.get(start..start + self.dimensions)
    }

    /// Sets the cosines of all rows.
    pub fn all(&self, query: &Direction, cosines: &mut Scores) {
        let slots: Vec<u32> = (0..self.rows.len() as u32).collect();
        self.compare(&slots, query, cosines);
    }

    /// Sets the cosines of some rows.
    pub fn some(
        &self,
        rows: impl IntoIterator<Item = u32>,
        query: &Direction,
        cosines: &mut Scores,
    ) {
        let slots = rows.into_iter().filter_map(|row| self.slot(row)).map(|slot| slot as u32);
        self.compare(&slots.collect::<Vec<_>>(), query, cosines);
    }

    /// Sets the cosines of the vectors in some slots. It is not generic: as part of another crate it
    /// would be optimised as that one is.
    fn compare(&self, slots: &[u32], query: &Direction, cosines: &mut Scores) {
        Arch::new().dispatch(Cosines { of: self, slots, query, cosines });
    }

    /// Returns the cosine of a query and the vector in a slot.
    #[inline(always)]
    pub(super) fn cosine(&self, slot: usize, query: &Direction) -> Option<f32> {
        Some(product(self.vector(slot)?, &query.fixed) as f32 * self.factors.get(slot)?)
    }
}

/// A comparison of vectors with a query, compiled for each kind of processor.
struct Cosines<'a> {
    of: &'a Rows,
    slots: &'a [u32],
    query: &'a Direction,
    cosines: &'a mut Scores,
}

impl WithSimd for Cosines<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for slot in self.slots {
            let Some(row) = self.of.row(*slot as usize) else { continue };
            if !self.cosines.has(row)
                && let Some(cosine) = self.of.cosine(*slot as usize, self.query)
            {
                self.cosines.set(row, cosine);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(rows: usize) -> Scores {
        let mut scores = Scores::default();
        scores.reset(rows);
        scores
    }

    #[test]
    fn only_rows_with_a_vector_have_a_cosine() {
        let mut rows = Rows::new(20);
        let mut along = |row: u32, at: usize| {
            let mut vector = [0.0; 20];
            vector[at] = 2.0;
            vector[0] += 2.0;
            rows.add(row, &vector)
        };
        assert!(along(2, 0) && along(0, 19));
        let mut query = [0.0; 20];
        query[0] = 7.0;
        let mut found = room(4);
        rows.all(&Direction::of(&query).unwrap(), &mut found);
        assert!((found.get(2) - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.get(0) - 0.5f32.sqrt()).abs() < 1e-3, "{found:?}");
        assert!(!found.has(1) && !found.has(3));
        assert!(rows.has(2) && !rows.has(1) && !rows.has(u32::MAX));
    }

    #[test]
    fn vectors_without_direction_or_of_another_length_are_refused() {
        let mut rows = Rows::new(2);
        for vector in [
            &[0.0, 0.0][..],
            &[f32::NAN, 1.0],
            &[f32::INFINITY, 1.0],
            &[1.0],
            &[1.0, 0.0, 0.0],
            &[],
        ] {
            assert!(!rows.add(0, vector), "{vector:?}");
        }
        assert!(rows.add(0, &[1e-30, 0.0]) && !rows.add(0, &[1.0, 0.0]));
        assert_eq!(rows.count(), 1);
    }

    #[test]
    fn vectors_of_several_blocks_keep_their_rows() {
        let mut rows = Rows::new(3);
        (0..BLOCK as u32 + 5).for_each(|row| assert!(rows.add(row, &[1.0, row as f32, 0.0])));
        (2_000..4_000).for_each(|row| assert!(rows.add(row, &[0.0, 0.0, 1.0])));
        assert_eq!((rows.count(), rows.row(BLOCK + 5)), (BLOCK + 2_005, Some(2_000)));
        let mut some = room(4_000);
        rows.some([3_999, 1_500, 9_999], &Direction::of(&[0.0, 0.0, 1.0]).unwrap(), &mut some);
        assert!((some.get(3_999) - 1.0).abs() < 1e-3 && !some.has(0));
    }
}
