//! The paths tried while searching for an engine.

use std::path::{Path, PathBuf};

use ctx_core::Error;
use serde::Serialize;

use super::FolderKind;

/// Every path tried, in order, and the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SearchTrace {
    /// The steps.
    pub steps: Vec<SearchStep>,
}

/// One path that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchStep {
    /// The path.
    pub path: PathBuf,
    /// The place it belongs to.
    pub place: FolderKind,
    /// The outcome.
    pub outcome: SearchOutcome,
    /// Why it was skipped or rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A hint for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The outcome for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SearchOutcome {
    /// It does not exist.
    Absent,
    /// The folder was searched.
    Searched,
    /// It exists, but is ignored.
    PassedOver,
    /// It was selected.
    Found,
    /// It comes first in the search order, but is invalid.
    Refused,
}

impl SearchTrace {
    pub(super) fn add(&mut self, place: FolderKind, path: &Path, outcome: SearchOutcome) {
        let (path, reason, hint) = (path.to_owned(), None, None);
        self.steps.push(SearchStep { path, place, outcome, reason, hint });
    }

    pub(super) fn pass_over(&mut self, place: FolderKind, path: &Path, reason: impl Into<String>) {
        self.add(place, path, SearchOutcome::PassedOver);
        self.explain(Some(reason.into()), None);
    }

    pub(super) fn refuse(&mut self, place: FolderKind, path: &Path, error: &Error) {
        self.add(place, path, SearchOutcome::Refused);
        self.explain(Some(error.to_string()), error.hint_text().map(str::to_owned));
    }

    fn explain(&mut self, reason: Option<String>, hint: Option<String>) {
        if let Some(step) = self.steps.last_mut() {
            (step.reason, step.hint) = (reason, hint);
        }
    }
}
