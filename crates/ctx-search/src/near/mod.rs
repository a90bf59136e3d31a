//! Vectors and nearest-neighbour search.
//!
//! Vectors are kept in memory as 16-bit numbers. Up to [`EXACT_UP_TO`] vectors, a query is compared
//! with each. Beyond that, a graph (usearch's HNSW) yields candidates, which are then compared. A
//! graph has low recall on vectors without structure, so its recall is measured before use: a graph
//! below `LEAST_FOUND` is not used.

mod graph;
mod graph_file;
mod quantise;
mod rows;

pub use graph::{Built, Graph};
pub use rows::{Direction, Rows};

/// Comparing with this many takes about as long as a search may take (docs/memory.md).
pub const EXACT_UP_TO: usize = 50_000;
