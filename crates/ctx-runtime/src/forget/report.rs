//! What was forgotten, and where.

use std::path::PathBuf;

use ctx_core::{EntryId, Role};
use ctx_session::erase::Erased;
use serde::Serialize;

/// What was forgotten; or, after a dry run, what would be.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forgotten {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Whether everything that ctx may write was reached. If not, the same call again ends it.
    pub complete: bool,
    /// The messages.
    pub messages: Vec<ForgottenMessage>,
    /// What went from transcripts and from what stands beside them.
    pub files: Vec<Erased>,
    /// What went from the memory of each agent.
    pub agents: Vec<InAgent>,
    /// Who still holds it, and why that is so.
    pub still_held: Vec<StillHeld>,
    /// What did not work.
    pub warnings: Vec<String>,
    /// Where else it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgottenMessage {
    /// Its entry; in the archive, the segment where that is of no entry.
    pub entry: EntryId,
    /// The transcript; absent where only the archive has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Who said it.
    pub role: Role,
    /// How it begins; absent once it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
}

/// What went from the memory of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InAgent {
    /// The agent.
    pub agent: String,
    /// Segments of the archive, and so of the index.
    pub segments: usize,
    /// Vectors.
    pub vectors: usize,
    /// Facts.
    pub facts: usize,
    /// Files of tool results.
    pub tool_results: usize,
    /// Values that engines kept of the session.
    pub engine_values: usize,
}

/// A file that still holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StillHeld {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

impl Forgotten {
    pub(super) fn new(dry_run: bool, warnings: Vec<String>) -> Self {
        Self {
            dry_run,
            complete: true,
            messages: Vec::new(),
            files: Vec::new(),
            agents: Vec::new(),
            still_held: Vec::new(),
            warnings,
            hint: None,
        }
    }

    /// Whether there was nothing to forget.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.messages.is_empty()
            && self.files.iter().all(Erased::is_nothing)
            && self.agents.iter().all(InAgent::is_nothing)
    }
}

impl InAgent {
    fn is_nothing(&self) -> bool {
        self.segments + self.facts + self.tool_results + self.engine_values == 0
    }
}
