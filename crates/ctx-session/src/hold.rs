//! Keeping others out of a session without opening it.

use std::path::Path;

use ctx_core::Result;

use crate::disk;
use crate::disk::FileLock;
use crate::log::{first_line, is_header_of_ours};

/// A session that nobody can open as long as this value lives.
#[derive(Debug)]
pub struct Hold {
    _lock: FileLock,
}

impl Hold {
    /// Takes the lock of the session at `path`. `None` where there is none, and for a file of another
    /// program: beside that nothing is made, and nobody appends to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if somebody has it open,
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be read.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let failed = |error| disk::io_error("cannot look at the session", path, error);
        let line = match disk::open(path) {
            Ok(file) => first_line(&file).map_err(failed)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !std::str::from_utf8(&line).is_ok_and(is_header_of_ours) {
            return Ok(None);
        }
        Ok(Some(Self { _lock: FileLock::soon(path)? }))
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::ErrorKind;

    use super::*;
    use crate::log::{LogOptions, SessionLog, tests::new_session};

    #[test]
    fn a_session_that_is_held_is_opened_by_nobody_and_one_that_is_open_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        assert!(Hold::of(&path).unwrap().is_none());
        assert!(!dir.path().join("s.jsonl.lock").exists());
        drop(new_session(&path, LogOptions::default()));
        let hold = Hold::of(&path).unwrap();
        assert!(hold.is_some());
        let error = SessionLog::open(&path, LogOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        drop(hold);
        let log = SessionLog::open(&path, LogOptions::default()).unwrap();
        assert_eq!(Hold::of(&path).unwrap_err().kind(), ErrorKind::Locked);
        drop(log);
    }

    #[test]
    fn nothing_is_made_beside_a_file_of_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n").unwrap();
        assert!(Hold::of(&path).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
