//! The report of a maintenance run.

use std::path::PathBuf;

use serde::Serialize;

/// Why a session or a file is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It was idle for too long.
    Age,
    /// There are too many sessions.
    Count,
    /// The sessions take too much disk space.
    Disk,
    /// It belonged to a subagent that is done.
    Subagent,
    /// It was archived and its retention is over.
    Retention,
}

impl Reason {
    /// Returns the reason as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Age => "too old",
            Self::Count => "too many",
            Self::Disk => "too much disk",
            Self::Subagent => "subagent done",
            Self::Retention => "kept long enough",
        }
    }
}

/// What was done, or would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Its entry was removed and its transcript archived.
    Archived,
    /// Its entry was removed. Its transcript does not exist, or must not be moved: it belongs to
    /// another program or also to another session.
    Forgotten,
    /// An archived transcript was removed.
    Removed,
}

impl Action {
    /// Returns the action as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Archived => "archived",
            Self::Forgotten => "entry removed",
            Self::Removed => "removed",
        }
    }
}

/// What was done with one session or file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintainedSession {
    /// The session's key, if it had an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Its new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_as: Option<PathBuf>,
    /// What was done.
    pub act: Action,
    /// The reason.
    pub why: Reason,
    /// Its size on disk.
    pub bytes: u64,
}

/// A session or file that should have been removed and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptSession {
    /// The session's key, if it has an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Why it should have been removed.
    pub why: Reason,
    /// Why it was kept, as text.
    pub because: String,
}

/// What maintenance did with the sessions of an agent, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceReport {
    /// The agent.
    pub agent: String,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Number of sessions in the store before.
    pub entries_before: usize,
    /// Number of sessions in the store after.
    pub entries_after: usize,
    /// Size of the folder of sessions before.
    pub bytes_before: u64,
    /// Size of the folder of sessions after.
    pub bytes_after: u64,
    /// What was done.
    pub done: Vec<MaintainedSession>,
    /// Sessions and files that should have been removed and were kept.
    pub kept: Vec<KeptSession>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl MaintenanceReport {
    /// Whether there was nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.done.is_empty() && self.kept.is_empty()
    }

    pub(super) fn entries_gone(&self) -> usize {
        self.done.iter().filter(|done| done.session_key.is_some()).count()
    }
}
