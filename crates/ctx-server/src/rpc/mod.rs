//! `ctx rpc`: a host in any language drives any engine over standard input and output.
//!
//! JSON-RPC 2.0, one object a line. A host opens a session, tells it the conversation as it grows
//! ([`append`](Method::Append)) or as it stands ([`sync`](Method::Sync)), and asks before each model
//! request for the messages that fit ([`assemble`](Method::Assemble)). The session keeps what the
//! engine needs: the view, the forms that were sent, the last compaction. Where the view is lost
//! (an engine failed in the middle) or no longer fits (the host changed its history), it is made
//! anew from these.
//!
//! Calls of one session are answered in their order, those of different sessions side by side.

mod actor;
mod dialect;
mod failure;
mod message;
mod method;
mod open;
mod params;
mod serve;
mod session;
mod turn;

#[cfg(test)]
mod tests;

pub use crate::hosted::Host;
pub use method::Method;
pub use serve::serve;

/// The version of what is spoken here. Fields and methods may be added within a major version.
pub const PROTOCOL: &str = "1.0";

/// A line that is longer than this is refused and skipped. It holds a conversation of some ten
/// million tokens.
pub const MAX_LINE_BYTES: usize = 64 << 20;
