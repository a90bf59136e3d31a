//! Blobs: tool output that was removed from the context, in files that expire.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ctx_core::{BlobStore, Error, ErrorKind, Result, Timestamp};

use crate::disk;
use crate::key::FileId;

/// Returns the names of blobs that a text may mention.
pub fn blob_names_in(text: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let words = text.split(move |c: char| !is_name(c));
    words.filter_map(|word| word.trim_end_matches('.').strip_suffix(".txt").map(str::to_owned))
}

/// Stores blobs as `<name>.txt` in one folder, usually
/// [`Home::tool_results_dir`](crate::Home::tool_results_dir).
///
/// A blob is on disk when `put` returns, because the context no longer contains it. Expiry uses the
/// files' modification times and affects only `.txt` files.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    dir: PathBuf,
}

impl FileBlobs {
    /// Creates a store in `dir`. The folder is created with the first blob.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Returns the text of a blob.
    pub fn get(&self, name: &str) -> Result<String> {
        let path = self.path(name)?;
        disk::read_to_string(&path).map_err(|e| disk::io_error("cannot read the blob", &path, e))
    }

    /// Returns the names of all blobs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the folder exists and cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        let failed = |e| disk::io_error("cannot list the blobs", &self.dir, e);
        let files = disk::list(&self.dir).map_err(failed)?;
        let name = |file: &PathBuf| Some(file.file_name()?.to_str()?.strip_suffix(".txt")?.into());
        let mut names: Vec<String> = files.iter().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes a blob durably. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for an invalid name, [`ErrorKind::Io`].
    pub fn remove(&self, name: &str) -> Result<bool> {
        let path = self.path(name)?;
        let existed = disk::remove(&path, "cannot remove the blob")?;
        if existed {
            disk::sync_dir(&self.dir)?;
        }
        Ok(existed)
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let name = FileId::new(name).map_err(|e| e.with("blob", name.escape_debug()))?;
        Ok(self.dir.join(format!("{name}.txt")))
    }
}

impl BlobStore for FileBlobs {
    fn put(&self, name: &str, text: &str) -> Result<String> {
        let path = self.path(name)?;
        disk::create_private_dir(&self.dir)?;
        disk::write_atomic(&path, text.as_bytes())?;
        Ok(path.to_string_lossy().into_owned())
    }

    fn expire(&self, before: Timestamp) -> Result<usize> {
        let Some(before) = system_time(before) else { return Ok(0) };
        let failed = |e| disk::io_error("cannot list the expired blobs", &self.dir, e);
        let mut removed = 0;
        for path in disk::list(&self.dir).map_err(failed)? {
            if path.extension().is_none_or(|e| e != "txt") {
                continue;
            }
            // A blob that another process has just removed is not an error.
            let old = std::fs::symlink_metadata(&path)
                .and_then(|m| Ok(m.is_file() && m.modified()? < before))
                .unwrap_or(false);
            if old && std::fs::remove_file(&path).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn system_time(at: Timestamp) -> Option<SystemTime> {
    let since = Duration::from_millis(u64::try_from(at.0).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Stores no blobs: replays and dry runs only need their paths.
#[derive(Debug, Default)]
pub struct NoBlobs;

impl BlobStore for NoBlobs {
    fn put(&self, name: &str, _text: &str) -> Result<String> {
        if name.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "missing blob name"));
        }
        Ok(format!("tool-results/{name}.txt"))
    }

    fn expire(&self, _before: Timestamp) -> Result<usize> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_written_read_and_expired_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::at(dir.path().join("tool-results"));
        assert_eq!(blobs.expire(Timestamp(i64::MAX)).unwrap(), 0);
        let path = blobs.put("old", "one").unwrap();
        blobs.put("new", "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        std::fs::write(blobs.dir.join("notes.md"), "mine").unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        for file in [std::path::Path::new(&path), &blobs.dir.join("notes.md")] {
            std::fs::File::options()
                .write(true)
                .open(file)
                .unwrap()
                .set_modified(long_ago)
                .unwrap();
        }
        assert_eq!(blobs.expire(Timestamp(1_000_000)).unwrap(), 0);
        assert_eq!(blobs.expire(Timestamp(1_000_001)).unwrap(), 1);
        assert_eq!(blobs.get("old").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(blobs.get("new").unwrap(), "two");
        assert!(blobs.dir.join("notes.md").exists());
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::at(dir.path().join("in"));
        for name in ["../x", "/etc/x", "", ".", "a/b", "a\0b"] {
            assert_eq!(blobs.put(name, "x").unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(!dir.path().join("in").exists());
    }
}
