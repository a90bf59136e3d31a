//! Forgetting: what was said goes from wherever it was kept, with everything that was drawn from it.
//!
//! ```text
//! what is asked --> places (sessions, overlays, memories) --> entries, segments --> plan
//! plan --> facts, tool results, index, vectors, archive, summaries of lost files --> transcripts
//! ```
//!
//! What tells what is to be forgotten goes last. So a run that was killed leaves every file old or
//! new, and the next one finds what is left and ends it.

mod check;
mod lost;
mod memories;
mod notes;
mod opened;
mod places;
mod plan;
mod project;
mod report;
mod results;
mod run;
mod sweep;
mod values;
mod words;

pub(crate) use notes::Notes;
pub(crate) use places::listed;

use std::path::PathBuf;

pub use memories::Remembered;
pub use project::ForgottenProject;
pub use report::{Forgotten, ForgottenMessage, InAgent, StillHeld};
pub use run::Forgetting;

/// What is to be forgotten. With a session, `entries` and `matching` mean only what was said in it;
/// alone, it goes as a whole.
#[derive(Clone, Debug, Default)]
pub struct Forget {
    /// Messages by the ids of their entries, or the beginnings of those, if those tell which.
    pub entries: Vec<String>,
    /// A session: its key, its id, or the path of its transcript.
    pub session: Option<String>,
    /// Every message that holds this text, whatever the case of its letters.
    pub matching: Option<String>,
    /// Transcripts to look into besides those of the home.
    pub files: Vec<PathBuf>,
    /// Nothing is to be written, not even what a journal still holds.
    pub dry_run: bool,
}

impl Forget {
    /// Whether a whole session goes.
    fn is_whole(&self) -> bool {
        self.session.is_some() && self.entries.is_empty() && self.matching.is_none()
    }
}
