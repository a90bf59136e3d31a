//! Properties of the core, over sessions of every shape.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod finish;
mod session;
