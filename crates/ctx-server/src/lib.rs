//! ctx for programs that are not written in Rust: an HTTP proxy, tools over MCP, a page to look at
//! it all.
//!
//! None of it is here yet. What it will serve is what [`ctx_core::ContextView`] hands out.

#![forbid(unsafe_code)]
