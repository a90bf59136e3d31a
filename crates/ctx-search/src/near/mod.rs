//! Vectors and nearest-neighbour search.
//!
//! Vectors are kept in memory as 8-bit numbers, and their signs apart, one bit per component. Up to
//! [`EXACT_UP_TO`] vectors, a query is compared with each. Beyond that, it is compared with the signs
//! of each, and then with the vectors whose signs differ least: see [`Rows::near`].

mod kept;
mod quantise;
mod rows;
mod signs;

pub use kept::KeptVectors;
pub use rows::{Direction, Rows};
pub use signs::EXACT_UP_TO;
