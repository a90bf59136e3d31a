//! The protocol between host and engine: one object per message, as JSON, or as MessagePack if both
//! sides [can](Encoding).
//!
//! A host sends a [`Call`] and gets one [`Answer`]. During a call, the engine may call services of
//! its host, each a [`HostCall`] answered by a [`Reply`]; and the host may send a [`Cancel`]. Over
//! a pipe each object is one [frame](crate::frame); across the C ABI the same bytes are passed to
//! functions. Both sides ignore unknown fields, so either may be newer.
//!
//! A side that does not yet know the type of a message reads its [`Head`].
//!
//! Verbs are `snake_case`, fields `camelCase`. Every size is in tokens as counted by the host,
//! every time in milliseconds.

mod assemble;
mod compact;
mod encoding;
mod error;
mod head;
mod hello;
mod lifecycle;
mod message;
mod raw;
mod services;
mod session;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use assemble::{Assemble, Assembled, Insertion, OutgoingMessage, Plan, Replacement};
pub use compact::{Compact, CompactResult, Compacted, IdentifierPolicy, Trigger};
pub use encoding::{Encoding, decode};
pub use error::{Error, ErrorKind, Result};
pub use head::Head;
pub use hello::{Contract, Hello, HostInfo, Info};
pub use lifecycle::{
    Bootstrap, Bootstrapped, CommitTurn, Committed, Done, Ingest, Ingested, SessionParams,
    SubagentEnded, SubagentReason, SubagentSpawn, TurnStatus,
};
pub use message::{Block, Message};
pub use raw::RawMessage;
pub use services::{
    Complete, Completion, Count, Counts, Key, KeyPrefix, Keys, LogLevel, LogLine, StoredValue,
    Value,
};
pub use session::{Budget, Row, Turn, Update};

/// The version of this protocol, `major.minor`. Versions with the same major number are compatible.
pub const PROTOCOL: &str = "1.0";

/// The verbs of an engine: the values of [`Call::verb`].
pub mod verb {
    /// [`Hello`](super::Hello) to [`Info`](super::Info): always the first call.
    pub const HELLO: &str = "hello";
    /// [`Bootstrap`](super::Bootstrap) to [`Bootstrapped`](super::Bootstrapped).
    pub const BOOTSTRAP: &str = "bootstrap";
    /// [`Ingest`](super::Ingest) to [`Ingested`](super::Ingested).
    pub const INGEST: &str = "ingest";
    /// [`Assemble`](super::Assemble) to [`Assembled`](super::Assembled).
    pub const ASSEMBLE: &str = "assemble";
    /// [`Compact`](super::Compact) to [`CompactResult`](super::CompactResult).
    pub const COMPACT: &str = "compact";
    /// [`CommitTurn`](super::CommitTurn) to [`Committed`](super::Committed).
    pub const COMMIT_TURN: &str = "commit_turn";
    /// [`SessionParams`](super::SessionParams) to [`Done`](super::Done).
    pub const AFTER_TURN: &str = "after_turn";
    /// [`SessionParams`](super::SessionParams) to [`Done`](super::Done).
    pub const MAINTAIN: &str = "maintain";
    /// [`SubagentSpawn`](super::SubagentSpawn) to [`Done`](super::Done).
    pub const PREPARE_SUBAGENT_SPAWN: &str = "prepare_subagent_spawn";
    /// [`SubagentSpawn`](super::SubagentSpawn) to [`Done`](super::Done).
    pub const ROLLBACK_SUBAGENT_SPAWN: &str = "rollback_subagent_spawn";
    /// [`SubagentEnded`](super::SubagentEnded) to [`Done`](super::Done).
    pub const ON_SUBAGENT_ENDED: &str = "on_subagent_ended";
    /// Nothing to [`Done`](super::Done): the last call.
    pub const DISPOSE: &str = "dispose";

    /// All verbs.
    pub const ALL: [&str; 12] = [
        HELLO,
        BOOTSTRAP,
        INGEST,
        ASSEMBLE,
        COMPACT,
        COMMIT_TURN,
        AFTER_TURN,
        MAINTAIN,
        PREPARE_SUBAGENT_SPAWN,
        ROLLBACK_SUBAGENT_SPAWN,
        ON_SUBAGENT_ENDED,
        DISPOSE,
    ];
}

/// The services of a host: the values in [`Hello::features`] and [`HostCall::host`].
pub mod service {
    /// [`Complete`](super::Complete) to [`Completion`](super::Completion).
    pub const COMPLETE: &str = "llm.complete";
    /// [`Count`](super::Count) to [`Counts`](super::Counts).
    pub const COUNT: &str = "tokens.count";
    /// [`Key`](super::Key) to [`Value`](super::Value).
    pub const GET: &str = "store.get";
    /// [`StoredValue`](super::StoredValue) to [`Done`](super::Done).
    pub const PUT: &str = "store.put";
    /// [`KeyPrefix`](super::KeyPrefix) to [`Keys`](super::Keys).
    pub const LIST: &str = "store.list";
    /// [`LogLine`](super::LogLine) to [`Done`](super::Done).
    pub const LOG: &str = "log";

    /// All services.
    pub const ALL: [&str; 6] = [COMPLETE, COUNT, GET, PUT, LIST, LOG];
}

/// A call of a host to an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call<P> {
    /// Identifies the call in its answer.
    pub id: u64,
    /// One of [`verb`].
    pub verb: String,
    /// The verb's parameters.
    pub params: P,
}

/// The answer of an engine to a call: `ok`, or `error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    /// The id of the call.
    pub id: u64,
    /// The result.
    #[serde(default = "absent", skip_serializing_if = "Option::is_none")]
    pub ok: Option<T>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// A call of an engine to its host, made during a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostCall<P> {
    /// Identifies the host call in its reply.
    pub id: u64,
    /// One of [`service`].
    pub host: String,
    /// The service's parameters.
    pub params: P,
}

/// The reply of a host to a host call: `reply`, or `error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply<T> {
    /// The id of the host call.
    pub id: u64,
    /// The result.
    #[serde(default = "absent", skip_serializing_if = "Option::is_none")]
    pub reply: Option<T>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// The host no longer needs the answer to a call. The engine answers it anyway, soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The id of the call.
    pub cancel: u64,
}

/// Parses the parameters of a call or a host call, in one pass over its bytes.
///
/// # Errors
///
/// [`ErrorKind::BadRequest`] if they are not a `T`.
pub fn params<T: DeserializeOwned>(call: &[u8]) -> Result<T> {
    #[derive(Deserialize)]
    struct WithParams<T> {
        #[serde(default = "absent")]
        params: Option<T>,
    }
    match decode(call)? {
        WithParams { params: Some(params) } => Ok(params),
        WithParams { params: None } => decode(b"{}"),
    }
}

fn absent<T>() -> Option<T> {
    None
}
