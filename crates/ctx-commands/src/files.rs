//! Output files of commands: never over the transcript, and pages of ctx over earlier ones.

use std::io::{Read, Write};
use std::path::Path;

use ctx_core::{Error, ErrorKind};
use ctx_terminal::files::{Existing, Readers, write};

/// Number of bytes checked to recognise an earlier page.
const PAGE_HEAD: u64 = 4096;

/// Strings near the beginning of every page of ctx.
const PAGE_MARKS: [&str; 4] = [
    "<title>ctx replay</title>",
    "<title>ctx eval</title>",
    "<title>ctx eval compact</title>",
    "<title>ctx stats</title>",
];

/// Returns `Replace` for an earlier page, and for other files only with `force`.
pub(crate) fn earlier_page(path: &Path, force: bool) -> Existing {
    Existing::replaced_if(force || is_page(path))
}

fn is_page(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = ctx_disk::open(path).and_then(|file| file.take(PAGE_HEAD).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && PAGE_MARKS.iter().any(|mark| head.contains(mark))
}

/// Writes output made from the transcript `source` to another file. The transcript itself is never
/// replaced, even with force.
pub(crate) fn write_beside<T>(
    source: &Path,
    path: &Path,
    existing: Existing,
    with: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    write_for(Readers::Usual, source, path, existing, with)
}

/// As [`write_beside`], with a choice of readers.
pub(crate) fn write_for<T>(
    readers: Readers,
    source: &Path,
    path: &Path,
    existing: Existing,
    with: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if is_same_file(source, path) {
        let error = Error::new(ErrorKind::Conflict, "the output would replace the transcript");
        return Err(error.with("path", path.display()).hint("name another output file").into());
    }
    write(readers, path, existing, with)
}

/// Whether both paths lead to one file. A file that does not exist differs from every other.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
