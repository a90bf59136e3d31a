//! What crosses crates.

mod architecture;
mod engines;
