//! Where a session stays as it was when it is written anew, and what is left of rewrites that were
//! killed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::Result;

use crate::disk;

const SUFFIX: &str = ".archived-";

/// A name beside the session that is not taken.
pub(super) fn free_name(path: &Path) -> Result<PathBuf> {
    let mut n = 1u32;
    loop {
        let name = disk::beside(path, &format!("{SUFFIX}{n}"));
        match name.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(name),
            Err(e) => return Err(disk::io_error("cannot look for a name", &name, e)),
            Ok(_) => n += 1,
        }
    }
}

/// Gives the session a second name, durably, or a copy where the file system knows no such thing.
pub(super) fn archive(path: &Path, archived: &Path) -> Result<()> {
    let failed = |e| disk::io_error("cannot archive the session", archived, e);
    match std::fs::hard_link(path, archived) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(failed(e)),
        Err(_) => {
            let copy = || {
                let mut copy = disk::private().write(true).create_new(true).open(archived)?;
                io::copy(&mut disk::open(path)?, &mut copy)?;
                copy.sync_all()
            };
            copy().map_err(failed)?;
        }
        Ok(()) => {}
    }
    disk::sync_dir(disk::parent(path))
}

/// The files beside the session that hold it as it was before it was rewritten, oldest first.
pub(crate) fn archives_of(path: &Path) -> Vec<PathBuf> {
    let own = path.file_name().unwrap_or_default().as_encoded_bytes();
    let Ok(folder) = std::fs::read_dir(disk::parent(path)) else { return Vec::new() };
    let mut found = Vec::new();
    for file in folder.flatten() {
        let name = file.file_name();
        let suffix = name.as_encoded_bytes().strip_prefix(own);
        let suffix = suffix.and_then(|suffix| std::str::from_utf8(suffix).ok());
        let n = suffix.and_then(|suffix| suffix.strip_prefix(SUFFIX)?.parse::<u32>().ok());
        found.extend(n.map(|n| (n, file.path())));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Takes away what rewrites left that came to no end: new files that were not put in place, and
/// archives that hold nothing but what the session still begins with. The caller holds the lock of
/// the session, so that none of it is in use.
///
/// Nothing depends on it: what cannot be taken away stays.
pub(crate) fn clear_stale(path: &Path) {
    let Some(own) = path.file_name() else { return };
    let Ok(folder) = std::fs::read_dir(disk::parent(path)) else { return };
    for file in folder.flatten() {
        let name = file.file_name();
        let suffix = name.as_encoded_bytes().strip_prefix(own.as_encoded_bytes());
        let Some(suffix) = suffix.and_then(|suffix| std::str::from_utf8(suffix).ok()) else {
            continue;
        };
        let is_file = || file.file_type().is_ok_and(|kind| kind.is_file());
        let is_stale = match suffix.strip_prefix(SUFFIX) {
            Some(n) => n.parse::<u32>().is_ok() && is_file() && is_beginning(&file.path(), path),
            None => disk::is_temporary(suffix) && is_file(),
        };
        if is_stale {
            // What stays is in the way of nothing.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Whether `whole` begins with all that `part` holds, as it does where they are one file. In doubt
/// it does not.
fn is_beginning(part: &Path, whole: &Path) -> bool {
    let compare = || -> io::Result<bool> {
        let (part, whole) = (disk::open(part)?, disk::open(whole)?);
        let len = part.metadata()?.len();
        if len > whole.metadata()?.len() {
            return Ok(false);
        }
        let (mut part, mut whole) = (BufReader::new(part), BufReader::new(whole.take(len)));
        loop {
            let (left, right) = (part.fill_buf()?, whole.fill_buf()?);
            let common = left.len().min(right.len());
            if common == 0 {
                return Ok(left.is_empty() && right.is_empty());
            }
            if left[..common] != right[..common] {
                return Ok(false);
            }
            part.consume(common);
            whole.consume(common);
        }
    };
    compare().unwrap_or(false)
}
