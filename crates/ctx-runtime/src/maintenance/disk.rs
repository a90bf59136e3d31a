//! Removes archived transcripts that are expired or exceed the disk limit.

use std::path::{Path, PathBuf};

use ctx_core::{Error, Result, Timestamp};
use ctx_session::{
    RetiringSession, SessionStore, Transcript, is_foreign, remove_retired, session_files,
    session_is_open,
};

use super::entries::{because, open};
use super::folder::SessionsFolder;
use super::plan::{KnownSession, TranscriptLocation};
use super::{Action, KeptSession, MaintainedSession, MaintenanceReport, MaintenanceRun, Reason};
use crate::lifecycle::Retention;
use crate::memory::memory_session;

impl MaintenanceRun<'_> {
    /// Removes expired archived transcripts.
    pub(super) fn expire(&self, folder: &mut SessionsFolder, report: &mut MaintenanceReport) {
        let Retention::For(age) = self.limits.reset_archive_retention else { return };
        for (at, file) in folder.archived() {
            let old = self.now.0.saturating_sub(at.0) > age.millis();
            if old && !self.is_stopped() && !self.is_too_fresh(&file, folder) {
                self.remove(&file, Reason::Retention, folder, report);
            }
        }
    }

    /// If the disk limit is exceeded, removes archived transcripts, oldest first, then sessions
    /// that are not open, until the size is low enough.
    pub(super) fn make_room(
        &self,
        store: &SessionStore,
        known: &[KnownSession],
        folder: &mut SessionsFolder,
        report: &mut MaintenanceReport,
    ) -> Result<()> {
        let Some((most, enough)) = self.limits.disk() else { return Ok(()) };
        if folder.bytes <= most {
            return Ok(());
        }
        for (_, file) in folder.archived() {
            if folder.bytes <= enough || self.is_stopped() {
                return Ok(());
            }
            if !self.is_too_fresh(&file, folder) {
                self.remove(&file, Reason::Disk, folder, report);
            }
        }
        for (_, candidate) in self.candidates(known, folder, report) {
            // Transcripts archived in this run are removed by a later run: count them as removed.
            let left = folder.bytes.saturating_sub(folder.fresh_bytes());
            if left <= enough || self.is_stopped() {
                return Ok(());
            }
            let before = report.done.len();
            match candidate {
                RemovalCandidate::Orphan(file) => self.archive_orphan(&file, folder, report),
                RemovalCandidate::Session(at) => {
                    let leaving = [(at, Reason::Disk)];
                    self.remove_sessions(store, known, &leaving, folder, report, &mut |_, _| {})?;
                }
            }
            let done = report.done.get(before).filter(|done| done.act == Action::Archived);
            let file = done.and_then(|done| done.archived_as.clone().or(done.file.clone()));
            if let Some(file) = file.filter(|file| !self.is_too_fresh(file, folder)) {
                self.remove(&file, Reason::Disk, folder, report);
            }
        }
        Ok(())
    }

    /// Returns the transcripts that still have a session, least recently used first.
    fn candidates(
        &self,
        known: &[KnownSession],
        folder: &SessionsFolder,
        report: &MaintenanceReport,
    ) -> Vec<(Timestamp, RemovalCandidate)> {
        let is_handled = |key: &str| {
            let of_key = |of: &Option<String>| of.as_deref() == Some(key);
            report.done.iter().any(|done| of_key(&done.session_key))
                || report.kept.iter().any(|kept| of_key(&kept.session_key))
        };
        let orphans = folder.orphans().into_iter();
        let orphans = orphans.map(|(at, file)| (at, RemovalCandidate::Orphan(file)));
        let sessions = known.iter().enumerate().filter_map(|(at, known)| {
            let has_file = matches!(known.transcript, TranscriptLocation::Here(_));
            let last = known.last.filter(|_| has_file && !is_handled(&known.key))?;
            Some((last, RemovalCandidate::Session(at)))
        });
        let mut sessions: Vec<_> = sessions.collect();
        sessions.sort_by_key(|(at, _)| *at);
        orphans.chain(sessions).collect()
    }

    /// Archives a transcript without a session.
    fn archive_orphan(
        &self,
        file: &Path,
        folder: &mut SessionsFolder,
        report: &mut MaintenanceReport,
    ) {
        let bytes = folder.bytes_of(file);
        let moved = match self.dry_run {
            true if session_is_open(file) => Err(open(file)),
            true => Ok(None),
            false => RetiringSession::begin(file).and_then(|transcript| {
                self.archive.keep(transcript.session_id(), &session_files(file), self.now)?;
                transcript.finish(self.now).map(Some)
            }),
        };
        match moved {
            Ok(archived_as) => {
                folder.moved(file, archived_as.as_deref());
                report.done.push(MaintainedSession {
                    archived_as,
                    ..of_file(file, Action::Archived, Reason::Disk, bytes)
                });
            }
            // ctx does not touch files of other programs.
            Err(error) if is_foreign(&error) => {}
            Err(error) => report.kept.push(stays(file, Reason::Disk, &error)),
        }
    }

    /// Removes an archived transcript, if memory is disabled or contains all of it.
    fn remove(
        &self,
        file: &Path,
        why: Reason,
        folder: &mut SessionsFolder,
        report: &mut MaintenanceReport,
    ) {
        let bytes = folder.bytes_of(file);
        let removed = match self.dry_run {
            true => Ok(bytes),
            false => self.check_archived(file).and_then(|()| remove_retired(file)),
        };
        match removed {
            Ok(_) => {
                folder.removed(file, bytes);
                report.done.push(of_file(file, Action::Removed, why, bytes));
            }
            Err(error) => report.kept.push(stays(file, why, &error)),
        }
    }

    /// Whether a transcript was archived in this run, and only as a file, as memory is disabled.
    fn is_too_fresh(&self, file: &Path, folder: &SessionsFolder) -> bool {
        self.archive.is_off() && folder.fresh.contains(file)
    }

    fn check_archived(&self, file: &Path) -> Result<()> {
        if session_is_open(file) {
            return Err(open(file));
        }
        if self.archive.is_off() {
            return Ok(());
        }
        let transcript = Transcript::open(file)?;
        let session = memory_session(transcript.header.id.as_deref(), file);
        self.archive.keep(&session, &session_files(file), self.now)
    }
}

enum RemovalCandidate {
    Orphan(PathBuf),
    /// Index into the known sessions.
    Session(usize),
}

fn stays(file: &Path, why: Reason, error: &Error) -> KeptSession {
    KeptSession { session_key: None, file: Some(file.to_owned()), why, because: because(error) }
}

fn of_file(file: &Path, act: Action, why: Reason, bytes: u64) -> MaintainedSession {
    let file = Some(file.to_owned());
    MaintainedSession { session_key: None, file, archived_as: None, act, why, bytes }
}
