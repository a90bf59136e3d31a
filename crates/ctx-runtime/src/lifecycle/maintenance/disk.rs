//! Removing what was archived: when it was kept for long enough, and when there is too much of it.

use std::path::{Path, PathBuf};

use ctx_core::{Error, Result, Timestamp};
use ctx_session::Transcript;
use ctx_session::erase::files_of;
use ctx_session::retire::{Retiring, is_open, remove_retired};
use ctx_session::store::SessionStore;

use super::entries::{because, is_foreign, open};
use super::folder::Folder;
use super::plan::{Known, Where};
use super::{Act, Kept, Maintained, MaintenanceReport, Run, Why};
use crate::lifecycle::Retention;
use crate::memory_session;

impl Run<'_> {
    /// Removes archived transcripts that were kept for long enough.
    pub(super) fn expire(&self, folder: &mut Folder, report: &mut MaintenanceReport) {
        let Retention::For(age) = self.limits.reset_archive_retention else { return };
        for (at, file) in folder.archived() {
            let old = self.now.0.saturating_sub(at.0) > age.millis();
            if old && !self.is_stopped() && !self.is_too_fresh(&file, folder) {
                self.remove(&file, Why::Retention, folder, report);
            }
        }
    }

    /// Where there is too much, removes archived transcripts, oldest first, and lets sessions go that
    /// nobody has open, until there is little enough.
    pub(super) fn make_room(
        &self,
        store: &SessionStore,
        known: &[Known],
        folder: &mut Folder,
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
                self.remove(&file, Why::Disk, folder, report);
            }
        }
        for (_, candidate) in self.candidates(known, folder, report) {
            // What was put aside and could not be removed yet will be: no more need go for it.
            let left = folder.bytes.saturating_sub(folder.fresh_bytes());
            if left <= enough || self.is_stopped() {
                return Ok(());
            }
            let before = report.done.len();
            match candidate {
                Candidate::Orphan(file) => self.put_aside(&file, folder, report),
                Candidate::Session(at) => {
                    let leaving = [(at, Why::Disk)];
                    self.let_go(store, known, &leaving, folder, report, &mut |_, _| {})?;
                }
            }
            let done = report.done.get(before).filter(|done| done.act == Act::Archived);
            let file = done.and_then(|done| done.archived_as.clone().or(done.file.clone()));
            if let Some(file) = file.filter(|file| !self.is_too_fresh(file, folder)) {
                self.remove(&file, Why::Disk, folder, report);
            }
        }
        Ok(())
    }

    /// Transcripts that were not let go yet, those used least lately first.
    fn candidates(
        &self,
        known: &[Known],
        folder: &Folder,
        report: &MaintenanceReport,
    ) -> Vec<(Timestamp, Candidate)> {
        let is_looked_at = |key: &str| {
            let of_key = |of: &Option<String>| of.as_deref() == Some(key);
            report.done.iter().any(|done| of_key(&done.session_key))
                || report.kept.iter().any(|kept| of_key(&kept.session_key))
        };
        let orphans = folder.orphans().into_iter();
        let orphans = orphans.map(|(at, file)| (at, Candidate::Orphan(file)));
        let sessions = known.iter().enumerate().filter_map(|(at, known)| {
            let has_file = matches!(known.transcript, Where::Here(_));
            let last = known.last.filter(|_| has_file && !is_looked_at(&known.key))?;
            Some((last, Candidate::Session(at)))
        });
        let mut sessions: Vec<_> = sessions.collect();
        sessions.sort_by_key(|(at, _)| *at);
        orphans.chain(sessions).collect()
    }

    /// Archives a transcript that no session has any more.
    fn put_aside(&self, file: &Path, folder: &mut Folder, report: &mut MaintenanceReport) {
        let bytes = folder.bytes_of(file);
        let moved = match self.dry_run {
            true if is_open(file) => Err(open(file)),
            true => Ok(None),
            false => Retiring::begin(file).and_then(|transcript| {
                self.archive.keep(transcript.session_id(), &transcript.files(), self.now)?;
                transcript.finish(self.now).map(Some)
            }),
        };
        match moved {
            Ok(archived_as) => {
                folder.moved(file, archived_as.as_deref());
                report.done.push(Maintained {
                    session_key: None,
                    file: Some(file.to_owned()),
                    archived_as,
                    act: Act::Archived,
                    why: Why::Disk,
                    bytes,
                });
            }
            // A file of another program is none of ours.
            Err(error) if is_foreign(error.kind()) => {}
            Err(error) => report.kept.push(stays(file, Why::Disk, &error)),
        }
    }

    /// Removes an archived transcript, if memory has all of it, where there is one.
    fn remove(&self, file: &Path, why: Why, folder: &mut Folder, report: &mut MaintenanceReport) {
        let bytes = folder.bytes_of(file);
        let removed = match self.dry_run {
            true => Ok(bytes),
            false => self.check_archived(file).and_then(|()| remove_retired(file)),
        };
        match removed {
            Ok(_) => {
                folder.removed(file, bytes);
                report.done.push(Maintained {
                    session_key: None,
                    file: Some(file.to_owned()),
                    archived_as: None,
                    act: Act::Removed,
                    why,
                    bytes,
                });
            }
            Err(error) => report.kept.push(stays(file, why, &error)),
        }
    }

    /// Whether a transcript was archived just now, and nowhere but beside where it was.
    fn is_too_fresh(&self, file: &Path, folder: &Folder) -> bool {
        self.archive.is_off() && folder.fresh.contains(file)
    }

    fn check_archived(&self, file: &Path) -> Result<()> {
        if is_open(file) {
            return Err(open(file));
        }
        if self.archive.is_off() {
            return Ok(());
        }
        let transcript = Transcript::open(file)?;
        let session = memory_session(transcript.header().id.as_deref(), file);
        self.archive.keep(&session, &files_of(file), self.now)
    }
}

enum Candidate {
    Orphan(PathBuf),
    /// By its place among the sessions that are known.
    Session(usize),
}

fn stays(file: &Path, why: Why, error: &Error) -> Kept {
    Kept { session_key: None, file: Some(file.to_owned()), why, because: because(error) }
}
