//! Deduplication over hand-built views.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod pointers;
mod properties;
mod session;
