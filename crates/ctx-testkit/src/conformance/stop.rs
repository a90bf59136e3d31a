//! Why a case ends early.

use ctx_core::Error;
use ctx_core::text::clip;

use super::report::Outcome;

/// Maximum length of a reason, in characters: errors of engines may have any length.
const MAX_CHARS: usize = 400;

/// The result of a case: a figure if it measured something, or why it ended early.
pub(super) type Verdict = Result<Option<String>, Stop>;

/// Why a case ends early.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) outcome: Outcome,
    /// Whether the other cases cannot be run.
    pub(super) is_fatal: bool,
}

impl Stop {
    pub(super) fn failed(reason: impl AsRef<str>, hint: impl Into<String>) -> Self {
        let (reason, hint) = (tidy(reason.as_ref()), hint.into());
        Self { outcome: Outcome::Failed { reason, hint }, is_fatal: false }
    }

    pub(super) fn skipped(why: impl AsRef<str>) -> Self {
        Self { outcome: Outcome::Skipped { reason: tidy(why.as_ref()) }, is_fatal: false }
    }

    /// Returns the failure of an engine that answered with an error.
    pub(super) fn error(verb: &str, error: &Error) -> Self {
        let hint = error.hint_text().map_or_else(
            || format!("'{verb}' must succeed here; see the engine's own log"),
            str::to_owned,
        );
        Self::failed(format!("{verb}: {error}"), hint)
    }

    /// Makes it fatal: the other cases are not run.
    pub(super) fn fatal(self) -> Self {
        Self { is_fatal: true, ..self }
    }
}

/// Fails the case unless `holds`.
pub(super) fn ensure(
    holds: bool,
    reason: impl FnOnce() -> String,
    hint: &'static str,
) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::failed(reason(), hint)) }
}

/// Prepares a text of an engine for a message: truncates it, and replaces control characters.
fn tidy(text: &str) -> String {
    let clipped = clip(text.trim(), MAX_CHARS).replace(['\n', '\t'], " ");
    clipped.replace(char::is_control, "\u{fffd}")
}
