//! ctx for programs that are not written in Rust.
//!
//! [`rpc`] serves JSON-RPC over standard input and output: a host in any language can use any
//! engine. [`proxy`] sits between an agent and its provider: for any program with a configurable
//! base URL. [`http`] is its HTTP server.

#![forbid(unsafe_code)]

pub mod http;
pub mod lines;
pub mod proxy;
pub mod rpc;
pub mod running;

pub use ctx_hosted::Host;
