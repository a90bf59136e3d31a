//! Rejects invalid and ambiguous requests before anything is erased.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ctx_core::{ContentHash, Error, ErrorKind, Result};
use ctx_text::{is_emoji, width};

use super::{ForgetRequest, ForgottenMessage};

/// Minimum width of a search text, except for emoji: shorter ones match almost everything.
const SHORTEST: usize = 3;

/// Maximum number of places listed when a name is ambiguous.
const NAMED: usize = 4;

/// Rejects a request that is empty or too short.
pub(super) fn request(what: &ForgetRequest) -> Result<()> {
    let nothing = what.entries.is_empty() && what.session.is_none() && what.matching.is_none();
    let is_short = |text: &String| width(text.trim()) < SHORTEST && !text.chars().any(is_emoji);
    if nothing {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "missing entry, session or text to forget",
        )
        .hint("give --entry, --session or --matching"));
    }
    if what.matching.as_ref().is_some_and(is_short) {
        return Err(Error::new(ErrorKind::InvalidInput, "the text to forget is too short")
            .with("minimum characters", SHORTEST)
            .hint(
                "almost every message contains so short a text: give a longer one (in Chinese, two \
                 characters are enough)",
            ));
    }
    let is_empty = |text: &String| text.trim().is_empty();
    if what.entries.iter().chain(&what.session).any(is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "empty entry id or session name")
            .hint("name the entry or the session"));
    }
    Ok(())
}

/// Rejects a session name that several sessions have.
pub(super) fn session(named: Option<&str>, found: &BTreeSet<PathBuf>) -> Result<()> {
    let Some(named) = named.filter(|_| found.len() > 1) else { return Ok(()) };
    Err(Error::new(ErrorKind::InvalidInput, "several sessions have that name")
        .with("session", named)
        .with("sessions", paths(found))
        .hint("name it by its key or its path"))
}

/// Rejects an id that identifies different entries. Copies of a session have the same entries under
/// the same ids and count as one.
pub(super) fn entry(id: &str, found: &[(PathBuf, ContentHash)]) -> Result<()> {
    if found.iter().all(|(_, hash)| Some(hash) == found.first().map(|(_, hash)| hash)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "several sessions have an entry of that id")
        .with("entry", id)
        .with("sessions", paths(found.iter().map(|(path, _)| path)))
        .hint("select one with --session, by its key, its id or its path"))
}

/// Rejects unknown entries, and ids that are ambiguous in the archive.
pub(super) fn archived(unknown: &[String], found: &[(String, ForgottenMessage)]) -> Result<()> {
    for id in unknown {
        let of_id = found.iter().filter(|(_, message)| message.entry.starts_with(id.as_str()));
        let (mut sessions, mut entries) = (BTreeSet::new(), BTreeSet::new());
        for (session, message) in of_id {
            sessions.insert(session.as_str());
            entries.insert(&*message.entry);
        }
        if sessions.len() > 1 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "several sessions of the archive have an entry of that id",
            )
            .with("entry", id)
            .with("sessions", list(&sessions))
            .hint("select one with --session"));
        }
        ambiguous_prefix(id, entries.iter().copied())?;
        if sessions.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "no session has a message of that id")
                .with("entry", id)
                .hint(
                    "`ctx memory search` prints the entry ids of its results; to search a \
                     transcript outside the home, name it: `ctx memory forget FILE --entry ID`",
                ));
        }
    }
    Ok(())
}

/// Rejects an ambiguous prefix of entries that are in no transcript any more. An exact id takes
/// precedence over a prefix.
pub(super) fn ambiguous_prefix<'a>(id: &str, found: impl Iterator<Item = &'a str>) -> Result<()> {
    let entries: BTreeSet<&str> = found.collect();
    if entries.len() < 2 || entries.contains(id) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "several entries begin with that id")
        .with("entry", id)
        .with("entries", list(&entries))
        .hint("give a longer part of the id"))
}

/// Returns the error for an unknown session.
pub(super) fn unknown_session(named: &str) -> Error {
    Error::new(ErrorKind::NotFound, "unknown session")
        .with("session", named)
        .hint("`ctx sessions` lists their keys; the path of a transcript works as well")
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ")
}

fn paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let shown = paths.into_iter().take(NAMED).map(|path| path.display().to_string());
    shown.collect::<Vec<_>>().join(", ")
}
