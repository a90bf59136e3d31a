//! The report of what was forgotten, and where.

use std::path::PathBuf;

use ctx_core::{EntryId, Role};
use ctx_session::Erased;
use serde::Serialize;

/// What was forgotten; after a dry run, what would be forgotten.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgetReport {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Whether everything was erased from the files that ctx may write. If not, the same call
    /// completes it.
    pub complete: bool,
    /// The messages.
    pub messages: Vec<ForgottenMessage>,
    /// What was erased from transcripts and their side files.
    pub files: Vec<Erased>,
    /// What was erased from the memory of each agent.
    pub agents: Vec<ForgottenInAgent>,
    /// Files that still contain it, and why.
    pub still_held: Vec<RemainingCopy>,
    /// Errors that did not stop the run.
    pub warnings: Vec<String>,
    /// Other places that may contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenMessage {
    /// Its entry; or its archive segment, if that belongs to no entry.
    pub entry: EntryId,
    /// The transcript; absent if only the archive has the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The role of its author.
    pub role: Role,
    /// Its beginning; absent once it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
}

/// What was erased from the memory of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenInAgent {
    /// The agent.
    pub agent: String,
    /// Number of segments of the archive and of the index.
    pub segments: usize,
    /// Number of vectors.
    pub vectors: usize,
    /// Number of facts.
    pub facts: usize,
    /// Number of tool result files.
    pub tool_results: usize,
    /// Number of values that engines stored for the session.
    pub engine_values: usize,
}

/// A file that still contains a forgotten message or text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemainingCopy {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl ForgetReport {
    pub(super) fn new(dry_run: bool, warnings: Vec<String>) -> Self {
        Self { dry_run, complete: true, warnings, ..Self::default() }
    }

    /// Whether there was nothing to forget.
    pub fn is_nothing(&self) -> bool {
        self.messages.is_empty()
            && self.files.iter().all(Erased::is_nothing)
            && self.agents.iter().all(ForgottenInAgent::is_nothing)
    }
}

impl ForgottenInAgent {
    fn is_nothing(&self) -> bool {
        self.segments + self.facts + self.tool_results + self.engine_values == 0
    }
}
