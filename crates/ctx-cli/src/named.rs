//! Entries by the ids that people give, and ids as people are shown them.

use std::path::Path;

use ctx_core::{EntryId, Error, ErrorKind};
pub(crate) use ctx_runtime::cited::ID_CHARS;
use ctx_runtime::cited::find_entry as find;
use ctx_session::Transcript;

use crate::words::{harmless, shortened};

/// How much of an id is shown: ever more parts of a UUID.
const SHORT_ID_CHARS: [usize; 4] = [8, 13, 18, 23];

/// The entry of that id, or the one whose id begins so, if no other does.
pub(crate) fn find_entry(transcript: &Transcript, id: &str) -> anyhow::Result<EntryId> {
    Ok(find(transcript, id).map_err(lists_entries)?)
}

/// Says where ids are found of which there was none.
pub(crate) fn lists_entries(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound if error.hint_text().is_none() => {
            error.hint("`ctx convert SESSION --to pi` prints every entry with its id")
        }
        _ => error,
    }
}

/// As [`find_entry`], where it is to be a compaction of that session, or what undid one.
pub(crate) fn find_compaction(
    transcript: &Transcript,
    session: &Path,
    id: &str,
) -> anyhow::Result<EntryId> {
    Ok(find(transcript, id).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.hint(lists_compactions(session)),
        _ => error,
    })?)
}

/// Where to find the ids of compactions.
pub(crate) fn lists_compactions(session: &Path) -> String {
    format!("`ctx compactions {}` lists them", session.display())
}

/// Ids as short as [`find_entry`] takes them.
pub(crate) struct ShortIds<'t> {
    sorted: Vec<&'t str>,
}

impl<'t> ShortIds<'t> {
    pub(crate) fn of(transcript: &'t Transcript) -> Self {
        let mut sorted: Vec<&str> =
            transcript.entries().iter().map(|entry| &**entry.id()).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// The shortest beginning of an id that no other id has. An id that is not long, is not in the
    /// transcript, or whose beginnings are those of others, is shown in full.
    pub(crate) fn show(&self, id: &str) -> String {
        let beginning = |chars: usize| id.chars().take(chars).collect::<String>();
        let found = SHORT_ID_CHARS.iter().map(|&chars| beginning(chars)).find(|b| self.is_only(b));
        found.map_or_else(|| shortened(id, ID_CHARS), |begin| harmless(&begin))
    }

    /// Whether one id begins so, and no more than one.
    fn is_only(&self, begin: &str) -> bool {
        let at = self.sorted.partition_point(|id| *id < begin);
        let begins = |at: usize| self.sorted.get(at).is_some_and(|id| id.starts_with(begin));
        begins(at) && !begins(at + 1)
    }
}
