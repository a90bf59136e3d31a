//! Approximate nearest neighbours for large stores.

use std::sync::atomic::{AtomicBool, Ordering};

use ctx_core::{Error, ErrorKind, Result};
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::Rows;
use super::quantise::float;
use super::rows::Direction;

/// The minimum recall of the ten nearest neighbours; a graph with less is not used.
pub(crate) const LEAST_FOUND: f64 = 0.95;

/// The candidate search widths (usearch's `expansion_search`); the first that reaches the minimum
/// recall is used.
const EXPANSIONS: [usize; 3] = [128, 256, 512];

/// The number of vectors a graph is tested with, and the number of neighbours it has to find for
/// each.
const TRIED: usize = 64;
const NEAREST: usize = 10;

/// Cosines that differ by less are considered equal.
const ALIKE: f32 = 1e-4;

/// The maximum number of concurrent searches. A further search does not wait, but compares with
/// every vector.
const THREADS: usize = 16;

/// A graph over the first vectors of a [`Rows`], quantised to 8-bit integers. It only yields
/// candidates, which are then compared exactly.
pub struct Graph {
    pub(super) index: Index,
    /// The current slots of the vectors, by key; empty if keys and slots are equal.
    slots: Vec<u32>,
    size: usize,
    pub(super) expansion: usize,
}

/// The slot of a vector that no longer exists.
pub(super) const GONE: u32 = u32::MAX;

/// The result of building a graph.
pub enum Built {
    /// The graph reaches the minimum recall.
    Good(Graph),
    /// The graph's recall, which is too low.
    Weak(f64),
    /// The build was cancelled.
    Stopped,
}

impl Graph {
    /// Builds a graph over all of `rows` and measures its recall. It takes minutes for a million
    /// vectors.
    pub fn build(rows: &Rows, stop: &AtomicBool) -> Result<Built> {
        Self::build_with(rows, &EXPANSIONS, stop)
    }

    fn build_with(rows: &Rows, expansions: &[usize], stop: &AtomicBool) -> Result<Built> {
        let index = empty(rows.dimensions())?;
        index.reserve_capacity_and_threads(rows.count(), THREADS).map_err(failed)?;
        let workers = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 8);
        let each = |worker: usize| -> Result<()> {
            for slot in (worker..rows.count()).step_by(workers) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let Some(vector) = rows.vector(slot) else { break };
                index
                    .add(slot as u64, &in_bytes(vector.iter().map(|x| float(*x))))
                    .map_err(failed)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|at| scope.spawn(move || each(at))).collect();
            let first = each(0);
            others.into_iter().fold(first, |all, other| {
                all.and(other.join().unwrap_or_else(|_| Err(failed("a thread panicked"))))
            })
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Built::Stopped);
        }
        let mut graph = Self { index, slots: Vec::new(), size: rows.count(), expansion: 0 };
        let mut found = 0.0;
        for &expansion in expansions {
            graph.expansion = expansion;
            graph.index.change_expansion_search(expansion);
            found = graph.found(rows);
            if found >= LEAST_FOUND {
                return Ok(Built::Good(graph));
            }
        }
        Ok(Built::Weak(found))
    }

    /// The number of vectors it covers: the first ones.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the slots of near vectors, unordered, about as many as the search width. Returns
    /// `None` if it cannot search now.
    pub fn near(&self, query: &Direction) -> Option<Vec<usize>> {
        let query = in_bytes(query.as_slice().iter().copied());
        let found = self.index.search(&query, self.expansion).ok()?;
        let slot = |key: u64| match self.slots.as_slice() {
            [] => Some(key as usize),
            slots => Some(*slots.get(key as usize)?).filter(|s| *s != GONE).map(|s| s as usize),
        };
        Some(found.keys.into_iter().filter_map(slot).collect())
    }

    /// Opens the graph in a file that was written by this crate. `slots` holds the current slot of
    /// each vector, `size` is the number of vectors. Returns `None` if the file holds another
    /// graph.
    pub(super) fn of_file(
        path: &str,
        dimensions: usize,
        expansion: usize,
        slots: Vec<u32>,
        size: usize,
    ) -> Result<Option<Self>> {
        let index = empty(dimensions)?;
        // Mapped, because most queries touch few of its vectors. A writer replaces the file by another
        // one, which Windows refuses while it is mapped.
        let opened = if cfg!(unix) { index.view(path) } else { index.load(path) };
        opened.map_err(failed)?;
        if index.size() != slots.len() || index.dimensions() != dimensions {
            return Ok(None);
        }
        index.reserve_capacity_and_threads(slots.len(), THREADS).map_err(failed)?;
        index.change_expansion_search(expansion);
        Ok(Some(Self { index, slots, size, expansion }))
    }

    /// Whether it holds the vectors at its slots, checked by searching for some of them.
    pub(super) fn is_of(&self, rows: &Rows) -> bool {
        let finds = |slot: usize| {
            let query = direction(rows, slot)?;
            let near = self.near(&query)?;
            let same = |near: usize| rows.vector(near).map(|near| query.cosine(near));
            Some(near.into_iter().filter_map(same).any(|cosine| cosine >= 1.0 - ALIKE))
        };
        let step = (self.size / TRIED).max(1);
        let tried: Vec<usize> = (0..self.size).step_by(step).take(TRIED).collect();
        let found = tried.iter().filter(|slot| finds(**slot) == Some(true)).count();
        found as f64 >= LEAST_FOUND * tried.len() as f64
    }

    /// Returns the recall, measured with some of the vectors themselves.
    fn found(&self, rows: &Rows) -> f64 {
        let step = (rows.count() / TRIED).max(1);
        let (mut found, mut wanted) = (0usize, 0usize);
        for slot in (0..rows.count()).step_by(step).take(TRIED) {
            let Some(query) = direction(rows, slot) else { continue };
            let Some((count, least)) = nearest(rows, slot, &query) else { continue };
            let near = self.near(&query).unwrap_or_default();
            let cosines = near.into_iter().filter(|near| *near != slot);
            let cosines =
                cosines.filter_map(|near| rows.vector(near).map(|near| query.cosine(near)));
            wanted += count;
            // Any of several equally near vectors counts.
            found += cosines.filter(|cosine| *cosine >= least - ALIKE).take(count).count();
        }
        found as f64 / wanted.max(1) as f64
    }
}

fn empty(dimensions: usize) -> Result<Index> {
    let options = IndexOptions {
        dimensions,
        metric: MetricKind::Cos,
        quantization: ScalarKind::I8,
        connectivity: 16,
        expansion_add: 128,
        expansion_search: 0,
        multi: false,
    };
    Index::new(&options).map_err(failed)
}

/// Returns one of the vectors as a query.
fn direction(rows: &Rows, slot: usize) -> Option<Direction> {
    Direction::of(&rows.vector(slot)?.iter().map(|x| float(*x)).collect::<Vec<_>>())
}

/// Returns the number of nearest neighbours of a vector, at most [`NEAREST`], and the cosine of the
/// last one. Returns `None` without another vector.
fn nearest(rows: &Rows, but: usize, query: &Direction) -> Option<(usize, f32)> {
    let mut best: Vec<f32> = Vec::with_capacity(NEAREST + 1);
    for slot in (0..rows.count()).filter(|slot| *slot != but) {
        let cosine = query.cosine(rows.vector(slot)?);
        if best.len() < NEAREST || best.last().is_some_and(|last| cosine > *last) {
            let at = best.partition_point(|other| *other >= cosine);
            best.insert(at, cosine);
            best.truncate(NEAREST);
        }
    }
    Some((best.len(), *best.last()?))
}

/// Quantises a vector to bytes: its largest component becomes 127. The scale does not affect
/// cosines.
fn in_bytes(vector: impl Iterator<Item = f32> + Clone) -> Vec<i8> {
    let largest = vector.clone().fold(0f32, |most, x| most.max(x.abs())).max(f32::MIN_POSITIVE);
    vector.map(|x| (x / largest * 127.0 + 0.5f32.copysign(x)) as i8).collect()
}

pub(super) fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the vector graph cannot be used: {error}"))
}

ctx_core::partial_debug!(Graph, it, size = it.size, expansion = it.expansion);

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers, the same each time.
    fn noise(seed: &mut u64) -> f32 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 40) as f32) / ((1u64 << 24) as f32) - 0.5
    }

    fn rows(count: u32, dimensions: usize, topics: u32, spread: f32) -> Rows {
        let mut seed = 7;
        let centres: Vec<Vec<f32>> =
            (0..topics).map(|_| (0..dimensions).map(|_| noise(&mut seed)).collect()).collect();
        let mut rows = Rows::new(dimensions);
        for row in 0..count {
            let centre = &centres[(row % topics) as usize];
            let vector: Vec<f32> = centre.iter().map(|x| x + spread * noise(&mut seed)).collect();
            assert!(rows.add(row, &vector));
        }
        rows
    }

    #[test]
    fn a_graph_over_vectors_with_structure_finds_near_vectors() {
        let rows = rows(2_000, 32, 50, 0.3);
        let Built::Good(graph) = Graph::build(&rows, &AtomicBool::new(false)).unwrap() else {
            panic!("it finds too little");
        };
        assert_eq!(graph.size(), 2_000);
        let query: Vec<f32> = rows.vector(700).unwrap().iter().map(|x| float(*x)).collect();
        assert!(graph.near(&Direction::of(&query).unwrap()).unwrap().contains(&700));
    }

    #[test]
    fn a_graph_that_finds_too_little_is_not_used() {
        let rows = rows(3_000, 128, 3_000, 1.0);
        let built = Graph::build_with(&rows, &[NEAREST], &AtomicBool::new(false));
        let Built::Weak(found) = built.unwrap() else {
            panic!("noise has no structure that a graph could follow");
        };
        assert!(found < LEAST_FOUND);
    }

    #[test]
    fn building_stops_when_it_is_cancelled() {
        let rows = rows(100, 8, 10, 0.1);
        let built = Graph::build(&rows, &AtomicBool::new(true)).unwrap();
        assert!(matches!(built, Built::Stopped));
        assert!(matches!(
            Graph::build(&Rows::new(8), &AtomicBool::new(false)),
            Ok(Built::Good(_) | Built::Weak(_))
        ));
    }
}
