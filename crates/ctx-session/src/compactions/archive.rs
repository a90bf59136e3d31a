//! Archived copies of rewritten sessions, and cleanup after rewrites that were killed.

use std::io;
use std::path::{Path, PathBuf};

use ctx_core::Result;

use crate::disk;

const SUFFIX: &str = ".archived-";

/// The number of bytes that are compared at once.
const STEP: u64 = 64 << 10;

/// Returns an unused name beside the session.
pub(super) fn free_name(path: &Path) -> Result<PathBuf> {
    let mut n = 1u32;
    loop {
        let name = disk::beside(path, &format!("{SUFFIX}{n}"));
        match name.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(name),
            Err(e) => return Err(disk::io_error("cannot find an unused name", &name, e)),
            Ok(_) => n += 1,
        }
    }
}

/// Creates a durable hard link to the session, or a copy if the file system has no hard links.
pub(super) fn archive(path: &Path, archived: &Path) -> Result<()> {
    let failed = |e| disk::io_error("cannot archive the session", archived, e);
    match std::fs::hard_link(path, archived) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(failed(e)),
        Err(_) => disk::copy_new(path, 0, archived).map_err(failed)?,
        Ok(()) => {}
    }
    disk::sync_dir(disk::parent(path))
}

/// Returns the archives that rewrites of a session left beside it, oldest first.
pub(crate) fn archives_of(path: &Path) -> Vec<PathBuf> {
    let numbered = |(suffix, file): (String, PathBuf)| {
        Some((suffix.strip_prefix(SUFFIX)?.parse::<u32>().ok()?, file))
    };
    let mut found: Vec<_> = disk::list_beside(path).into_iter().filter_map(numbered).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Removes leftovers of rewrites that did not complete: new files that were not moved into place,
/// and archives that are a prefix of the current session. The caller holds the session's lock, so
/// no such file is in use.
///
/// Best effort: files that cannot be removed stay.
pub(crate) fn clear_stale(path: &Path) {
    for (suffix, file) in disk::list_beside(path) {
        let is_file = || file.symlink_metadata().is_ok_and(|found| found.is_file());
        let is_stale = match suffix.strip_prefix(SUFFIX) {
            Some(n) => n.parse::<u32>().is_ok() && is_file() && is_beginning(&file, path),
            None => disk::is_temporary(&suffix) && is_file(),
        };
        if is_stale {
            // A leftover file does no harm.
            let _ = std::fs::remove_file(&file);
        }
    }
}

/// Whether `whole` begins with the content of `part`; also true if both are the same file. Errors
/// count as `false`.
fn is_beginning(part: &Path, whole: &Path) -> bool {
    let compare = || -> io::Result<bool> {
        let (part, whole) = (disk::open(part)?, disk::open(whole)?);
        let (len, mut at) = (part.metadata()?.len(), 0);
        while at < len {
            let left = disk::read_at(&part, at, STEP)?;
            if left.is_empty() || left != disk::read_at(&whole, at, left.len() as u64)? {
                return Ok(false);
            }
            at += left.len() as u64;
        }
        Ok(true)
    };
    compare().unwrap_or(false)
}
