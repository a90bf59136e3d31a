//! The methods of the protocol.

use serde::Serialize;

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Returns the server's name and capabilities.
    Initialize,
    /// Opens a session and creates its engine.
    Open,
    /// Appends messages.
    Append,
    /// Sends the whole conversation.
    Sync,
    /// Assembles the messages of the next request.
    Assemble,
    /// Returns the messages of the next request, from those that changed.
    Fit,
    /// Compacts the session permanently.
    Compact,
    /// Undoes the last compaction.
    Undo,
    /// Returns messages of the session by id.
    Expand,
    /// Finds messages that the last request does not have.
    Recall,
    /// Reports the provider's count for the last request.
    Usage,
    /// Reports that the messages of the turn are stored permanently.
    CommitTurn,
    /// Reports that the turn has ended.
    AfterTurn,
    /// Runs maintenance: the host is idle.
    Maintain,
    /// Reports that a subagent is about to start.
    PrepareSubagentSpawn,
    /// Reports that the subagent did not start.
    RollbackSubagentSpawn,
    /// Reports that the subagent has ended.
    OnSubagentEnded,
    /// Returns how full the session is, and the state of its engine.
    Status,
    /// Closes the session.
    Close,
}

impl Method {
    /// All methods in the order of their declaration, with their names in the protocol.
    pub const ALL: [(Self, &'static str); 19] = [
        (Self::Initialize, "initialize"),
        (Self::Open, "open"),
        (Self::Append, "append"),
        (Self::Sync, "sync"),
        (Self::Assemble, "assemble"),
        (Self::Fit, "fit"),
        (Self::Compact, "compact"),
        (Self::Undo, "undo"),
        (Self::Expand, "expand"),
        (Self::Recall, "recall"),
        (Self::Usage, "usage"),
        (Self::CommitTurn, "commit_turn"),
        (Self::AfterTurn, "after_turn"),
        (Self::Maintain, "maintain"),
        (Self::PrepareSubagentSpawn, "prepare_subagent_spawn"),
        (Self::RollbackSubagentSpawn, "rollback_subagent_spawn"),
        (Self::OnSubagentEnded, "on_subagent_ended"),
        (Self::Status, "status"),
        (Self::Close, "close"),
    ];

    /// Returns the name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns the names of all methods.
    #[must_use]
    pub fn names() -> [&'static str; 19] {
        Self::ALL.map(|(_, name)| name)
    }

    /// Returns the method with that name.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(method, _)| method)
    }
}
