//! Entries by the ids that people give, and ids as people are shown them.

use std::path::Path;

use ctx_core::{EntryId, Error, ErrorKind};
use ctx_session::Transcript;

use crate::words::{harmless, shortened};

/// Room for an id: a UUID and a little more.
pub(crate) const ID_CHARS: usize = 40;

/// How many ids are named that begin alike.
const ALIKE: usize = 4;

/// How much of an id is shown: ever more parts of a UUID.
const SHORT_ID_CHARS: [usize; 4] = [8, 13, 18, 23];

/// The entry of that id, or the one whose id begins so, if no other does.
pub(crate) fn find_entry(transcript: &Transcript, id: &str) -> anyhow::Result<EntryId> {
    let hint = "`ctx convert SESSION --to pi` prints every entry with its id";
    Ok(find(transcript, id).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.hint(hint),
        _ => error,
    })?)
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

fn find(transcript: &Transcript, id: &str) -> Result<EntryId, Error> {
    if let Some(found) = transcript.find(id) {
        return Ok(found);
    }
    let named = shortened(id, ID_CHARS);
    let ids = transcript.entries().iter().map(|entry| entry.id());
    let alike = ids.filter(|known| !id.is_empty() && known.starts_with(id));
    let alike: Vec<String> = alike.take(ALIKE).map(|known| shortened(known, ID_CHARS)).collect();
    let error = match alike.as_slice() {
        [] => Error::new(ErrorKind::NotFound, format!("no entry '{named}'")),
        some => Error::new(ErrorKind::InvalidInput, format!("several ids begin with '{named}'"))
            .hint(format!("give more of it; among them are {}", some.join(", "))),
    };
    Err(error)
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
