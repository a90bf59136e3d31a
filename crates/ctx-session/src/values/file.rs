//! A key-value store in files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind as IoKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use ctx_core::text::head_chars;
use ctx_core::{Error, ErrorKind, Result, Store};

use crate::disk;
use crate::key::FileId;

/// The maximum length of a key in bytes.
const MAX_KEY: usize = 1_024;

/// The limits of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoreLimits {
    /// The maximum size of a value in bytes. Default: 8 MiB.
    value: u64,
    /// The maximum size of all values of one owner in bytes. Default: 512 MiB.
    bytes: u64,
    /// The maximum number of keys of one owner. Default: 100,000.
    keys: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { value: 8 << 20, bytes: 512 << 20, keys: 100_000 }
    }
}

/// Stores values in files of one folder, usually
/// [`Home::store_dir`](crate::Home::store_dir).
///
/// A key is `KIND/OWNER/REST`, such as `engines/lossless/head`: each owner has its own folder,
/// which can be limited, listed and removed separately. The name of a file is the hash of its key,
/// so that no key can leave the folder; the file's first line contains the key. A value is on disk
/// when `put` returns.
///
/// The limits are soft if several processes write at once: each knows only its own values and those
/// that existed at its first write.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
    limits: StoreLimits,
    used: Mutex<HashMap<PathBuf, Used>>,
}

/// The number and the size of an owner's values.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    keys: usize,
    bytes: u64,
}

impl FileStore {
    /// Creates a store in `root`. The folder is created with the first value.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), limits: StoreLimits::default(), used: Mutex::default() }
    }

    #[cfg(test)]
    fn with_limits(mut self, limits: StoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the folder of a key's owner.
    fn folder(&self, key: &str) -> Result<PathBuf> {
        let mut parts = key.splitn(3, '/');
        let (Some(kind), Some(owner), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad_key(key, "expected KIND/OWNER/REST"));
        };
        let name = |part: &str| {
            FileId::new(part)
                .map_err(|_| bad_key(key, "its KIND or OWNER is not a valid folder name"))
        };
        Ok(self.root.join(name(kind)?.as_str()).join(name(owner)?.as_str()))
    }

    fn place(&self, key: &str) -> Result<(PathBuf, PathBuf)> {
        if key.len() > MAX_KEY {
            return Err(bad_key(key, "it is too long"));
        }
        let folder = self.folder(key)?;
        let file = folder.join(format!("{}.value", blake3::hash(key.as_bytes()).to_hex()));
        Ok((folder, file))
    }

    fn read(&self, key: &str, path: &Path) -> Result<Option<Vec<u8>>> {
        let Some(mut file) = open(path)? else { return Ok(None) };
        let damaged = || {
            Error::new(ErrorKind::Corrupt, "a stored value is damaged")
                .with("path", path.display())
                .hint("remove the file: its engine will then find no value")
        };
        if head(&mut file).as_deref() != Some(key) {
            return Err(damaged());
        }
        let mut value = Vec::new();
        let read = file.take(self.limits.value + 1).read_to_end(&mut value);
        read.map_err(|e| disk::io_error("cannot read a stored value", path, e))?;
        if value.len() as u64 > self.limits.value {
            return Err(damaged());
        }
        Ok(Some(value))
    }
}

#[async_trait]
impl Store for FileStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (_, path) = self.place(key)?;
        self.read(key, &path)
    }

    async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let (folder, path) = self.place(key)?;
        let size = value.len() as u64;
        if size > self.limits.value {
            return Err(too_much("the value is too large", &folder)
                .with("bytes", size)
                .with("most", self.limits.value)
                .hint("the engine must split it into smaller values"));
        }
        // A damaged value is replaced.
        let before = self.read(key, &path).unwrap_or_default();
        if before.as_deref() == Some(value) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(key).map_err(|_| bad_key(key, "it is not valid text"))?;
        line.push(b'\n');
        line.extend_from_slice(value);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let used = match used.get_mut(&folder) {
            Some(used) => used,
            None => used.entry(folder.clone()).or_insert(used_in(&folder)?),
        };
        let was = path.metadata().map_or(0, |metadata| metadata.len());
        let next = Used {
            keys: used.keys + usize::from(was == 0),
            bytes: used.bytes.saturating_sub(was).saturating_add(line.len() as u64),
        };
        if next.keys > self.limits.keys || next.bytes > self.limits.bytes {
            return Err(too_much("the store of the engine is full", &folder)
                .hint("remove the folder if the engine does not need its stored values"));
        }
        disk::create_private_dir(&folder)?;
        disk::write_atomic(&path, &line)?;
        *used = next;
        Ok(())
    }

    /// The prefix must name an owner: `KIND/OWNER/`, optionally followed by more.
    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let folder = self.folder(prefix)?;
        let mut keys = Vec::new();
        for path in values_in(&folder)? {
            // A value that was just removed or is damaged is not listed.
            let key = open(&path).ok().flatten().and_then(|mut file| head(&mut file));
            keys.extend(key.filter(|key| key.starts_with(prefix)));
        }
        keys.sort();
        Ok(keys)
    }
}

/// Opens a file of the store. Never blocks.
fn open(path: &Path) -> Result<Option<BufReader<File>>> {
    let failed = |e| disk::io_error("cannot read a stored value", path, e);
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => {
            return Err(Error::new(ErrorKind::Corrupt, "a stored value is not a regular file")
                .with("path", path.display())
                .hint("remove it"));
        }
        Err(e) if e.kind() == IoKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    }
    match disk::open(path) {
        Ok(file) => Ok(Some(BufReader::new(file))),
        Err(e) if e.kind() == IoKind::NotFound => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

/// Returns the key at the beginning of a file.
fn head(file: &mut BufReader<File>) -> Option<String> {
    let mut line = Vec::new();
    // An escaped byte of a key takes six bytes.
    let limit = 6 * MAX_KEY as u64 + 3;
    file.by_ref().take(limit).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(line.strip_suffix(b"\n")?).ok()
}

/// Returns the files of a folder that contain values.
fn values_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| disk::io_error("cannot list a store", folder, e);
    let mut paths = disk::list(folder).map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "value"));
    Ok(paths)
}

fn used_in(folder: &Path) -> Result<Used> {
    let mut used = Used::default();
    for path in values_in(folder)? {
        used.keys += 1;
        used.bytes += path.symlink_metadata().map_or(0, |metadata| metadata.len());
    }
    Ok(used)
}

fn bad_key(key: &str, why: &str) -> Error {
    let shown = head_chars(key, 80);
    Error::new(ErrorKind::InvalidInput, format!("invalid key: {why}"))
        .with("key", shown.escape_debug())
}

fn too_much(what: &'static str, folder: &Path) -> Error {
    Error::new(ErrorKind::InvalidInput, what).with("path", folder.display())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
