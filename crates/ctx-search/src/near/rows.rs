//! Vectors by row.

use pulp::{Arch, Simd, WithSimd};
use tantivy::directory::OwnedBytes;

use super::kept::KeptVectors;
use super::quantise::{bytes, factor, fixed, product};
use super::signs::Signs;
use crate::lexical::Scores;

/// No vector, or no row.
const NONE: u32 = u32::MAX;

/// The number of vectors per block. A block is never moved when more are added.
const BLOCK: usize = 1_024;

/// Vectors of equal dimensions, one per row.
#[derive(Debug)]
pub struct Rows {
    dimensions: usize,
    /// The first vectors, if they were [kept](super::KeptVectors), and how many they are.
    kept: OwnedBytes,
    kept_count: usize,
    /// The vectors after them, [`BLOCK`] at a time.
    blocks: Vec<Vec<u8>>,
    /// By vector: what turns a product with it into a cosine.
    factors: Vec<f32>,
    signs: Signs,
    /// The row of each vector, or [`NONE`].
    rows: Vec<u32>,
    /// The vector of each row, or [`NONE`].
    slots: Vec<u32>,
    count: usize,
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
            kept: OwnedBytes::empty(),
            kept_count: 0,
            blocks: Vec::new(),
            factors: Vec::new(),
            signs: Signs::new(dimensions),
            rows: Vec::new(),
            slots: Vec::new(),
            count: 0,
        }
    }

    /// Returns kept vectors, with the row of each.
    pub(super) fn with(kept: KeptVectors, rows: &[Option<u32>]) -> Self {
        let mut out = Self::new(kept.dimensions);
        (out.kept, out.kept_count) = (kept.components, kept.ids.len());
        for (row, factor) in rows.iter().zip(&kept.factors) {
            out.place(row.filter(|_| factor.is_finite()));
        }
        (out.factors, out.signs) = (kept.factors, Signs::kept(kept.dimensions, kept.signs));
        out
    }

    /// Records the row of the next vector. A row has one vector: of a second one, nothing is known.
    fn place(&mut self, row: Option<u32>) {
        let row = row.filter(|row| !self.has(*row)).unwrap_or(NONE);
        if row != NONE {
            if self.slots.len() <= row as usize {
                self.slots.resize(row as usize + 1, NONE);
            }
            self.slots[row as usize] = self.rows.len() as u32;
            self.count += 1;
        }
        self.rows.push(row);
    }

    /// The number of rows that have a vector.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of vectors, with those that have no row.
    pub fn total(&self) -> usize {
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
        let Some(bytes) = bytes(vector) else { return false };
        self.push(bytes);
        self.signs.add(vector);
        self.place(Some(row));
        true
    }

    /// Adds the next vector of a file, whose row may be unknown: it takes a place all the same.
    pub fn add_next(&mut self, row: Option<u32>, vector: &[f32]) {
        if vector.len() != self.dimensions {
            return;
        }
        match bytes(vector) {
            Some(bytes) => self.push(bytes),
            None => self.push(std::iter::repeat_n(0, self.dimensions)),
        }
        self.signs.add(vector);
        let has_direction = self.factors.last().is_some_and(|factor| factor.is_finite());
        self.place(row.filter(|_| has_direction));
    }

    fn push(&mut self, vector: impl Iterator<Item = i8>) {
        if (self.rows.len() - self.kept_count).is_multiple_of(BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK * self.dimensions));
        }
        if let Some(block) = self.blocks.last_mut() {
            let start = block.len();
            block.extend(vector.map(i8::cast_unsigned));
            self.factors.push(factor(&block[start..]));
        }
    }

    pub(super) fn factors(&self) -> &[f32] {
        &self.factors
    }

    pub(super) fn signs(&self) -> &[u64] {
        self.signs.words()
    }

    /// Passes the components of all vectors to `each`, some at a time.
    pub(super) fn each_vector(
        &self,
        each: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        each(&self.kept)?;
        self.blocks.iter().try_for_each(|block| each(block))
    }

    /// Returns the row of a vector.
    fn row(&self, slot: usize) -> Option<u32> {
        self.rows.get(slot).copied().filter(|row| *row != NONE)
    }

    /// Returns rows whose vectors may be near the query, unordered: all up to 2,048, at least 2,048
    /// of more, and at least one in 128.
    pub fn near(&self, query: &Direction) -> impl Iterator<Item = u32> {
        self.signs.nearest(&query.vector).into_iter().filter_map(|slot| self.row(slot as usize))
    }

    /// Returns the vector in a slot.
    #[inline(always)]
    fn vector(&self, slot: usize) -> Option<&[u8]> {
        let Some(slot) = slot.checked_sub(self.kept_count) else {
            return self.kept.get(slot * self.dimensions..(slot + 1) * self.dimensions);
        };
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
    use crate::SegmentId;

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

    fn id(n: u32) -> SegmentId {
        SegmentId(uuid::Uuid::from_u128(n.into()))
    }

    #[test]
    fn kept_vectors_are_those_that_were_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.near");
        let vector = |n: u32| [1.0, n as f32, -3.0, (n % 7) as f32 - 3.0];
        let of = |n: u32| (n != 5).then_some(n);
        let mut rows = Rows::new(4);
        (0..2_000).for_each(|n| rows.add_next(of(n), &vector(n)));
        rows.add_next(Some(2_000), &[0.0; 4]);
        assert_eq!((rows.count(), rows.total()), (1_999, 2_001));
        let ids: Vec<SegmentId> = (0..2_001).map(id).collect();
        rows.keep(&path, &ids).unwrap();
        let open = || KeptVectors::open(&path, 4);
        let mut kept = Rows::kept(open().unwrap(), |id| of(id.0.as_u128() as u32));
        assert_eq!(open().unwrap().ids(), ids);
        for more in [&mut rows, &mut kept] {
            (3_000..4_500).for_each(|n| assert!(more.add(n, &vector(n))));
            assert!(!more.add(7, &vector(8)) && !more.has(5) && !more.has(2_000));
        }
        let query = Direction::of(&vector(99)).unwrap();
        let (mut expected, mut found) = (room(5_000), room(5_000));
        rows.all(&query, &mut expected);
        kept.all(&query, &mut found);
        let all = |scores: &Scores| -> Vec<f32> { (0..5_000).map(|n| scores.get(n)).collect() };
        assert_eq!(all(&found), all(&expected));
        assert!(kept.near(&query).eq(rows.near(&query)));
        // They can be kept again, while the old ones are in use.
        let ids: Vec<SegmentId> = (0..3_501).map(id).collect();
        kept.keep(&path, &ids).unwrap();
        assert_eq!(Rows::kept(open().unwrap(), of_id).count(), 3_499);
        assert!(KeptVectors::open(&path, 5).is_none());
        let sound = std::fs::read(&path).unwrap();
        let damaged = [0, 9, 13, 17, 40, 3_501 * 16 + 30].map(|at| {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            bytes
        });
        let cut = [0, 19, 100, sound.len() - 1].map(|end| sound[..end].to_vec());
        for bytes in damaged.into_iter().chain(cut) {
            std::fs::write(&path, bytes).unwrap();
            assert!(open().is_none());
        }
    }

    fn of_id(id: SegmentId) -> Option<u32> {
        let n = id.0.as_u128() as u32;
        (n != 5).then_some(n)
    }
}
