//! The crate against loopback servers and real provider error bodies.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

mod broken;
mod chat;
mod client;
mod connect;
mod converse;
mod embed;
mod endings;
mod errors;
mod fake;
mod secrets;
mod server;
mod streams;
