//! Finds entries by the ids that users give, and shortens ids for display.

use std::path::Path;

use ctx_core::{EntryId, Error, ErrorKind};
pub(crate) use ctx_runtime::lookup::cited::ID_CHARS;
use ctx_runtime::lookup::cited::find_entry as find;
use ctx_session::Transcript;
use ctx_terminal::format::{escaped, shortened};

/// Lengths of a shortened id: the first one to four parts of a UUID.
const SHORT_ID_CHARS: [usize; 4] = [8, 13, 18, 23];

/// Finds an entry by its id or by an unambiguous prefix of its id.
pub(crate) fn find_entry(transcript: &Transcript, id: &str) -> anyhow::Result<EntryId> {
    Ok(find(transcript, id).map_err(lists_entries)?)
}

/// Adds a hint to the error for an unknown id: the command that lists ids.
pub(crate) fn lists_entries(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound if error.hint_text().is_none() => {
            error.hint("`ctx convert SESSION --to pi` prints every entry with its id")
        }
        _ => error,
    }
}

/// As [`find_entry`], for a compaction of that session, or an entry that undid one.
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

/// Returns a hint with the command that lists compactions.
pub(crate) fn lists_compactions(session: &Path) -> String {
    format!("`ctx compactions {}` lists them", session.display())
}

/// Shortens ids to prefixes that [`find_entry`] accepts.
pub(crate) struct ShortIds<'t> {
    sorted: Vec<&'t str>,
}

impl<'t> ShortIds<'t> {
    pub(crate) fn of(transcript: &'t Transcript) -> Self {
        Self::among(transcript.entries.iter().map(|entry| &*entry.id))
    }

    pub(crate) fn among(ids: impl Iterator<Item = &'t str>) -> Self {
        let mut sorted: Vec<&str> = ids.collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    /// Returns the shortest unambiguous prefix of an id. An id that is short, not among
    /// them, or without an unambiguous prefix is returned in full.
    pub(crate) fn show(&self, id: &str) -> String {
        let beginning = |chars: usize| id.chars().take(chars).collect::<String>();
        let found = SHORT_ID_CHARS.iter().map(|&chars| beginning(chars)).find(|b| self.is_only(b));
        found.map_or_else(|| shortened(id, ID_CHARS), |begin| escaped(&begin))
    }

    /// Whether exactly one id begins like this.
    fn is_only(&self, begin: &str) -> bool {
        let at = self.sorted.partition_point(|id| *id < begin);
        let begins = |at: usize| self.sorted.get(at).is_some_and(|id| id.starts_with(begin));
        begins(at) && !begins(at + 1)
    }
}
