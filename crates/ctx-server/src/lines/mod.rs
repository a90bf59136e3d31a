//! Line-based messages on standard input and output, shared by `rpc` and `mcp`.

mod data;
mod line;
mod pipes;

pub(crate) use data::Data;
pub(crate) use line::InputLine;
pub(crate) use pipes::{QUEUE, Writer, read, runtime, unread};
