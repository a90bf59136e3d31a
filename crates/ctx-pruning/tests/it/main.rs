//! Pruning over hand-built views.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod cache_ttl;
mod properties;
mod session;
mod turn_age;
