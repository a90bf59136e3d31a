//! What can be asked.

use serde::Serialize;

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Who answers, and what it can do.
    Initialize,
    /// Begins a session and builds its engine.
    Open,
    /// Adds messages at the end.
    Append,
    /// Says what the whole conversation is now.
    Sync,
    /// Makes the messages of the next request.
    Assemble,
    /// Makes the session smaller for good.
    Compact,
    /// Says what the provider counted for the last request.
    Usage,
    /// The turn's messages are stored for good.
    CommitTurn,
    /// The turn is over.
    AfterTurn,
    /// There is time for housekeeping.
    Maintain,
    /// A subagent is about to start.
    PrepareSubagentSpawn,
    /// It did not start after all.
    RollbackSubagentSpawn,
    /// It ended.
    OnSubagentEnded,
    /// How full the session is, and how its engine fares.
    Status,
    /// Ends the session.
    Close,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 15] = [
        Self::Initialize,
        Self::Open,
        Self::Append,
        Self::Sync,
        Self::Assemble,
        Self::Compact,
        Self::Usage,
        Self::CommitTurn,
        Self::AfterTurn,
        Self::Maintain,
        Self::PrepareSubagentSpawn,
        Self::RollbackSubagentSpawn,
        Self::OnSubagentEnded,
        Self::Status,
        Self::Close,
    ];

    /// As it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Open => "open",
            Self::Append => "append",
            Self::Sync => "sync",
            Self::Assemble => "assemble",
            Self::Compact => "compact",
            Self::Usage => "usage",
            Self::CommitTurn => "commit_turn",
            Self::AfterTurn => "after_turn",
            Self::Maintain => "maintain",
            Self::PrepareSubagentSpawn => "prepare_subagent_spawn",
            Self::RollbackSubagentSpawn => "rollback_subagent_spawn",
            Self::OnSubagentEnded => "on_subagent_ended",
            Self::Status => "status",
            Self::Close => "close",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}
