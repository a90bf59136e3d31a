//! Sessions: which there are, and letting them go.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::{AgentScope, FileId, SessionKey};
use ctx_session::paths::Home;
use ctx_session::retire::{Retiring, is_open};
use ctx_session::store::{SessionEntry, SessionStore, Sessions};

use super::folder::Folder;
use super::plan::{Known, Where};
use super::{Act, Kept, Maintained, MaintenanceReport, Progress, Run, Why};

/// So many sessions are let go with one write of `sessions.json`.
const BATCH: usize = 32;

/// What is known of the sessions of an agent. Keys of shapes that this version does not know are left
/// out: where their transcripts are is not known either.
pub(super) fn known(
    home: &Home,
    agent: &FileId,
    sessions: &Sessions,
    folder: &mut Folder,
) -> Vec<Known> {
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
            Some(path) if !path.exists() => Where::Gone,
            Some(path) if folder.has(&path) && places[&path] == 1 => Where::Here(path),
            _ => Where::Elsewhere,
        };
        let last = match entry.updated_at.0 {
            // The entry does not say.
            0 => match &transcript {
                Where::Here(path) => folder.changed(path),
                _ => None,
            },
            _ => Some(entry.updated_at),
        };
        let is_ours = key.agent().unwrap_or(&main) == agent;
        is_ours.then(|| Known {
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

/// A session that may go: its key and entry, and its transcript, locked and archived.
struct Ready<'k> {
    known: &'k Known,
    why: Why,
    transcript: Option<Retiring>,
}

impl Run<'_> {
    /// Lets sessions go. What is open, and what cannot be archived, stays.
    pub(super) fn let_go(
        &self,
        store: &SessionStore,
        known: &[Known],
        leaving: &[(usize, Why)],
        folder: &mut Folder,
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

    /// Takes a session's lock, and archives it.
    fn ready<'k>(&self, known: &'k Known, why: Why) -> Result<Ready<'k>> {
        let Where::Here(path) = &known.transcript else {
            return Ok(Ready { known, why, transcript: None });
        };
        if self.dry_run {
            return match is_open(path) {
                true => Err(open(path)),
                false => Ok(Ready { known, why, transcript: None }),
            };
        }
        let transcript = match Retiring::begin(path) {
            // A file of another program stays where it is.
            Err(error) if is_foreign(error.kind()) => None,
            begun => Some(begun?),
        };
        if let Some(transcript) = &transcript {
            self.archive.keep(transcript.session_id(), &transcript.files(), self.now)?;
        }
        Ok(Ready { known, why, transcript })
    }

    /// Takes sessions out of the store, then puts their transcripts aside.
    fn store(
        &self,
        store: &SessionStore,
        ready: Vec<Ready<'_>>,
        folder: &mut Folder,
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
            let Ready { known, why, transcript } = ready;
            if !gone {
                let used = Error::new(ErrorKind::Conflict, "it was used meanwhile");
                report.kept.push(kept(known, why, &used));
                continue;
            }
            let here = match &known.transcript {
                Where::Here(path) if self.dry_run || transcript.is_some() => Some(path.clone()),
                _ => None,
            };
            let mut done = Maintained {
                session_key: Some(known.key.clone()),
                bytes: here.as_ref().map_or(0, |path| folder.bytes_of(path)),
                act: if here.is_some() { Act::Archived } else { Act::Forgotten },
                file: here,
                archived_as: None,
                why,
            };
            if let Some(transcript) = transcript {
                match transcript.finish(self.now) {
                    Ok(to) => done.archived_as = Some(to),
                    // It is complete where it is, and nobody's: the next run may move it.
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

/// Removes an entry, if it is what it was when it was looked at.
fn remove(sessions: &mut Sessions, known: &Known) -> bool {
    let Ok(key) = known.key.parse::<SessionKey>() else { return false };
    let is_same = |entry: &SessionEntry| {
        entry.session_id == known.session_id && entry.updated_at == known.updated_at
    };
    sessions.get(&key).is_some_and(is_same) && sessions.remove(&key).is_some()
}

fn kept(known: &Known, why: Why, error: &Error) -> Kept {
    let file = match &known.transcript {
        Where::Here(path) => Some(path.clone()),
        _ => None,
    };
    Kept { session_key: Some(known.key.clone()), file, why, because: because(error) }
}

/// Why something stays, in words.
pub(super) fn because(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Locked => "it is open".to_owned(),
        _ => error.to_string(),
    }
}

pub(super) fn open(path: &Path) -> Error {
    Error::new(ErrorKind::Locked, "the session is open").with("path", path.display())
}

pub(super) fn is_foreign(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::UnknownFormat)
}
