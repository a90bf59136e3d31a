//! The fake provider, seen from the other end of the wire.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod answers;
mod client;
mod errors;
mod fast;
mod faults;
mod gemini;
mod record;
mod scenario;
mod strict;
