//! Tests across crates.

mod architecture;
mod engine_docs;
mod engines;
mod memory;
mod nemesis;
mod plugins;
mod profiles;
mod stranger;
