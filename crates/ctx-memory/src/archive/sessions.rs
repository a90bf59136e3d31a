//! `sessions.json`: which sessions of other programs were archived, and how far.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctx_core::{Result, Timestamp};
use serde::{Deserialize, Serialize};

use crate::disk::{self, FileLock};

/// How far a session was archived, and the state of its transcript at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedSession {
    /// The program that wrote it.
    pub agent: String,
    /// The session's name in the archive.
    pub session: String,
    /// The working directory of the program, if the transcript records it.
    pub project: Option<PathBuf>,
    /// The transcript's size; 0 if part of it still has to be archived.
    pub bytes: u64,
    /// When the transcript was last written.
    pub modified: Timestamp,
    /// The id of the last archived entry.
    pub last: Option<String>,
}

/// Archived sessions by transcript, and excluded projects.
#[derive(Debug, Default)]
pub struct ArchivedSessions {
    path: PathBuf,
    list: List,
    /// Length and modification time of the file when it was read.
    read: Option<(u64, SystemTime)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    sessions: BTreeMap<String, ArchivedSession>,
    forgotten: BTreeSet<PathBuf>,
}

impl ArchivedSessions {
    /// Returns the list of the memory in `folder`, without reading it.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self { path: folder.join("sessions.json"), ..Self::default() }
    }

    /// Whether the file exists. It does not exist before the first session is archived.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Reads what other processes wrote.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read.
    pub fn refresh(&mut self) -> Result<()> {
        let now = self.stamp();
        if self.read != now {
            let read = || Ok(serde_json::from_slice(&disk::read(&self.path)?)?);
            self.list = match now {
                None => List::default(),
                Some(_) => read().map_err(|e| {
                    disk::io_error("cannot read the list of archived sessions", &self.path, e)
                })?,
            };
            self.read = now;
        }
        Ok(())
    }

    fn stamp(&self) -> Option<(u64, SystemTime)> {
        let about = self.path.metadata().ok()?;
        Some((about.len(), about.modified().ok()?))
    }

    /// Returns the record of the session with this transcript.
    pub fn get(&self, path: &Path) -> Option<&ArchivedSession> {
        self.list.sessions.get(&*path.to_string_lossy())
    }

    /// All sessions, with their transcripts.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &ArchivedSession)> {
        self.list.sessions.iter().map(|(path, session)| (Path::new(path), session))
    }

    /// Whether a project or one of its parent folders was forgotten.
    pub fn is_forgotten(&self, project: &Path) -> bool {
        self.list.forgotten.iter().any(|forgotten| project.starts_with(forgotten))
    }

    /// Keeps other processes from archiving sessions while the returned value lives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if another process holds the lock for
    /// longer than `limit`.
    pub fn lock(&self, limit: Duration) -> Result<ArchiveLock> {
        disk::create_private_dir(disk::parent(&self.path))?;
        Ok(ArchiveLock { _lock: FileLock::with_timeout(&self.path, limit)? })
    }

    /// Records a session durably.
    ///
    /// # Errors
    ///
    /// If the list cannot be written.
    pub fn note(&mut self, _: &ArchiveLock, path: &Path, session: ArchivedSession) -> Result<()> {
        self.refresh()?;
        self.list.sessions.insert(path.to_string_lossy().into_owned(), session);
        self.write()
    }

    /// Durably excludes the sessions of a project from now on and removes them from the list.
    ///
    /// # Errors
    ///
    /// If the list cannot be written.
    pub fn forget(&mut self, _: &ArchiveLock, project: &Path) -> Result<()> {
        self.refresh()?;
        let stays =
            |of: &ArchivedSession| !of.project.as_ref().is_some_and(|at| at.starts_with(project));
        self.list.sessions.retain(|_, session| stays(session));
        self.list.forgotten.insert(project.to_owned());
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        disk::replace(&self.path, |out| Ok(serde_json::to_writer(out, &self.list)?))?;
        self.read = self.stamp();
        Ok(())
    }
}

/// The lock that lets only one process at a time archive sessions of other programs.
#[derive(Debug)]
pub struct ArchiveLock {
    _lock: FileLock,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str, project: &str, bytes: u64) -> ArchivedSession {
        ArchivedSession {
            agent: "codex".into(),
            session: name.into(),
            project: Some(project.into()),
            bytes,
            modified: Timestamp(5),
            last: None,
        }
    }

    #[test]
    fn archived_sessions_are_visible_to_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let mut sessions = ArchivedSessions::of(folder.path());
            sessions.refresh().unwrap();
            sessions
        };
        let (mut one, mut other) = (open(), open());
        assert!(!one.exists());
        let lock = one.lock(Duration::ZERO).unwrap();
        assert!(other.lock(Duration::ZERO).is_err());
        one.note(&lock, Path::new("a"), session("a", "/p", 1)).unwrap();
        other.note(&lock, Path::new("b"), session("b", "/p/q", 1)).unwrap();
        one.note(&lock, Path::new("a"), session("a", "/p", 2)).unwrap();
        assert_eq!(open().iter().map(|(_, s)| s.bytes).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(open().get(Path::new("a")), one.get(Path::new("a")));
        // An unreadable list is not treated as empty: forgotten projects stay excluded.
        std::fs::write(&one.path, "{").unwrap();
        assert!(
            one.refresh().is_err()
                && one.note(&lock, Path::new("a"), session("a", "/p", 2)).is_err()
        );
    }

    #[test]
    fn a_forgotten_project_leaves_no_name_and_stays_excluded() {
        let folder = tempfile::tempdir().unwrap();
        let mut sessions = ArchivedSessions::of(folder.path());
        let lock = sessions.lock(Duration::ZERO).unwrap();
        for (name, project) in [("one", "/p/secret"), ("two", "/p/secrets"), ("three", "/p")] {
            sessions.note(&lock, Path::new(name), session(name, project, 1)).unwrap();
        }
        sessions.forget(&lock, Path::new("/p/secret")).unwrap();
        let mut again = ArchivedSessions::of(folder.path());
        again.refresh().unwrap();
        let names: Vec<_> = again.iter().map(|(_, session)| session.session.clone()).collect();
        assert_eq!(names, ["three", "two"]);
        assert!(again.is_forgotten(Path::new("/p/secret/deeper")));
        assert!(!again.is_forgotten(Path::new("/p")));
        assert!(!std::fs::read_to_string(&again.path).unwrap().contains("one"));
    }
}
