//! A line for each message, on standard input and output: what `rpc` and `mcp` share.

mod data;
mod line;
mod pipes;

pub(crate) use data::Data;
pub(crate) use line::Line;
pub(crate) use pipes::{QUEUE, Writer, read, runtime, unread};
