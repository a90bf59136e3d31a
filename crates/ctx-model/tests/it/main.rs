//! The crate against loopback servers and real provider error bodies.

#![allow(clippy::unwrap_used)] // in helpers of tests a panic is the report

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
