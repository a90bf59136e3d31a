//! Lists and removes sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::{AgentScope, FileId, SessionKey};
use ctx_session::{
    Home, RetiringSession, SessionEntry, SessionStore, Sessions, is_foreign, session_files,
    session_is_open,
};

use super::folder::SessionsFolder;
use super::plan::{KnownSession, TranscriptLocation};
use super::{
    Action, KeptSession, MaintainedSession, MaintenanceReport, MaintenanceRun, Progress, Reason,
};

/// Number of sessions removed with one write of `sessions.json`.
const BATCH: usize = 32;

/// Returns what is known of the sessions of an agent. Keys in an unknown format are skipped, as the
/// path of their transcripts is unknown.
pub(super) fn known(
    home: &Home,
    agent: &FileId,
    sessions: &Sessions,
    folder: &mut SessionsFolder,
) -> Vec<KnownSession> {
    folder.note(sessions);
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    let mut known = Vec::new();
    for (key, entry) in sessions.iter() {
        let path = home.transcript(&key, entry).ok();
        if let Some(path) = &path {
            *places.entry(path.clone()).or_default() += 1;
            folder.take(path);
        }
        known.push((key, entry.clone(), path));
    }
    let main = FileId::main();
    let of = |(key, entry, path): (SessionKey, SessionEntry, Option<PathBuf>)| {
        let transcript = match path {
            Some(path) if !path.exists() => TranscriptLocation::Gone,
            Some(path) if folder.has(&path) && places[&path] == 1 => TranscriptLocation::Here(path),
            _ => TranscriptLocation::Elsewhere,
        };
        let last = match entry.updated_at.0 {
            // The entry has no time.
            0 => match &transcript {
                TranscriptLocation::Here(path) => folder.changed(path),
                _ => None,
            },
            _ => Some(entry.updated_at),
        };
        let is_ours = key.agent().unwrap_or(&main) == agent;
        is_ours.then(|| KnownSession {
            key: key.to_string(),
            session_id: entry.session_id,
            updated_at: entry.updated_at,
            last,
            is_subagent: matches!(key, SessionKey::Agent { scope: AgentScope::Subagent(_), .. }),
            transcript,
        })
    };
    known.into_iter().filter_map(of).collect()
}

/// A session to remove: its key and entry, and its transcript, locked and archived.
struct LockedSession<'k> {
    known: &'k KnownSession,
    why: Reason,
    transcript: Option<RetiringSession>,
}

impl MaintenanceRun<'_> {
    /// Removes sessions, except those that are open or cannot be archived.
    pub(super) fn remove_sessions(
        &self,
        store: &SessionStore,
        known: &[KnownSession],
        leaving: &[(usize, Reason)],
        folder: &mut SessionsFolder,
        report: &mut MaintenanceReport,
        progress: Progress<'_>,
    ) -> Result<()> {
        let mut gone = 0;
        for batch in leaving.chunks(BATCH) {
            let mut ready = Vec::new();
            for (at, why) in batch {
                if self.is_stopped() {
                    break;
                }
                match self.ready(&known[*at], *why) {
                    Ok(session) => ready.push(session),
                    Err(error) => report.kept.push(kept(&known[*at], *why, &error)),
                }
                gone += 1;
                progress(gone, leaving.len());
            }
            self.store(store, ready, folder, report)?;
        }
        Ok(())
    }

    /// Locks a session and archives it.
    fn ready<'k>(&self, known: &'k KnownSession, why: Reason) -> Result<LockedSession<'k>> {
        let TranscriptLocation::Here(path) = &known.transcript else {
            return Ok(LockedSession { known, why, transcript: None });
        };
        if self.dry_run {
            return match session_is_open(path) {
                true => Err(open(path)),
                false => Ok(LockedSession { known, why, transcript: None }),
            };
        }
        let transcript = match RetiringSession::begin(path) {
            // A file of another program is not moved.
            Err(error) if is_foreign(&error) => None,
            begun => Some(begun?),
        };
        if let Some(transcript) = &transcript {
            self.archive.keep(transcript.session_id(), &session_files(path), self.now)?;
        }
        Ok(LockedSession { known, why, transcript })
    }

    /// Removes sessions from the store, then archives their transcripts.
    fn store(
        &self,
        store: &SessionStore,
        ready: Vec<LockedSession<'_>>,
        folder: &mut SessionsFolder,
        report: &mut MaintenanceReport,
    ) -> Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        let gone: Vec<bool> = match self.dry_run {
            true => vec![true; ready.len()],
            false => store.update(|sessions| {
                Ok(ready.iter().map(|ready| remove(sessions, ready.known)).collect())
            })?,
        };
        for (ready, gone) in ready.into_iter().zip(gone) {
            let LockedSession { known, why, transcript } = ready;
            if !gone {
                let used = Error::new(ErrorKind::Conflict, "the session was used meanwhile");
                report.kept.push(kept(known, why, &used));
                continue;
            }
            let here = match &known.transcript {
                TranscriptLocation::Here(path) if self.dry_run || transcript.is_some() => {
                    Some(path.clone())
                }
                _ => None,
            };
            let mut done = MaintainedSession {
                session_key: Some(known.key.clone()),
                bytes: here.as_ref().map_or(0, |path| folder.bytes_of(path)),
                act: if here.is_some() { Action::Archived } else { Action::Forgotten },
                file: here,
                archived_as: None,
                why,
            };
            if let Some(transcript) = transcript {
                match transcript.finish(self.now) {
                    Ok(to) => done.archived_as = Some(to),
                    // It is complete and belongs to no session; the next run may move it.
                    Err(error) => report.warnings.push(error.to_string()),
                }
            }
            if let Some(file) = &done.file {
                folder.moved(file, done.archived_as.as_deref());
            }
            report.done.push(done);
        }
        Ok(())
    }
}

/// Removes an entry, if it did not change since it was read.
fn remove(sessions: &mut Sessions, known: &KnownSession) -> bool {
    let Ok(key) = known.key.parse::<SessionKey>() else { return false };
    let is_same = |entry: &SessionEntry| {
        entry.session_id == known.session_id && entry.updated_at == known.updated_at
    };
    sessions.get(&key).is_some_and(is_same) && sessions.remove(&key).is_some()
}

fn kept(known: &KnownSession, why: Reason, error: &Error) -> KeptSession {
    let file = match &known.transcript {
        TranscriptLocation::Here(path) => Some(path.clone()),
        _ => None,
    };
    KeptSession { session_key: Some(known.key.clone()), file, why, because: because(error) }
}

/// Returns the reason why a session or file is kept, as text.
pub(super) fn because(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Locked => "it is open".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn open(path: &Path) -> Error {
    Error::new(ErrorKind::Locked, "the session is open").with("path", path.display())
}
