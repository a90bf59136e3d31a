//! What maintenance did.

use std::path::PathBuf;

use serde::Serialize;

/// Why a session or a file goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// Nothing happened in it for too long.
    Age,
    /// There are too many.
    Count,
    /// They take too much disk.
    Disk,
    /// It was a subagent's, which is done.
    Subagent,
    /// It was archived, and kept for long enough.
    Retention,
}

impl Why {
    /// The reason in words.
    #[must_use]
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

/// What was done, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// Its entry is gone, and its transcript was archived.
    Archived,
    /// Its entry is gone. There was no transcript, or it is not one to be moved: that of another
    /// program, or of another session too.
    Forgotten,
    /// An archived transcript was removed.
    Removed,
}

impl Act {
    /// It in words.
    #[must_use]
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
pub struct Maintained {
    /// The session's key, where it had an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What it is called now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_as: Option<PathBuf>,
    /// What was done.
    pub act: Act,
    /// Why.
    pub why: Why,
    /// How much disk it took.
    pub bytes: u64,
}

/// What should have gone and stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// The session's key, where it has an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Why it should have gone.
    pub why: Why,
    /// Why it stays, in words.
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
    /// How many sessions the store had.
    pub entries_before: usize,
    /// How many it has.
    pub entries_after: usize,
    /// What the folder of sessions took.
    pub bytes_before: u64,
    /// What it takes.
    pub bytes_after: u64,
    /// What was done.
    pub done: Vec<Maintained>,
    /// What should have gone and stays.
    pub kept: Vec<Kept>,
    /// What a person should be told.
    pub warnings: Vec<String>,
}

impl MaintenanceReport {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.done.is_empty() && self.kept.is_empty()
    }

    pub(super) fn entries_gone(&self) -> usize {
        self.done.iter().filter(|done| done.session_key.is_some()).count()
    }
}
