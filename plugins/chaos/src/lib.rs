//! An engine that misbehaves on command, for testing hosts.
//!
//! Without a fault it keeps all messages and leaves compaction to its host. [`Fault`] lists the
//! faults.
//!
//! | file | contents |
//! |---|---|
//! | fault | the faults, and the call at which one occurs |
//! | engine | faults of the engine itself |
//! | bytes | faults in the bytes of answers |
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
