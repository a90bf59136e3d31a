//! Vectors by row.

use std::sync::Arc;

use super::quantise::{fixed, product};
use crate::lexical::Scores;

/// No vector.
const NONE: u32 = u32::MAX;

/// The number of vectors per block. Full blocks never change, so a graph can be built from them
/// concurrently.
const BLOCK: usize = 1_024;

/// Vectors of equal dimensions, one per row. They are normalised, so that a dot product is a
/// cosine.
#[derive(Clone, Debug)]
pub struct Rows {
    dimensions: usize,
    /// Consecutive vectors, [`BLOCK`] at a time.
    blocks: Vec<Arc<Vec<i16>>>,
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
        let vector: Vec<f32> = unit(vector)?.collect();
        let fixed = vector.iter().map(|x| fixed(*x)).collect();
        Some(Self { vector, fixed })
    }

    /// The vector, normalised.
    pub fn as_slice(&self) -> &[f32] {
        &self.vector
    }

    /// Returns the cosine to a vector of a [`Rows`].
    pub(super) fn cosine(&self, vector: &[i16]) -> f32 {
        product(vector, &self.fixed)
    }
}

/// Normalises a vector; `None` if it has no direction.
fn unit(vector: &[f32]) -> Option<impl Iterator<Item = f32>> {
    let mut squares = [0f64; 8];
    for part in vector.chunks(8) {
        for (sum, x) in squares.iter_mut().zip(part) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    let length = squares.iter().sum::<f64>().sqrt();
    let shorter = 1.0 / length;
    length.is_normal().then(|| vector.iter().map(move |x| (f64::from(*x) * shorter) as f32))
}

impl Rows {
    /// Returns an empty set of vectors with these dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self { dimensions, blocks: Vec::new(), rows: Vec::new(), slots: Vec::new() }
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
    pub fn slot(&self, row: u32) -> Option<usize> {
        self.slots.get(row as usize).filter(|slot| **slot != NONE).map(|slot| *slot as usize)
    }

    /// Sets the vector of a row. An existing vector stays; a vector with other dimensions or
    /// without a direction is rejected.
    pub fn add(&mut self, row: u32, vector: &[f32]) -> bool {
        if vector.len() != self.dimensions || self.has(row) || row == NONE {
            return false;
        }
        let Some(vector) = unit(vector) else { return false };
        if self.rows.len().is_multiple_of(BLOCK) {
            self.blocks.push(Arc::new(Vec::with_capacity(BLOCK * self.dimensions)));
        }
        if let Some(block) = self.blocks.last_mut() {
            Arc::make_mut(block).extend(vector.map(fixed));
        }
        if self.slots.len() <= row as usize {
            self.slots.resize(row as usize + 1, NONE);
        }
        self.slots[row as usize] = self.rows.len() as u32;
        self.rows.push(row);
        true
    }

    /// Returns the row of a vector.
    pub fn row(&self, slot: usize) -> Option<u32> {
        self.rows.get(slot).copied()
    }

    /// Returns the vector in a slot.
    pub(crate) fn vector(&self, slot: usize) -> Option<&[i16]> {
        let start = (slot % BLOCK) * self.dimensions;
        self.blocks.get(slot / BLOCK)?.get(start..start + self.dimensions)
    }

    /// Sets the cosines of the rows whose vectors are in `first` and later slots.
    pub fn all_from(&self, first: usize, query: &Direction, cosines: &mut Scores) {
        (first..self.rows.len()).for_each(|slot| self.set(slot, query, cosines));
    }

    /// Sets the cosines of some rows.
    pub fn some(
        &self,
        rows: impl IntoIterator<Item = u32>,
        query: &Direction,
        cosines: &mut Scores,
    ) {
        for row in rows {
            if let Some(slot) = self.slot(row).filter(|_| !cosines.has(row)) {
                self.set(slot, query, cosines);
            }
        }
    }

    fn set(&self, slot: usize, query: &Direction, cosines: &mut Scores) {
        if let (Some(vector), Some(&row)) = (self.vector(slot), self.rows.get(slot)) {
            cosines.set(row, query.cosine(vector));
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
        rows.all_from(0, &Direction::of(&query).unwrap(), &mut found);
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
    fn a_copy_stays_as_it_was_when_more_is_added() {
        let mut rows = Rows::new(3);
        (0..BLOCK as u32 + 5).for_each(|row| assert!(rows.add(row, &[1.0, row as f32, 0.0])));
        let copy = rows.clone();
        (2_000..4_000).for_each(|row| assert!(rows.add(row, &[0.0, 0.0, 1.0])));
        assert_eq!((copy.count(), rows.count()), (BLOCK + 5, BLOCK + 2_005));
        assert_eq!(copy.vector(BLOCK + 4), rows.vector(BLOCK + 4));
        assert_eq!((copy.vector(BLOCK + 5), rows.row(BLOCK + 5)), (None, Some(2_000)));
        let mut some = room(4_000);
        rows.some([3_999, 1_500, 9_999], &Direction::of(&[0.0, 0.0, 1.0]).unwrap(), &mut some);
        assert_eq!((some.get(3_999), some.has(0)), (1.0, false));
    }
}
