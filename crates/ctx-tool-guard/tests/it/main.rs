//! The guard over views built by hand.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod aggregate;
mod hook;
mod offload;
mod properties;
mod session;
mod single;
