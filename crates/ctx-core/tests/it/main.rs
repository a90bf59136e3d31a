//! Property tests of the core over sessions of every shape.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod compact;
mod counters;
mod edits;
mod finish;
mod hostile;
mod pairs;
mod session;
