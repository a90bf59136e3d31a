//! Locking a session without opening it.

use std::path::Path;

use ctx_core::Result;

use crate::disk::{self, FileLock, first_line};
use crate::schema::is_ctx_header;

/// A session that no other process can open as long as this value lives.
#[derive(Debug)]
pub struct SessionLock {
    _lock: FileLock,
}

impl SessionLock {
    /// Takes the lock of the session at `path`. Returns `None` if the file is missing or belongs to
    /// another program: ctx does not append to such a file, and creates no lock file beside it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if it is open,
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be read.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let failed = |error| disk::io_error("cannot inspect the session", path, error);
        let line = match disk::open(path) {
            Ok(file) => first_line(&file).map_err(failed)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !std::str::from_utf8(&line).is_ok_and(is_ctx_header) {
            return Ok(None);
        }
        Ok(Some(Self { _lock: FileLock::with_default_timeout(path)? }))
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::ErrorKind;

    use super::*;
    use crate::log::tests::new_session;
    use crate::log::{LogOptions, SessionLog};

    #[test]
    fn a_session_that_is_held_is_opened_by_nobody_and_one_that_is_open_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        assert!(SessionLock::of(&path).unwrap().is_none());
        assert!(!dir.path().join("s.jsonl.lock").exists());
        drop(new_session(&path, LogOptions::default()));
        let hold = SessionLock::of(&path).unwrap();
        assert!(hold.is_some());
        let error = SessionLog::open(&path, LogOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        drop(hold);
        let log = SessionLog::open(&path, LogOptions::default()).unwrap();
        assert_eq!(SessionLock::of(&path).unwrap_err().kind(), ErrorKind::Locked);
        drop(log);
    }

    #[test]
    fn nothing_is_made_beside_a_file_of_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n").unwrap();
        assert!(SessionLock::of(&path).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
