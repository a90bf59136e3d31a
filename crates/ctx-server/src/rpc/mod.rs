//! `ctx rpc`: a host in any language uses any engine over standard input and output.
//!
//! JSON-RPC 2.0, one object per line. A host opens a session and sends the conversation
//! incrementally ([`append`](Method::Append)) or as a whole ([`sync`](Method::Sync)). Before each
//! model request, it requests the messages that fit ([`assemble`](Method::Assemble)). The session
//! keeps the engine's state: the view, the projections, the last compaction. If the view is lost
//! (an engine failed midway) or outdated (the host changed its history), it is rebuilt from these.
//!
//! Calls of one session are processed in order, calls of different sessions concurrently.

mod actor;
mod dialect;
mod error;
mod fit;
mod message;
mod method;
mod open;
mod params;
mod serve;
mod session;
mod turn;

#[cfg(test)]
mod tests;

pub use ctx_hosted::Host;
pub use method::Method;
pub use serve::serve;

/// The protocol version. Fields and methods may be added within a major version.
pub(crate) const PROTOCOL: &str = "1.0";

/// Maximum line length, enough for a conversation of about ten million tokens. A longer line is
/// refused and skipped.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;
