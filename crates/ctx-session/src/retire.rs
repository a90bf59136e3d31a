//! Retired sessions: their files are renamed, not changed.
//!
//! ```text
//! <id>.jsonl               -->  <id>.jsonl.deleted.2026-02-01T10-00-00.000Z
//! <id>.jsonl.archived-1    -->  <id>.jsonl.deleted.2026-02-01T10-00-00.000Z.archived-1
//! ```
//!
//! OpenClaw uses the same names. Nothing is removed, and no other process can be writing, because
//! the caller holds the session's lock.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Timestamp};

use crate::disk::{self, FileLock, sidecar_of};
use crate::log::{LogOptions, SessionLog};

/// The marks between a session's file name and the time at which it was retired. OpenClaw uses the
/// second one for sessions that were reset.
const MARKS: [&str; 2] = [".jsonl.deleted.", ".jsonl.reset."];

const LOCK: &str = ".lock";

/// A session that is about to be retired. No other process can open it meanwhile.
#[derive(Debug)]
pub struct RetiringSession {
    log: SessionLog,
    path: PathBuf,
}

impl RetiringSession {
    /// Takes the lock of the session at `path`. First replays the journal of a crashed process, if
    /// it has a claim on the session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`], without waiting, if it is open; [`ErrorKind::InvalidInput`] or
    /// [`ErrorKind::UnknownFormat`] if it is not a ctx session; [`ErrorKind::NotFound`],
    /// [`ErrorKind::Io`].
    pub fn begin(path: &Path) -> Result<Self> {
        // Taking a lock creates a file, even without a session.
        if let Err(error) = std::fs::metadata(path) {
            return Err(disk::io_error("cannot find the session", path, error));
        }
        drop(FileLock::try_exclusive(path)?);
        let log = SessionLog::open(path, LogOptions::default())?;
        Ok(Self { log, path: path.to_owned() })
    }

    /// Returns the session's id.
    pub fn session_id(&self) -> &str {
        &self.log.session_id
    }

    /// Renames the session, with the time in its new name, and the files beside it. Returns the new
    /// path of the session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if it cannot be renamed; it keeps its name.
    pub fn finish(mut self, now: Timestamp) -> Result<PathBuf> {
        self.log.commit()?;
        let to = free_name(&self.path, now)?;
        // They are moved first: a session that was moved alone would not find them again.
        for (suffix, beside) in beside(&self.path) {
            if suffix != LOCK {
                rename(&beside, &disk::beside(&to, &suffix))?;
            }
        }
        rename(&self.path, &to)?;
        disk::sync_dir(disk::parent(&to))?;
        // The id is never used again, so a process that waits for the lock finds no session.
        let _ = std::fs::remove_file(sidecar_of(&self.path));
        Ok(to)
    }
}

/// Whether any process has the session open. Nothing is written to check this.
pub fn session_is_open(path: &Path) -> bool {
    if !sidecar_of(path).is_file() {
        return false;
    }
    FileLock::try_exclusive(path).is_err_and(|error| error.kind() == ErrorKind::Locked)
}

/// Returns when a file was retired, according to its name: `None` for sessions and all other files.
pub fn retired_at(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let at = MARKS.iter().find_map(|mark| name.split_once(mark).map(|(_, at)| at))?;
    let (date, time) = at.split_once('T')?;
    let at: jiff::Timestamp = format!("{date}T{}", time.replace('-', ":")).parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

/// Removes a retired session and the files beside it. Returns the number of bytes freed.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for a file that was not retired, [`ErrorKind::Io`].
pub fn remove_retired(path: &Path) -> Result<u64> {
    if retired_at(path).is_none() {
        return Err(Error::new(ErrorKind::InvalidInput, "the session was not retired")
            .with("path", path.display())
            .hint("only retired sessions can be removed"));
    }
    let mut freed = 0;
    let files = beside(path).into_iter().map(|(_, file)| file);
    for file in files.chain([path.to_owned()]) {
        let len = std::fs::metadata(&file).map_or(0, |found| found.len());
        if disk::remove(&file, "cannot remove the session")? {
            freed += len;
        }
    }
    disk::sync_dir(disk::parent(path))?;
    Ok(freed)
}

/// Removes a ctx session without any messages, for the caller that created it.
///
/// # Errors
///
/// [`ErrorKind::Locked`] if it is open, errors of [`RetiringSession::begin`], [`ErrorKind::Io`].
pub fn discard_session(path: &Path) -> Result<()> {
    let retiring = RetiringSession::begin(path)?;
    std::fs::remove_file(path).map_err(|e| disk::io_error("cannot remove the session", path, e))?;
    drop(retiring);
    let _ = std::fs::remove_file(sidecar_of(path));
    Ok(())
}

/// Returns the files beside a session that belong to it, each with the end of its name: its
/// archives, its torn lines, its lock.
fn beside(path: &Path) -> Vec<(String, PathBuf)> {
    let mut found = disk::list_beside(path);
    found.retain(|(suffix, _)| {
        suffix == LOCK || suffix.starts_with(".archived-") || suffix.starts_with(".torn-")
    });
    found
}

fn free_name(path: &Path, now: Timestamp) -> Result<PathBuf> {
    let mut at = now;
    loop {
        let time = jiff::Timestamp::from_millisecond(at.0).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, "the time is out of range")
                .with("milliseconds", at.0)
                .source(error)
                .hint("correct the system clock")
        })?;
        let name =
            disk::beside(path, &format!(".deleted.{}", time.strftime("%Y-%m-%dT%H-%M-%S%.3fZ")));
        if name.symlink_metadata().is_err() {
            return Ok(name);
        }
        at.0 += 1;
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
        .map_err(|e| disk::io_error("cannot rename the session to retire it", from, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::FileId;
    use crate::schema::NewSession;

    fn session(dir: &Path, id: &str) -> (PathBuf, SessionLog) {
        let path = dir.join(format!("{id}.jsonl"));
        let new = NewSession {
            id: FileId::new(id).unwrap(),
            timestamp: Timestamp(1_765_233_665_306),
            cwd: "/".into(),
            parent_session: None,
        };
        let log = SessionLog::create(&path, &new, LogOptions::default()).unwrap();
        (path, log)
    }

    fn names(dir: &Path) -> Vec<String> {
        let files = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    const NOW: Timestamp = Timestamp(1_769_940_000_000);
    const NAME: &str = "a.jsonl.deleted.2026-02-01T10-00-00.000Z";

    #[test]
    fn a_session_is_retired_with_its_archives_and_stays_complete() {
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = session(dir.path(), "a");
        drop(log);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(dir.path().join("a.jsonl.archived-1"), "older").unwrap();
        let retiring = RetiringSession::begin(&path).unwrap();
        assert_eq!((retiring.session_id(), crate::erase::session_files(&path).len()), ("a", 2));
        assert!(session_is_open(&path));
        let to = retiring.finish(NOW).unwrap();
        assert_eq!(to, dir.path().join(NAME));
        assert_eq!(names(dir.path()), [NAME.to_owned(), format!("{NAME}.archived-1")]);
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert_eq!(retired_at(&to), Some(NOW));
        assert_eq!(remove_retired(&to).unwrap(), bytes.len() as u64 + 5);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn open_sessions_and_files_of_other_programs_are_not_retired() {
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = session(dir.path(), "a");
        assert_eq!(RetiringSession::begin(&path).unwrap_err().kind(), ErrorKind::Locked);
        assert!(session_is_open(&path) && path.exists());
        drop(log);
        assert!(!session_is_open(&path));
        let foreign = dir.path().join("b.jsonl");
        std::fs::write(&foreign, "{\"type\":\"session\",\"version\":3,\"id\":\"b\"}\n").unwrap();
        assert_eq!(RetiringSession::begin(&foreign).unwrap_err().kind(), ErrorKind::InvalidInput);
        let gone = RetiringSession::begin(&dir.path().join("c.jsonl")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert!(!dir.path().join("c.jsonl.lock").exists());
        assert_eq!(remove_retired(&path).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(path.exists());
    }

    #[test]
    fn a_file_name_says_whether_and_when_a_session_was_retired() {
        let at = |name: &str| retired_at(Path::new(name));
        assert_eq!(at("x.jsonl.reset.2026-02-01T10-00-00.000Z"), Some(NOW));
        for name in [
            "x.jsonl",
            "x.jsonl.deleted.",
            "x.jsonl.deleted.soon",
            "x.deleted.2026-02-01T10-00-00.000Z",
        ] {
            assert_eq!(at(name), None, "{name}");
        }
        assert_eq!(at(&format!("{NAME}.archived-1")), None);
    }
}
