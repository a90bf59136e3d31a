//! ctx for programs that are not written in Rust.
//!
//! [`rpc`] serves JSON-RPC over standard input and output: a host in any language can use any
//! engine. [`proxy`] sits between an agent and its provider: for any program with a configurable
//! base URL. [`http`] is its HTTP server; [`trace`] records its requests. [`mcp`] offers tools to
//! any MCP client: session search, memory, and the status of a context.

#![forbid(unsafe_code)]

mod hosted;
pub mod http;
mod lines;
pub mod mcp;
mod private_files;
pub mod proxy;
pub mod rpc;
pub mod running;
pub mod stats;
mod status;
pub mod trace;

pub use hosted::Host;
pub use status::status;
