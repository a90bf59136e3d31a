//! A file of the folder as text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::hash::FileHash;
use super::walk;
use crate::Redactor;

/// Who looks for a NUL looks this far, as git does.
const LOOKED_AT: usize = 8_000;

/// What became of reading a file.
pub(super) enum Content {
    Text(Text),
    Binary(FileHash),
    Large,
    /// It is gone, is no file any more, or leads out of the folder.
    Unreadable,
}

/// A file's text, without secrets; lines are where they are in the file.
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

/// At most one byte more than `largest`.
fn bytes(root: &Path, path: &str, largest: u64) -> Option<Vec<u8>> {
    let place = walk::place(root, path)?;
    // A folder on the way may have become a link since.
    let is_inside = place.canonicalize().ok()?.starts_with(root);
    let metadata = place.symlink_metadata().ok()?;
    if !is_inside || !metadata.is_file() {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(largest)).ok()? + 1);
    File::open(&place).ok()?.take(largest.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
