//! What cannot be meant, or could mean several things, is refused before anything is done.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ctx_core::{ContentHash, Error, ErrorKind, Result};
use ctx_memory::text::{is_emoji, weight};

use super::{Forget, ForgottenMessage};

/// Shorter texts are in everything, but for pictures.
const SHORTEST: usize = 3;

/// So many places are named, where a name means several.
const NAMED: usize = 4;

/// Refuses what says nothing.
pub(super) fn asked(what: &Forget) -> Result<()> {
    let nothing = what.entries.is_empty() && what.session.is_none() && what.matching.is_none();
    let is_short = |text: &String| weight(text) < SHORTEST && !text.chars().any(is_emoji);
    if nothing {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not said what to forget")
            .hint("give --entry, --session or --matching"));
    }
    if what.matching.as_ref().is_some_and(is_short) {
        return Err(Error::new(ErrorKind::InvalidInput, "the text to forget is too short")
            .with("fewest characters", SHORTEST)
            .hint(
                "every message holds a text as short as that: give more of it (of Chinese, two \
                 characters will do)",
            ));
    }
    let is_empty = |text: &String| text.trim().is_empty();
    if what.entries.iter().chain(&what.session).any(is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "a name is empty")
            .hint("name the entry or the session"));
    }
    Ok(())
}

/// Refuses the name of a session that is the name of several.
pub(super) fn session(named: Option<&str>, found: &BTreeSet<PathBuf>) -> Result<()> {
    let Some(named) = named.filter(|_| found.len() > 1) else { return Ok(()) };
    Err(Error::new(ErrorKind::InvalidInput, "several sessions have that name")
        .with("session", named)
        .with("sessions", paths(found))
        .hint("say which one by its key or its path"))
}

/// Refuses an id that means one thing here and another there. Copies of a session have the same
/// entries under the same ids: those are one.
pub(super) fn entry(id: &str, found: &[(PathBuf, ContentHash)]) -> Result<()> {
    if found.iter().all(|(_, hash)| Some(hash) == found.first().map(|(_, hash)| hash)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "several sessions have an entry of that id")
        .with("entry", id)
        .with("sessions", paths(found.iter().map(|(path, _)| path)))
        .hint("say which one with --session, by its key, its id or its path"))
}

/// Refuses entries that nobody has, and those that could be several of the archive.
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
            .hint("say which one with --session"));
        }
        begun(id, entries.iter().copied())?;
        if sessions.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "no session has a message of that id")
                .with("entry", id)
                .hint(
                    "`ctx memory search` prints the entries of what it finds; a transcript outside \
                     of the home is looked into where it is named: `ctx memory forget FILE --entry ID`",
                ));
        }
    }
    Ok(())
}

/// Refuses the beginning of the ids of several entries that no transcript has any more. A whole id is
/// meant before the beginning of others.
pub(super) fn begun<'a>(id: &str, found: impl Iterator<Item = &'a str>) -> Result<()> {
    let entries: BTreeSet<&str> = found.collect();
    if entries.len() < 2 || entries.contains(id) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "several entries begin with that id")
        .with("entry", id)
        .with("entries", list(&entries))
        .hint("give more of the id"))
}

/// Refuses a session that nobody knows.
pub(super) fn unknown_session(named: &str) -> Error {
    Error::new(ErrorKind::NotFound, "there is no session of that name")
        .with("session", named)
        .hint("`ctx sessions` lists their keys; the path of a transcript will do as well")
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ")
}

fn paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let shown = paths.into_iter().take(NAMED).map(|path| path.display().to_string());
    shown.collect::<Vec<_>>().join(", ")
}
