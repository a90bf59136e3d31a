//! What was tried on the way to an engine.

use std::path::{Path, PathBuf};

use ctx_core::Error;
use serde::Serialize;

use super::PlaceKind;

/// Every place tried, in order, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Trace {
    /// One step each.
    pub steps: Vec<Step>,
}

/// One path that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The path.
    pub path: PathBuf,
    /// The place it belongs to.
    pub place: PlaceKind,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it was passed over or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What came of a path that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Nothing is there.
    Absent,
    /// The folder was looked into.
    Searched,
    /// It is there and does not count.
    PassedOver,
    /// It was taken.
    Found,
    /// It decides, and is not sound.
    Refused,
}

impl Trace {
    pub(super) fn add(&mut self, place: PlaceKind, path: &Path, outcome: Outcome) {
        let (path, reason, hint) = (path.to_owned(), None, None);
        self.steps.push(Step { path, place, outcome, reason, hint });
    }

    pub(super) fn pass_over(&mut self, place: PlaceKind, path: &Path, reason: impl Into<String>) {
        self.add(place, path, Outcome::PassedOver);
        self.explain(Some(reason.into()), None);
    }

    pub(super) fn refuse(&mut self, place: PlaceKind, path: &Path, error: &Error) {
        self.add(place, path, Outcome::Refused);
        self.explain(Some(error.to_string()), error.hint_text().map(str::to_owned));
    }

    fn explain(&mut self, reason: Option<String>, hint: Option<String>) {
        if let Some(step) = self.steps.last_mut() {
            (step.reason, step.hint) = (reason, hint);
        }
    }
}
