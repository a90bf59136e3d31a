//! The place of the index. A person may have put something of their own there: only what tantivy
//! makes is ever deleted.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use ctx_core::{Error, ErrorKind, Result};

/// tantivy's list of its own files. A folder without it is none of ours, whatever else is in it.
const LIST: &str = ".managed.json";

/// What tantivy calls its files besides those of segments.
const OURS: [&str; 4] = ["meta.json", LIST, ".tantivy-meta.lock", ".tantivy-writer.lock"];

/// The ends of its files of a segment.
const ENDS: [&str; 8] = ["store", "term", "idx", "pos", "fast", "fieldnorm", "del", "temp"];

/// What file systems and desktops put into any folder. It stays, and is in nobody's way.
const ANYWHERE: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];

/// Whether an index may be made in `folder`, or is there already.
///
/// # Errors
///
/// [`ErrorKind::Io`] where it is a file, or holds files that are somebody else's.
pub(crate) fn check(folder: &Path) -> Result<()> {
    if fs::metadata(folder).is_ok_and(|there| !there.is_dir()) {
        return Err(taken().with("path", folder.display()).hint(format!(
            "it is a file: remove {}, and the index is made anew",
            folder.display()
        )));
    }
    // What cannot be listed is told of by who opens it.
    let found = Found::list(folder).unwrap_or_default();
    match found.others.first() {
        Some(other) if !found.is_ours() => {
            let path = folder.join(other);
            Err(taken().with("path", path.display()).hint(format!(
                "nothing of it is deleted: move what is not of ctx out of {}, and the index is made anew",
                folder.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Deletes the index in `folder`, and nothing else. One that is not there is no error.
///
/// # Errors
///
/// [`ErrorKind::Io`] where the folder cannot be listed, or a file of the index not be deleted.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    let refused = |error: io::Error| {
        Error::new(ErrorKind::Io, "the lexical index cannot be deleted")
            .with("folder", folder.display())
            .source(error)
            .hint("check the owner and the permissions of the folder")
    };
    let mut found = Found::list(folder).map_err(refused)?;
    if !found.others.is_empty() && !found.is_ours() {
        return Ok(());
    }
    // The list goes last: until then it says whose the rest is.
    found.ours.sort_by_key(|name| name == LIST);
    for name in &found.ours {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {}
        }
    }
    // One that is empty tells nothing, and one that is not holds what is somebody else's.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The names in a folder.
#[derive(Debug, Default)]
struct Found {
    ours: Vec<OsString>,
    others: Vec<OsString>,
}

impl Found {
    /// What is in a folder; nothing where there is no folder.
    fn list(folder: &Path) -> io::Result<Self> {
        use io::ErrorKind::{NotADirectory, NotFound};
        let mut found = Self::default();
        let entries = match fs::read_dir(folder) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let is_folder = entry.file_type()?.is_dir();
            match name.to_str() {
                Some(name) if ANYWHERE.contains(&name) || name.starts_with(".nfs") => {}
                Some(text) if !is_folder && is_of_tantivy(text) => found.ours.push(name),
                _ => found.others.push(name),
            }
        }
        found.others.sort();
        Ok(found)
    }

    fn is_ours(&self) -> bool {
        self.ours.iter().any(|name| name == LIST)
    }
}

fn is_of_tantivy(name: &str) -> bool {
    // Files that are written whole have such a name before they get their own.
    let is_temporary = name
        .strip_prefix(".tmp")
        .is_some_and(|rest| rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    let is_of_segment = name.split_once('.').is_some_and(|(id, rest)| {
        let end = rest.rsplit('.').next().unwrap_or_default();
        id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) && ENDS.contains(&end)
    });
    OURS.contains(&name) || is_temporary || is_of_segment
}

fn taken() -> Error {
    Error::new(ErrorKind::Io, "the place of the lexical index is taken")
}
