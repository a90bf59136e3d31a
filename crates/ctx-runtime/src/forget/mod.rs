//! Forgetting: erases messages from every place that stores them, with all data derived from them.
//!
//! ```text
//! request --> places (sessions, overlays, memories) --> entries, segments --> plan
//! plan --> facts, tool results, index, vectors, archive, summaries of lost files --> transcripts
//! ```
//!
//! The data that identifies what to erase is erased last. If a run is killed, every file is either
//! unchanged or rewritten, and the next run continues.

mod check;
mod memory;
mod note_index;
mod opened_session;
mod overlays;
mod plan;
mod project;
mod report;
mod search_text;
mod sweep;
mod targets;
mod tool_results;
mod transcripts;
mod values;

pub(crate) use note_index::NoteIndex;

use std::path::PathBuf;

pub use memory::MemoryToErase;
pub use plan::ForgetPlan;
pub use project::ForgottenProject;
pub use report::{ForgetReport, ForgottenInAgent, ForgottenMessage, RemainingCopy};

/// What to forget. With a session, `entries` and `matching` are limited to that session; without
/// them, the whole session is forgotten.
#[derive(Clone, Debug, Default)]
pub struct ForgetRequest {
    /// Messages by the ids of their entries, or by unambiguous prefixes of these ids.
    pub entries: Vec<String>,
    /// A session: its key, its id, or the path of its transcript.
    pub session: Option<String>,
    /// Every message that contains this text, ignoring case.
    pub matching: Option<String>,
    /// Transcripts to search besides those of the home.
    pub files: Vec<PathBuf>,
    /// Whether to write nothing, not even pending entries of a journal.
    pub dry_run: bool,
}

impl ForgetRequest {
    /// Whether a whole session is forgotten.
    fn is_whole(&self) -> bool {
        self.session.is_some() && self.entries.is_empty() && self.matching.is_none()
    }
}
