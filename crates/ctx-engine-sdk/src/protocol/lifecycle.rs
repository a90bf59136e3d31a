//! The life of a session, around its requests.

use serde::{Deserialize, Serialize};

use super::Row;

/// A session came up that has a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootstrap {
    /// The session.
    pub session_id: String,
    /// Its transcript, where it has a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}

/// What bootstrapping did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootstrapped {
    /// Whether the engine took the history in.
    pub bootstrapped: bool,
    /// How many messages it took in.
    pub imported_messages: usize,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A message was added to the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ingest {
    /// The session.
    pub session_id: String,
    /// The message. Its group is not settled yet: it comes with the next update.
    pub row: Row,
    /// Whether it belongs to a heartbeat rather than to a conversation.
    pub is_heartbeat: bool,
}

/// What ingesting did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ingested {
    /// Whether the engine keeps anything of it. A message that it knows already is not ingested
    /// again.
    pub ingested: bool,
}

/// A turn's messages are stored for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CommitTurn {
    /// The session.
    pub session_id: String,
    /// Names the turn: a second call with the same key must change nothing.
    pub advancement_key: String,
}

/// What committing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    /// The turn is stored.
    #[default]
    Committed,
    /// It was before.
    Duplicate,
}

/// The answer to [`CommitTurn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Committed {
    /// What it did.
    pub status: TurnStatus,
}

/// The parameters of verbs that need to know the session alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OfSession {
    /// The session.
    pub session_id: String,
}

/// A subagent is about to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubagentSpawn {
    /// The session that starts it.
    pub parent_session_key: String,
    /// The session it gets.
    pub child_session_key: String,
    /// How long it may live, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Why a subagent ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SubagentReason {
    /// Its session was deleted.
    Deleted,
    /// It finished.
    #[default]
    Completed,
    /// It outlived its time.
    Swept,
    /// Its parent let it go.
    Released,
}

/// A subagent ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubagentEnded {
    /// Its session.
    pub child_session_key: String,
    /// Why.
    pub reason: SubagentReason,
    /// Whether it ended without a result. It is [completed](SubagentReason::Completed) then as well,
    /// for engines that do not know this field.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// An answer that says no more than that it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {}
