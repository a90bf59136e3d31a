//! Stores a fact on explicit request.

use std::sync::Mutex;

use ctx_core::{Error, ErrorKind, Result, Timestamp};
use ctx_memory::facts::{FactCandidate, FactKind, FactStore, LearnOutcome};
use ctx_redact::Redactor;

use super::Lookup;
use crate::sync::locked;

/// Stores a statement of the user, with secrets redacted. Returns the stored text and the result.
/// Waits for the disk.
pub(crate) fn remember(
    facts: &Mutex<FactStore>,
    session: &str,
    text: &str,
    now: Timestamp,
) -> Result<(String, LearnOutcome)> {
    let kept = Redactor::builtin().redact(text).text.into_owned();
    let candidate = FactCandidate {
        kind: FactKind::Decision,
        content: kept.clone(),
        context: String::new(),
        timestamp: now,
        source_entry_ids: Vec::new(),
        session_id: session.to_owned(),
    };
    Ok((kept, locked(facts).learn([candidate])?))
}

impl Lookup {
    /// Stores a fact of a session, with secrets redacted. Returns the stored text and the result.
    /// Waits for the disk.
    ///
    /// # Errors
    ///
    /// If the facts cannot be read or written.
    pub fn remember(
        &self,
        session: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<(String, LearnOutcome)> {
        let Some(facts) = &self.facts else {
            let failed =
                Error::new(ErrorKind::Io, "cannot store the fact: the facts cannot be read");
            return Err(failed
                .with("folder", self.folder.display())
                .hint("`ctx memory stats` shows the problem"));
        };
        remember(facts, session, text, now)
    }
}
