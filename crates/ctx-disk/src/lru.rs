//! Folders of private files within limits: the least recently used file is deleted first.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ctx_core::{Error, ErrorKind};
use serde::de::DeserializeOwned;

/// The share of a limit that remains after eviction. Evicting more at once makes it rare; finding
/// the oldest takes time proportional to the number of files.
const REMAINING_SHARE: f64 = 0.9;

/// The files of a folder, with their sizes and their order of use.
#[derive(Debug, Default)]
pub struct LruFiles {
    all: HashMap<String, Used>,
    bytes: u64,
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    at: u64,
}

impl LruFiles {
    /// Lists the files of a folder in order of modification.
    pub fn of(folder: &Path, id_of: impl Fn(&Path) -> Option<String>) -> Self {
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
            files.record_use(&id, bytes);
        }
        files
    }

    /// Records a use of a file, and its growth in bytes.
    pub fn record_use(&mut self, id: &str, bytes: u64) {
        self.clock += 1;
        self.bytes += bytes;
        let clock = self.clock;
        let used = self.all.entry(id.to_owned()).or_default();
        *used = Used { bytes: used.bytes + bytes, at: clock };
    }

    /// Records that a file was deleted.
    pub fn remove(&mut self, id: &str) {
        self.bytes -= self.all.remove(id).map_or(0, |used| used.bytes);
    }

    /// Removes the least recently used files from the list until the rest is within the limits, and
    /// returns their ids. The file in use is not removed.
    pub fn evict(&mut self, bytes: u64, count: usize, in_use: &str) -> Vec<String> {
        if self.bytes <= bytes && self.all.len() <= count {
            return Vec::new();
        }
        let (bytes, count) =
            ((bytes as f64 * REMAINING_SHARE) as u64, (count as f64 * REMAINING_SHARE) as usize);
        let mut evicted = Vec::new();
        for id in self.oldest_first() {
            if self.bytes <= bytes && self.all.len() <= count {
                break;
            }
            if id != in_use {
                self.remove(&id);
                evicted.push(id);
            }
        }
        evicted
    }

    /// Returns the ids, the least recently used first.
    fn oldest_first(&self) -> Vec<String> {
        let mut ids: Vec<_> = self.all.iter().map(|(id, used)| (used.at, id.clone())).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A folder of files that are written once, within limits.
#[derive(Debug)]
pub struct LruFolder {
    folder: PathBuf,
    files: Mutex<LruFiles>,
    bytes: u64,
    count: usize,
}

impl LruFolder {
    /// Lists a folder, which may be missing. It keeps at most `count` files of `bytes` in all.
    pub fn at(folder: PathBuf, bytes: u64, count: usize) -> Self {
        let files = Mutex::new(LruFiles::of(&folder, id_of));
        Self { folder, files, bytes, count }
    }

    /// Saves JSON in the file with that id, and deletes the least recently saved files beyond the
    /// limits. `what` is the error if it cannot be written.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`].
    pub fn save(&self, id: &str, json: &[u8], what: &'static str) -> ctx_core::Result<()> {
        create_folder(&self.folder).map_err(unwritable(what, &self.folder))?;
        crate::write_atomic(&self.path(id), json)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.remove(id);
        files.record_use(id, json.len() as u64);
        for old in files.evict(self.bytes, self.count, id) {
            // Best effort: the next server lists it again.
            let _ = fs::remove_file(self.path(&old));
        }
        Ok(())
    }

    /// Reads the file with that id; `None` if it is missing or damaged.
    pub fn read<T: DeserializeOwned>(&self, id: &str) -> Option<T> {
        serde_json::from_slice(&crate::read(self.path(id)).ok()?).ok()
    }

    /// Returns the ids of its files, the least recently saved first.
    pub fn oldest_first(&self) -> Vec<String> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).oldest_first()
    }

    /// Returns the path of the file with that id.
    pub fn path(&self, id: &str) -> PathBuf {
        file_of(&self.folder, id)
    }
}

/// Returns the error of a folder in which nothing can be stored.
pub fn unwritable(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error + Copy {
    move |error| {
        Error::new(ErrorKind::Io, what)
            .with("path", path.display())
            .hint("set CTX_HOME to a folder that can be written to")
            .source(error)
    }
}

/// Returns the path of the file with that id.
pub fn file_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Returns the id of a file.
pub fn id_of(path: &Path) -> Option<String> {
    let is_ours = path.extension().is_some_and(|ending| ending == "jsonl");
    Some(path.file_stem().filter(|_| is_ours)?.to_str()?.to_owned())
}

/// Creates a folder and its parents.
pub fn create_folder(path: &Path) -> Result<()> {
    crate::create_private_dir(path).map_err(std::io::Error::other)
}

/// Opens a file for appending lines. If the last write was interrupted, its fragment becomes a line
/// of its own.
pub fn open_append(path: &Path) -> Result<File> {
    let is_torn =
        crate::open(path).and_then(|file| crate::ends_line(&file)).is_ok_and(|whole| !whole);
    let mut file = crate::private().append(true).create(true).open(path)?;
    if is_torn {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// The lock of a folder, held until it is dropped. Its file names the holder.
#[derive(Debug)]
pub struct FolderLock(File);

impl FolderLock {
    /// Locks a folder for this process, or returns what the process wrote that holds the lock. On a
    /// file system without locks, it always succeeds.
    pub fn of(folder: &Path) -> Result<std::result::Result<Self, String>> {
        let path = folder.join("lock");
        let file = crate::private().write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(Err(fs::read_to_string(path).unwrap_or_default())),
            Ok(()) | Err(TryLockError::Error(_)) => {
                let lock = Self(file);
                // Best effort: it is for people.
                let _ = lock.name(&format!("process {}", std::process::id()));
                Ok(Ok(lock))
            }
        }
    }

    /// Names the holder.
    pub fn name(&self, holder: &str) -> Result<()> {
        self.0.set_len(0)?;
        (&self.0).seek(SeekFrom::Start(0))?;
        (&self.0).write_all(holder.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_does_not_damage_the_next_line() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.jsonl");
        open_append(&path).unwrap().write_all(b"{}\n{\"to").unwrap();
        open_append(&path).unwrap().write_all(b"[1]\n").unwrap();
        open_append(&path).unwrap().write_all(b"[2]\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{\"to\n[1]\n[2]\n");
    }

    #[test]
    fn a_folder_is_locked_by_one_process() {
        let home = tempfile::tempdir().unwrap();
        let lock = || FolderLock::of(home.path()).unwrap();
        let first = lock().unwrap();
        assert_eq!(lock().unwrap_err(), format!("process {}", std::process::id()));
        first.name("someone").unwrap();
        assert_eq!(lock().unwrap_err(), "someone");
        drop(first);
        assert!(lock().is_ok());
    }
}
