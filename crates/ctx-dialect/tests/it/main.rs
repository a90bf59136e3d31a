//! Tests of the public API.

mod accepted;
mod hygiene;
mod random;
mod wire;
