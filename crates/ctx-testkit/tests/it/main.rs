//! The fake provider, seen by a client.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod answers;
mod client;
mod errors;
mod faults;
mod gemini;
mod record;
mod scenario;
mod strict;
