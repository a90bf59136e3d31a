//! Vectors, and what is near to one.
//!
//! They are kept as numbers of 16 bits in memory. Up to [`EXACT_UP_TO`] of them a query is compared with
//! each; beyond, a graph (usearch's HNSW) gives candidates, and those are compared. A graph finds
//! less than it should where vectors have no structure, so it is tried on some of them before it is
//! used: one that finds less than `LEAST_FOUND` of what is nearest is not.

mod fixed;
mod graph;
mod kept;
mod rows;

pub(crate) use graph::{Built, Graph};
pub(crate) use rows::{Direction, Rows};

/// Comparing with this many takes about as long as a search may take (docs/memory.md).
pub(crate) const EXACT_UP_TO: usize = 50_000;
