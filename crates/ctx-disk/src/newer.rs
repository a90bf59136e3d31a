//! Refusal of files that a newer ctx wrote.

use std::fmt;

use ctx_core::{Error, ErrorKind};

/// Why a file is refused: this program could lose data that the newer one stored.
#[derive(Debug)]
struct Newer;

impl fmt::Display for Newer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a newer ctx wrote it")
    }
}

impl std::error::Error for Newer {}

/// Returns the error for a file whose version is newer than all known ones.
#[must_use]
pub fn newer(what: &str, found: impl fmt::Display, known: impl fmt::Display) -> Error {
    Error::new(ErrorKind::UnknownFormat, format!("unsupported version of the {what}"))
        .with("version", found)
        .with("supported", known)
        .hint("update ctx")
        .source(Newer)
}

/// Whether a file was refused because a newer ctx wrote it.
#[must_use]
pub fn is_newer(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<Newer>())
}
