//! An engine that misbehaves on command, to test hosts with.
//!
//! Without a fault it keeps all messages and leaves compaction to its host. What it can be told is in
//! [`Fault`].
//!
//! | file | what it does |
//! |---|---|
//! | fault | the faults, and when one strikes |
//! | engine | faults of an engine that answers |
//! | bytes | faults of the bytes it answers with |
//! | library | both behind the C ABI |
//! | process | both behind a pipe |

mod bytes;
mod engine;
mod fault;
mod library;
mod process;

pub use engine::Chaos;
pub use fault::{Fault, Orders};
pub use library::ctx_engine_v1;
pub use process::{serve, serve_on};
