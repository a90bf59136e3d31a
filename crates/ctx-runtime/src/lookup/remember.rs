//! A fact that somebody asked to keep.

use std::sync::Mutex;

use ctx_core::{Error, ErrorKind, Result, Timestamp};
use ctx_memory::Redactor;
use ctx_memory::facts::{Candidate, FactKind, FactStore, Learned};

use super::Lookup;
use crate::session::locked;

/// Keeps what a person says is so, without what looks like a secret: gives the words that are kept
/// and what came of them. It waits for the disk.
pub(crate) fn remember(
    facts: &Mutex<FactStore>,
    session: &str,
    text: &str,
    now: Timestamp,
) -> Result<(String, Learned)> {
    let kept = Redactor::builtin().redact(text).text.into_owned();
    let candidate = Candidate {
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
    /// Keeps a fact of a session, without what looks like a secret: gives the words that are kept, and
    /// what came of them. It waits for the disk.
    ///
    /// # Errors
    ///
    /// Where the facts cannot be read or written.
    pub fn remember(&self, session: &str, text: &str, now: Timestamp) -> Result<(String, Learned)> {
        let Some(facts) = &self.facts else {
            let failed =
                Error::new(ErrorKind::Io, "there is no place for facts: they cannot be read");
            return Err(failed
                .with("folder", self.folder.display())
                .hint("`ctx memory stats` says what is wrong with them"));
        };
        remember(facts, session, text, now)
    }
}
