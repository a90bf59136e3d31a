//! The lifecycle of a session, apart from its requests.

use serde::{Deserialize, Serialize};

use super::Row;

/// Parameters of `bootstrap`: a session that has a history was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootstrap {
    /// The session.
    pub session_id: String,
    /// The path of its transcript, if it has a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}

/// The answer to [`Bootstrap`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Bootstrapped {
    /// Whether the engine imported the history.
    pub bootstrapped: bool,
    /// The number of imported messages.
    pub imported_messages: usize,
    /// Why the engine did not import it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Parameters of `ingest`: a message was added to the session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ingest {
    /// The session.
    pub session_id: String,
    /// The message. Its group may still change; the next update contains the final group.
    pub row: Row,
    /// Whether it belongs to a heartbeat instead of a conversation.
    pub is_heartbeat: bool,
}

/// The answer to [`Ingest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ingested {
    /// Whether the engine stored the message, or a part of it. A known message is not ingested
    /// again.
    pub ingested: bool,
}

/// Parameters of `commit_turn`: a turn's messages were stored permanently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CommitTurn {
    /// The session.
    pub session_id: String,
    /// Identifies the turn: a second call with the same key must change nothing.
    pub advancement_key: String,
}

/// The result of committing a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    /// The turn is stored.
    #[default]
    Committed,
    /// The turn was already stored.
    Duplicate,
}

/// The answer to [`CommitTurn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Committed {
    /// The result.
    pub status: TurnStatus,
}

/// The parameters of verbs that need only the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionParams {
    /// The session.
    pub session_id: String,
}

/// A subagent is about to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubagentSpawn {
    /// The session that starts it.
    pub parent_session_key: String,
    /// The session of the subagent.
    pub child_session_key: String,
    /// Its maximum lifetime, in milliseconds.
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
    /// It exceeded its maximum lifetime.
    Swept,
    /// Its parent released it.
    Released,
}

/// A subagent ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubagentEnded {
    /// Its session.
    pub child_session_key: String,
    /// The reason.
    pub reason: SubagentReason,
    /// Whether it ended without a result. The reason is then
    /// [completed](SubagentReason::Completed), because older engines know neither this field nor
    /// another reason for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// An answer without data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Done {}
