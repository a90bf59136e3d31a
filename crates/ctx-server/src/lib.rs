//! ctx for programs that are not written in Rust.
//!
//! [`rpc`] speaks JSON-RPC over standard input and output: a host in any language drives any engine.
//! An HTTP proxy, tools over MCP and a page to look at it all are to come; what they will serve is
//! what [`ctx_core::ContextView`] hands out.

#![forbid(unsafe_code)]

mod hosted;
pub mod http;
mod private;
pub mod proxy;
pub mod rpc;
pub mod trace;

pub use hosted::Host;
