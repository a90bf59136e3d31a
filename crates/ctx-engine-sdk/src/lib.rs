//! The crate that the author of a context engine depends on.
//!
//! A context engine decides which messages of a session a model sees. It is selected by
//! `plugins.slots.contextEngine`, and runs as a dynamic library or as a process, built from the
//! same source:
//!
//! ```
//! use ctx_engine_sdk::{Assembled, Engine, Hello, Host, Info, Plan, Result, Session};
//!
//! /// Keeps as many of the newest messages as fit into half of the budget.
//! struct HalfFull;
//!
//! impl Engine for HalfFull {
//!     fn hello(_: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
//!         // This engine needs sizes only: without contents, calls are small.
//!         Ok((Self, Info::new("half-full", "0.1.0").without_contents()))
//!     }
//!
//!     fn assemble(&mut self, session: &Session, _: &mut Host<'_>) -> Result<Assembled> {
//!         let mut left = session.budget().messages / 2;
//!         let mut kept = 0;
//!         for row in session.rows().iter().rev() {
//!             let Some(rest) = left.checked_sub(row.tokens) else { break };
//!             (left, kept) = (rest, kept + 1);
//!         }
//!         Ok(Plan::keep_last(kept).because("older than half of the budget").into())
//!     }
//! }
//!
//! ctx_engine_sdk::export_engine!(HalfFull); // a library, with crate-type = ["cdylib"]
//! # fn unused() {
//! let served = ctx_engine_sdk::serve::<HalfFull>(); // or a process: the whole of `main`
//! # }
//! ```
//!
//! An engine gets its messages as [`Row`]s: id, role, tokens, group, and on request the message
//! itself. It answers with a [`Plan`] of edits. The host counts tokens, keeps tool calls and their
//! results together, keeps protected rows, and ensures that the request fits: an engine needs no
//! tokenizer and no message parser, and it cannot break a session.
//!
//! The crate depends only on `serde`, `serde_json` and `rmp-serde`. For other languages, see
//! [`protocol`] for the messages that are sent over a pipe, and `include/ctx_engine.h` for a library in C.

pub mod abi;
mod driver;
mod engine;
pub mod frame;
mod host;
pub mod protocol;
mod serve;
mod session;
mod sessions;

pub use driver::Driver;
pub use engine::Engine;
pub use host::{Host, HostTransport};
pub use protocol::{
    Assembled, Bootstrap, Bootstrapped, Budget, Compact, CompactResult, Compacted, Complete,
    Completion, Error, ErrorKind, Hello, Info, Insertion, LogLevel, Message, OutgoingMessage, Plan,
    Replacement, Result, Row, SubagentEnded, SubagentSpawn, Turn, TurnStatus,
};
pub use serve::{serve, serve_on};
pub use session::Session;
