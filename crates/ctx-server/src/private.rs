//! Folders and files that nobody but their owner may look into.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

/// What is let go of is so much at once that the next is far: to look for the oldest costs as much as
/// there are files.
const LEFT: f64 = 0.9;

/// The files of a folder: how large they are, and which was used last.
#[derive(Debug, Default)]
pub(crate) struct Files {
    all: HashMap<String, Used>,
    bytes: u64,
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    at: u64,
}

impl Files {
    /// Those that are there, in the order of their changes.
    pub(crate) fn of(folder: &Path, id_of: impl Fn(&Path) -> Option<String>) -> Self {
        let listed = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<(SystemTime, u64, String)> = listed
            .filter_map(|file| {
                let meta = file.metadata().ok()?;
                let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some((changed, meta.len(), id_of(&file.path())?))
            })
            .collect();
        found.sort();
        let mut files = Self::default();
        for (_, bytes, id) in found {
            files.grew(&id, bytes);
        }
        files
    }

    /// Notes that a file was used, and is larger by so many bytes.
    pub(crate) fn grew(&mut self, id: &str, bytes: u64) {
        self.clock += 1;
        self.bytes += bytes;
        let clock = self.clock;
        let used = self.all.entry(id.to_owned()).or_default();
        *used = Used { bytes: used.bytes + bytes, at: clock };
    }

    /// Notes that a file is gone.
    pub(crate) fn gone(&mut self, id: &str) {
        self.bytes -= self.all.remove(id).map_or(0, |used| used.bytes);
    }

    /// Takes out those that have to go so that the rest is inside the limits: the ones used longest
    /// ago, and never the one in use.
    pub(crate) fn over(&mut self, bytes: u64, count: usize, in_use: &str) -> Vec<String> {
        if self.bytes <= bytes && self.all.len() <= count {
            return Vec::new();
        }
        let (bytes, count) = ((bytes as f64 * LEFT) as u64, (count as f64 * LEFT) as usize);
        let mut oldest: Vec<(u64, String)> =
            self.all.iter().map(|(id, used)| (used.at, id.clone())).collect();
        oldest.sort_unstable();
        let mut gone = Vec::new();
        for (_, id) in oldest {
            if self.bytes <= bytes && self.all.len() <= count {
                break;
            }
            if id != in_use {
                self.gone(&id);
                gone.push(id);
            }
        }
        gone
    }

    /// How many bytes they have together.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Makes a folder, and those above it.
pub(crate) fn folder(path: &Path) -> Result<()> {
    ctx_disk::create_private_dir(path).map_err(std::io::Error::other)
}

/// Opens a file to append lines to. What a write that broke off left behind, on a full disk or at a
/// sudden end, becomes a line of its own.
pub(crate) fn append(path: &Path) -> Result<File> {
    let is_torn = is_torn(path);
    let mut file = ctx_disk::private().append(true).create(true).open(path)?;
    if is_torn {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Whether a file ends in the middle of a line.
fn is_torn(path: &Path) -> bool {
    let last = || -> Result<u8> {
        let mut file = ctx_disk::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    let is_empty = fs::metadata(path).map_or(true, |file| file.len() == 0);
    !is_empty && last().is_ok_and(|last| last != b'\n')
}

/// Holds a folder for this process, until what it gives is dropped. `None` where another process
/// holds it. A file system that knows no locks has nobody to keep out.
pub(crate) fn hold(folder: &Path) -> Result<Option<File>> {
    let mut options = ctx_disk::private();
    let file = options.write(true).create(true).truncate(false).open(folder.join("lock"))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_torn_takes_no_other_along() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.jsonl");
        append(&path).unwrap().write_all(b"{}\n{\"to").unwrap();
        append(&path).unwrap().write_all(b"[1]\n").unwrap();
        append(&path).unwrap().write_all(b"[2]\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{\"to\n[1]\n[2]\n");
    }

    #[test]
    fn a_folder_is_held_by_one() {
        let home = tempfile::tempdir().unwrap();
        let first = hold(home.path()).unwrap();
        assert!(first.is_some());
        assert!(hold(home.path()).unwrap().is_none());
        drop(first);
        assert!(hold(home.path()).unwrap().is_some());
    }
}
