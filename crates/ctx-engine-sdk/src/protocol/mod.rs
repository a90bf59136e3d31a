//! What host and engine say to each other: JSON, one object a message.
//!
//! A host sends a [`Call`] and gets one [`Answer`]. While a call is being worked on, the engine may
//! ask its host for services, each a [`HostCall`] answered by a [`Reply`]; and the host may send a
//! [`Cancel`]. Over a pipe each object is one line; across the C ABI the same bytes are passed to
//! functions. Fields that a side does not know are ignored, on both sides, so that either may be
//! newer.
//!
//! A side that does not know yet what came to it reads its [`Head`].
//!
//! Verbs are written `snake_case`, fields `camelCase`. Every size is in tokens as the host counts
//! them, every time in milliseconds.

mod assemble;
mod compact;
mod error;
mod head;
mod hello;
mod lifecycle;
mod message;
mod services;
mod session;

use serde::{Deserialize, Serialize};

pub use assemble::{Assemble, Assembled, Insertion, Outgoing, Plan, Replacement};
pub use compact::{Compact, CompactResult, Compacted, IdentifierPolicy, Trigger};
pub use error::{Error, ErrorKind, Result};
pub use head::Head;
pub use hello::{Contract, Hello, HostInfo, Info};
pub use lifecycle::{
    Bootstrap, Bootstrapped, CommitTurn, Committed, Done, Ingest, Ingested, OfSession,
    SubagentEnded, SubagentReason, SubagentSpawn, TurnStatus,
};
pub use message::{Block, Message};
pub use services::{
    Complete, Completion, Count, Counts, Key, KeyPrefix, Keys, LogLevel, LogLine, StoredValue,
    Value,
};
pub use session::{Budget, Row, Turn, Update};

/// The version of this protocol, `major.minor`. Sides of one major version understand each other.
pub const PROTOCOL: &str = "1.0";

/// The verbs of an engine, as they stand in [`Call::verb`].
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
    /// [`OfSession`](super::OfSession) to [`Done`](super::Done).
    pub const AFTER_TURN: &str = "after_turn";
    /// [`OfSession`](super::OfSession) to [`Done`](super::Done).
    pub const MAINTAIN: &str = "maintain";
    /// [`SubagentSpawn`](super::SubagentSpawn) to [`Done`](super::Done).
    pub const PREPARE_SUBAGENT_SPAWN: &str = "prepare_subagent_spawn";
    /// [`SubagentSpawn`](super::SubagentSpawn) to [`Done`](super::Done).
    pub const ROLLBACK_SUBAGENT_SPAWN: &str = "rollback_subagent_spawn";
    /// [`SubagentEnded`](super::SubagentEnded) to [`Done`](super::Done).
    pub const ON_SUBAGENT_ENDED: &str = "on_subagent_ended";
    /// Nothing to [`Done`](super::Done): the last call.
    pub const DISPOSE: &str = "dispose";

    /// All of them.
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

/// What a host offers, as it stands in [`Hello::features`] and [`HostCall::host`].
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

    /// All of them.
    pub const ALL: [&str; 6] = [COMPLETE, COUNT, GET, PUT, LIST, LOG];
}

/// A host asks an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call<P> {
    /// Tells the answer to this call from others.
    pub id: u64,
    /// What is asked: one of [`verb`].
    pub verb: String,
    /// The verb's parameters.
    pub params: P,
}

/// An engine answers a call: with `ok`, or with `error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    /// The call.
    pub id: u64,
    /// The answer.
    #[serde(default = "absent", skip_serializing_if = "Option::is_none")]
    pub ok: Option<T>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// An engine asks its host, from inside a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostCall<P> {
    /// Tells the reply to this from others.
    pub id: u64,
    /// What is asked: one of [`service`].
    pub host: String,
    /// The service's parameters.
    pub params: P,
}

/// A host replies to a host call: with `reply`, or with `error`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply<T> {
    /// The host call.
    pub id: u64,
    /// The reply.
    #[serde(default = "absent", skip_serializing_if = "Option::is_none")]
    pub reply: Option<T>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// A host does not need the answer to a call any more. The call is answered all the same, soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The call.
    pub cancel: u64,
}

fn absent<T>() -> Option<T> {
    None
}
