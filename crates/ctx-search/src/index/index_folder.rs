//! The folder of the index. A user may have put files there: only files made by tantivy are
//! deleted.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use ctx_core::{Error, ErrorKind, Result};

/// tantivy's list of its own files. A folder without it is not an index of ctx.
const LIST: &str = ".managed.json";

/// tantivy's files that do not belong to a segment.
const OURS: [&str; 4] = ["meta.json", LIST, ".tantivy-meta.lock", ".tantivy-writer.lock"];

/// The extensions of tantivy's segment files.
const ENDS: [&str; 8] = ["store", "term", "idx", "pos", "fast", "fieldnorm", "del", "temp"];

/// Files that file systems and desktops create in any folder. They are ignored and never deleted.
const ANYWHERE: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];

/// Checks that an index may be created in `folder`, or exists there.
///
/// # Errors
///
/// [`ErrorKind::Io`] if it is a file, or holds foreign files.
pub fn check(folder: &Path) -> Result<()> {
    if fs::metadata(folder).is_ok_and(|there| !there.is_dir()) {
        return Err(taken()
            .with("path", folder.display())
            .hint(format!("it is a file: remove {} and the index is rebuilt", folder.display())));
    }
    // A folder that cannot be listed is reported when it is opened.
    let found = FolderListing::list(folder).unwrap_or_default();
    match found.others.first() {
        Some(other) if !found.is_ours() => {
            let path = folder.join(other);
            Err(taken().with("path", path.display()).hint(format!(
                "ctx deletes none of it: move files that are not of ctx out of {} and the index is rebuilt",
                folder.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Deletes the index in `folder` and nothing else. A missing index is not an error.
///
/// # Errors
///
/// [`ErrorKind::Io`] if the folder cannot be listed, or a file of the index cannot be deleted.
pub fn clear(folder: &Path) -> Result<()> {
    let refused = |error: io::Error| {
        Error::new(ErrorKind::Io, "the lexical index cannot be deleted")
            .with("folder", folder.display())
            .source(error)
            .hint("check the owner and the permissions of the folder")
    };
    let mut found = FolderListing::list(folder).map_err(refused)?;
    if !found.others.is_empty() && !found.is_ours() {
        return Ok(());
    }
    // The list is deleted last: until then it identifies the other files.
    found.ours.sort_by_key(|name| name == LIST);
    for name in &found.ours {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {}
        }
    }
    // Removes an empty folder; a folder with foreign files stays.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// The names in a folder.
#[derive(Debug, Default)]
struct FolderListing {
    ours: Vec<OsString>,
    others: Vec<OsString>,
}

impl FolderListing {
    /// Lists a folder; empty if it does not exist.
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
    // Files that are replaced atomically have such a name first.
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
    Error::new(ErrorKind::Io, "the folder of the lexical index contains other files")
}
