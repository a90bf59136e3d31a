//! What crosses crates.

mod architecture;
