//! Hosts on a real server.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

mod erased;
