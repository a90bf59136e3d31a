//! Reads a file of the folder as text.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::hash::FileHash;
use crate::walk;
use ctx_redact::Redactor;

/// The number of bytes searched for a NUL, as in git.
const LOOKED_AT: usize = 8_000;

/// The result of reading a file.
pub(super) enum Content {
    Text(Text),
    Binary(FileHash),
    Large,
    /// It does not exist, is not a file, leads out of the folder, or may not be read.
    Unreadable,
}

/// A file's redacted text, with the same line numbers as the file.
pub(super) struct Text {
    pub(super) hash: FileHash,
    pub(super) text: String,
}

/// Reads a file of the folder `root`, which is a canonical path.
pub(super) fn read(root: &Path, path: &str, largest: u64) -> Content {
    let Some(bytes) = bytes(root, path, largest) else { return Content::Unreadable };
    if bytes.len() as u64 > largest {
        return Content::Large;
    }
    let hash = FileHash::of(&bytes);
    if bytes[..bytes.len().min(LOOKED_AT)].contains(&0) {
        return Content::Binary(hash);
    }
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Content::Text(Text { hash, text: Redactor::builtin().redact_lines(text).text.into_owned() })
}

/// Returns the hash of a file; `None` if it cannot be read or is larger than `largest`.
pub(super) fn hash(root: &Path, path: &str, largest: u64) -> Option<FileHash> {
    let bytes = bytes(root, path, largest).filter(|bytes| bytes.len() as u64 <= largest)?;
    Some(FileHash::of(&bytes))
}

/// Reads at most one byte more than `largest`.
fn bytes(root: &Path, path: &str, largest: u64) -> Option<Vec<u8>> {
    walk::place(root, path)?;
    let file = open(root, path).ok()?;
    // Queried from the open file: by now, the name may refer to another file.
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(largest)).ok()? + 1);
    file.take(largest.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a file, folder by folder: no folder on the path may be a link, even if it changes
/// meanwhile. A pipe is opened without waiting for a writer.
#[cfg(unix)]
fn open(root: &Path, path: &str) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open, openat};
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let file = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut at = open(root, folder, Mode::empty())?;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { folder } else { file };
        at = openat(&at, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at.into())
}

#[cfg(not(unix))]
fn open(root: &Path, path: &str) -> io::Result<File> {
    let place = root.join(path);
    let is_inside = place.canonicalize()?.starts_with(root);
    if !is_inside || !place.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    ctx_disk::open(place)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_through_a_link_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("w"), dir.path().join("o"));
        for folder in [&root.join("in"), &outside] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("a.md"), "apple").unwrap();
        }
        assert!(open(&root, "in/a.md").is_ok());
        symlink(outside.join("a.md"), root.join("in/b.md")).unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink(root.join("in"), root.join("same")).unwrap();
        for path in ["in/b.md", "out/a.md", "same/a.md", "in/none.md"] {
            assert!(open(&root, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_pipe_in_place_of_a_file_does_not_block() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("p");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(open(dir.path(), "p").is_ok(), "opened, though nobody writes");
        assert!(matches!(read(dir.path(), "p", 100), Content::Unreadable));
    }
}
