//! `sessions.jsonl`: which sessions of other programs were archived, and how far.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ctx_core::{Result, Timestamp};
use serde::{Deserialize, Serialize};

use crate::disk::{self, FileLock};

/// The file is written anew when it has so many lines that later ones replaced, and half of all.
const SLACK: usize = 256;

/// What was archived of a session, as its transcript was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedSession {
    /// The transcript.
    pub path: PathBuf,
    /// The program that wrote it.
    pub agent: String,
    /// The name of the session in the archive.
    pub session: String,
    /// The folder that the program was started in, where the transcript says so.
    pub project: Option<PathBuf>,
    /// The size of the transcript; 0 where the rest of it is still to be archived.
    pub bytes: u64,
    /// When the transcript was last written.
    pub modified: Timestamp,
    /// The last entry that was archived.
    pub last: Option<String>,
}

/// A line of the file. A later one of the same session takes the place of an earlier one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Session(ArchivedSession),
    Forgotten { forgotten: PathBuf },
}

/// Which sessions were archived, by their transcripts, and which projects stay out.
#[derive(Debug, Default)]
pub struct ArchivedSessions {
    path: PathBuf,
    sessions: BTreeMap<PathBuf, ArchivedSession>,
    forgotten: Vec<PathBuf>,
    lines: usize,
    /// Length and time of the file when it was read.
    read: Option<(u64, SystemTime)>,
}

impl ArchivedSessions {
    /// Those of the memory in `folder`. Nothing is read yet.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        Self { path: folder.join("sessions.jsonl"), ..Self::default() }
    }

    /// Whether there is such a file: nothing was archived before without one.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Reads what other processes wrote. A line that cannot be read says nothing: its session is
    /// archived again, which adds nothing.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub fn refresh(&mut self) -> Result<()> {
        let failed = |e| disk::io_error("cannot read the list of archived sessions", &self.path, e);
        let Some(now) = self.stamp() else {
            *self = Self { path: std::mem::take(&mut self.path), ..Self::default() };
            return Ok(());
        };
        if self.read == Some(now) {
            return Ok(());
        }
        let bytes = std::fs::read(&self.path).map_err(failed)?;
        (self.sessions, self.forgotten, self.lines) = Default::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.lines += 1;
            serde_json::from_slice(line).into_iter().for_each(|line| self.take(line));
        }
        self.read = Some(now);
        Ok(())
    }

    fn stamp(&self) -> Option<(u64, SystemTime)> {
        let about = self.path.metadata().ok()?;
        Some((about.len(), about.modified().ok()?))
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Session(session) => {
                self.sessions.insert(session.path.clone(), session);
            }
            Line::Forgotten { forgotten } => {
                self.sessions.retain(|_, session| !is_of(session.project.as_deref(), &forgotten));
                self.forgotten.push(forgotten);
            }
        }
    }

    /// What was archived of the session whose transcript this is.
    #[must_use]
    pub fn get(&self, path: &Path) -> Option<&ArchivedSession> {
        self.sessions.get(path)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ArchivedSession> {
        self.sessions.values()
    }

    /// Whether a project was forgotten, or a folder above it.
    #[must_use]
    pub fn is_forgotten(&self, project: Option<&Path>) -> bool {
        self.forgotten.iter().any(|forgotten| is_of(project, forgotten))
    }

    /// Keeps other processes from archiving sessions, as long as the value lives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if another process does it for longer than
    /// `limit`.
    pub fn lock(&self, limit: Duration) -> Result<ArchiveLock> {
        disk::create_private_dir(disk::parent(&self.path))?;
        Ok(ArchiveLock { _lock: FileLock::within(&self.path, limit)? })
    }

    /// Takes note of a session, durably.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn note(&mut self, _: &ArchiveLock, session: ArchivedSession) -> Result<()> {
        self.refresh()?;
        // What a crash tore is ended first.
        let line = format!("\n{}\n", self.line(&session)?);
        self.take(Line::Session(session));
        self.lines += 1;
        if self.lines > SLACK + 2 * self.sessions.len() {
            return self.write_anew();
        }
        let file = disk::private().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_data()))
            .map_err(|e| disk::io_error("cannot note what was archived", &self.path, e))?;
        self.read = self.stamp();
        Ok(())
    }

    /// Takes note that the sessions of a project stay out from now on, durably. Their names leave the
    /// file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn forget(&mut self, _: &ArchiveLock, project: &Path) -> Result<()> {
        self.refresh()?;
        self.take(Line::Forgotten { forgotten: project.to_owned() });
        self.write_anew()
    }

    /// A line without its end. A path that is no Unicode has none.
    fn line(&self, of: &impl Serialize) -> Result<String> {
        serde_json::to_string(of)
            .map_err(|e| disk::io_error("cannot note what was archived", &self.path, e.into()))
    }

    fn write_anew(&mut self) -> Result<()> {
        let forgotten =
            self.forgotten.iter().map(|path| self.line(&HashMap::from([("forgotten", path)])));
        let lines = forgotten.chain(self.sessions.values().map(|session| self.line(session)));
        let lines: Vec<String> = lines.collect::<Result<_>>()?;
        disk::replace(&self.path, |out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        self.lines = lines.len();
        self.read = self.stamp();
        Ok(())
    }
}

/// The sessions of other programs are archived by one process at a time.
#[derive(Debug)]
pub struct ArchiveLock {
    _lock: FileLock,
}

/// Whether a project is a folder, or below it.
fn is_of(project: Option<&Path>, folder: &Path) -> bool {
    project.is_some_and(|project| project.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str, project: &str, bytes: u64) -> ArchivedSession {
        ArchivedSession {
            path: name.into(),
            agent: "codex".into(),
            session: name.into(),
            project: Some(project.into()),
            bytes,
            modified: Timestamp(5),
            last: None,
        }
    }

    #[test]
    fn what_was_archived_is_known_to_others_and_after_a_crash() {
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
        one.note(&lock, session("a", "/p", 1)).unwrap();
        other.note(&lock, session("b", "/p/q", 1)).unwrap();
        let torn = std::fs::read(&one.path).unwrap();
        std::fs::write(&one.path, [&torn[..], b"{\"path\":\"c"].concat()).unwrap();
        one.note(&lock, session("a", "/p", 2)).unwrap();
        assert_eq!(open().iter().map(|s| s.bytes).collect::<Vec<_>>(), [2, 1]);
        for bytes in 0..600 {
            one.note(&lock, session("a", "/p", bytes)).unwrap();
        }
        let text = std::fs::read_to_string(&one.path).unwrap();
        assert!(text.lines().count() < 600, "{}", text.len());
        assert_eq!(open().get(Path::new("a")), one.get(Path::new("a")));
    }

    #[test]
    fn a_project_that_was_forgotten_leaves_no_name_and_stays_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut sessions = ArchivedSessions::of(folder.path());
        let lock = sessions.lock(Duration::ZERO).unwrap();
        for (name, project) in [("one", "/p/secret"), ("two", "/p/secrets"), ("three", "/p")] {
            sessions.note(&lock, session(name, project, 1)).unwrap();
        }
        sessions.forget(&lock, Path::new("/p/secret")).unwrap();
        let mut again = ArchivedSessions::of(folder.path());
        again.refresh().unwrap();
        let names: Vec<_> = again.iter().map(|session| session.session.clone()).collect();
        assert_eq!(names, ["three", "two"]);
        assert!(again.is_forgotten(Some(Path::new("/p/secret/deeper"))));
        assert!(!again.is_forgotten(Some(Path::new("/p"))) && !again.is_forgotten(None));
        assert!(!std::fs::read_to_string(&again.path).unwrap().contains("one"));
    }
}
