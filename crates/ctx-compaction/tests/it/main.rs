//! What crosses the modules of the crate.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cuts;
mod extract;
mod facts;
mod golden;
mod labelled;
mod ladder;
mod pieces;
mod plan;
mod random;
mod repairs;
mod wedges;
