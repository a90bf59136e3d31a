//! ctx for programs that are not written in Rust.
//!
//! [`rpc`] speaks JSON-RPC over standard input and output: a host in any language drives any engine.
//! [`proxy`] stands between an agent and its provider: any program that has a base URL to set. [`http`]
//! is what it listens with, [`trace`] what it remembers of requests. [`mcp`] offers tools to any client:
//! what was said, what is known, how full a context is.

#![forbid(unsafe_code)]

mod hosted;
pub mod http;
pub mod inspect;
mod lines;
pub mod mcp;
mod private;
pub mod proxy;
pub mod rpc;
mod status;
pub mod trace;

pub use hosted::Host;
pub use status::status;
