//! Why a case ends early.

use ctx_core::Error;

/// The longest reason, in characters: engines write errors of any length.
const MAX_CHARS: usize = 400;

/// What a case comes to: a figure where it measured something, or why it ended early.
pub(super) type Verdict = Result<Option<String>, Stop>;

/// Why a case ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The engine does not do as it should.
    Failed {
        reason: String,
        hint: String,
        /// Whether there is no engine to run the other cases against.
        is_fatal: bool,
    },
    /// There is nothing to check.
    Skipped(String),
}

impl Stop {
    pub(super) fn failed(reason: impl AsRef<str>, hint: impl Into<String>) -> Self {
        Self::Failed { reason: tidy(reason.as_ref()), hint: hint.into(), is_fatal: false }
    }

    pub(super) fn skipped(why: impl AsRef<str>) -> Self {
        Self::Skipped(tidy(why.as_ref()))
    }

    /// The engine answered with an error.
    pub(super) fn error(verb: &str, error: &Error) -> Self {
        let hint = error.hint_text().map_or_else(
            || format!("'{verb}' has to succeed here; look at the engine's own log"),
            str::to_owned,
        );
        Self::failed(format!("{verb}: {error}"), hint)
    }

    /// The same, but there is no engine to go on with.
    pub(super) fn fatal(self) -> Self {
        match self {
            Self::Failed { reason, hint, .. } => Self::Failed { reason, hint, is_fatal: true },
            skipped => skipped,
        }
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

/// What an engine wrote, as it may stand in a message: short, and nothing that a terminal obeys.
fn tidy(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    let mut tidied: String = text.trim().chars().take(MAX_CHARS).map(plain).collect();
    if text.trim().chars().nth(MAX_CHARS).is_some() {
        tidied.push('…');
    }
    tidied
}
