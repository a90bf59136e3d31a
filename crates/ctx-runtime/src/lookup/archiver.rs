//! Archives the sessions of the other agents on this machine, in the background.
//!
//! ```text
//! discover --> newest of this folder first --> main line --> archive --> sessions.json
//! ```
//!
//! A session is identified by its path, size and modification time. An unchanged session is not
//! read again. A grown session is read from its last archived entry on. `sessions.json` is updated
//! only after the segments are on disk, and the archive ignores duplicates. So the process can be
//! killed at any time: nothing is lost and nothing is stored twice.

use ctx_core::text::Slice;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_memory::archive::{ArchivedSession, ArchivedSessions};
use ctx_session::{DiscoveredSession, clock};
use serde::Serialize;

use super::{Lookup, OtherSessions};
use crate::memory::memory_session;
use crate::sync::locked;

/// The interval between two searches for sessions. A request can start one earlier.
const IDLE: Duration = Duration::from_secs(60);

/// The interval while much is left to archive. The newest sessions are archived first.
const BUSY: Duration = Duration::from_secs(15);

/// If a session was written within this time, its last answer may be incomplete, as an answer can
/// span several lines.
const SETTLES: Duration = Duration::from_secs(10);

/// How long to wait for another process that is archiving.
const WAIT: Duration = Duration::from_millis(200);

/// How long after the start a lookup waits for the newest session of the folder.
const FIRST: Duration = Duration::from_millis(1_500);

/// Progress in a session is recorded each time this number of messages is archived.
const NOTED: usize = 4_096;

/// How much of the sessions is archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveProgress {
    /// Number of sessions found.
    pub sessions: usize,
    /// Number of sessions that are not archived, or only in part.
    pub pending: usize,
    /// Number of sessions that cannot be read.
    pub unreadable: usize,
}

/// Archives sessions in its own thread, which ends with the process.
pub struct Archiver {
    lookup: Arc<Lookup>,
    others: Arc<OtherSessions>,
    progress: Mutex<Option<ArchiveProgress>>,
    started: Instant,
    /// Whether the attempt to archive the newest session of the folder has ended.
    is_newest_done: Mutex<bool>,
    newest_done: Condvar,
    wake: SyncSender<()>,
}

impl Archiver {
    /// Starts an archiver of other agents' sessions for the memory of an agent. Sessions of the
    /// folder are archived first.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(lookup: Arc<Lookup>, others: Arc<OtherSessions>) -> Result<Arc<Self>> {
        let (wake, woken) = sync_channel(1);
        let archiver = Arc::new(Self {
            others,
            progress: Mutex::default(),
            started: Instant::now(),
            is_newest_done: Mutex::default(),
            newest_done: Condvar::new(),
            lookup,
            wake,
        });
        let worker = archiver.clone();
        let thread = std::thread::Builder::new().name("ctx-archiver".into());
        thread.spawn(move || worker.run(&woken)).map_err(|error| {
            Error::new(ErrorKind::Io, "cannot start the thread that archives sessions")
                .source(error)
        })?;
        Ok(archiver)
    }

    /// Returns the memory that it archives into. Makes entries of other processes visible and
    /// schedules a search for sessions. Right after the start it waits up to 1.5 s until the newest
    /// session of the folder is archived, so that the first answer covers it.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn lookup(&self) -> Result<Arc<Lookup>> {
        // One pending wake-up is enough.
        let _ = self.wake.try_send(());
        let left = FIRST.saturating_sub(self.started.elapsed());
        let is_done = locked(&self.is_newest_done);
        drop(
            self.newest_done
                .wait_timeout_while(is_done, left, |is_done| !*is_done)
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.lookup.memory.refresh()?;
        Ok(self.lookup.clone())
    }

    /// Returns the progress; `None` before the first search for sessions.
    pub fn progress(&self) -> Option<ArchiveProgress> {
        *locked(&self.progress)
    }

    fn run(&self, woken: &Receiver<()>) {
        if let Some(newest) = self.others.homes.newest_in(&self.others.folder) {
            // The next round reports its errors.
            let _ = self.archive(&newest, IDLE);
        }
        *locked(&self.is_newest_done) = true;
        self.newest_done.notify_all();
        loop {
            let (looked, wait) = self.round();
            match woken.recv_timeout(wait) {
                // Even with frequent requests, the search takes at most a fifth of the time.
                Ok(()) => std::thread::park_timeout(wait.min(looked * 4)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks for sessions and archives new messages, for a limited time. Returns how long the
    /// search took and how long to sleep.
    fn round(&self) -> (Duration, Duration) {
        let begun = Instant::now();
        let mut found = self.others.homes.sessions();
        let looked = begun.elapsed();
        // Archiving a session reports the same error.
        let _ = locked(&self.others.archived).refresh();
        found.sessions.retain(|found| self.others.allows(found));
        self.others.put_folder_first(&mut found.sessions);
        let pending: Vec<_> = found.sessions.iter().filter(|found| !self.has(found)).collect();
        let mut progress = ArchiveProgress {
            sessions: found.sessions.len() + found.problems.len(),
            pending: pending.len(),
            unreadable: found.problems.len(),
        };
        *locked(&self.progress) = Some(progress);
        for found in pending {
            if begun.elapsed() > BUSY {
                return (looked, Duration::ZERO);
            }
            match self.archive(found, WAIT) {
                Ok(is_whole) => progress.pending -= usize::from(is_whole),
                Err(error) if error.kind() == ErrorKind::Locked => {}
                Err(error) => {
                    let path = found.path.display();
                    tracing::warn!(%path, %error, "cannot archive a session");
                    progress.pending -= 1;
                    progress.unreadable += 1;
                }
            }
            *locked(&self.progress) = Some(progress);
        }
        (looked, if progress.pending > 0 { SETTLES } else { IDLE })
    }

    /// Whether a session is archived in its current state.
    fn has(&self, found: &DiscoveredSession) -> bool {
        let archived = locked(&self.others.archived);
        let known = archived.get(&found.path);
        known.is_some_and(|known| known.bytes == found.bytes && known.modified == found.modified)
    }

    /// Archives the new messages of a session. Returns whether all of it is archived.
    fn archive(&self, found: &DiscoveredSession, wait: Duration) -> Result<bool> {
        // Requests that need the list do not wait for the other process.
        let lock = ArchivedSessions::of(&self.lookup.folder).lock(wait)?;
        // Without the list it is unknown which folders were forgotten.
        locked(&self.others.archived).refresh()?;
        if !self.others.allows(found) || self.has(found) {
            return Ok(true);
        }
        let transcript = ctx_session::open(&self.lookup.home, &found.path)?;
        let session = memory_session(transcript.header.id.as_deref(), &found.path);
        let mut line = transcript.main_line()?;
        let now = clock::now();
        let age = u128::try_from(now.0.saturating_sub(found.modified.0));
        let is_fresh = age.is_ok_and(|age| age < SETTLES.as_millis());
        let mut is_whole = true;
        if is_fresh
            && found.agent.writes_in_steps()
            && let Some(last) = line.last()
            && last.entry.message()?.role == Role::Assistant
        {
            line.pop();
            is_whole = false;
        }
        let known =
            locked(&self.others.archived).get(&found.path).and_then(|known| known.last.clone());
        let is_known = |id: &str| known.as_deref() == Some(id);
        // The last archived message is included again: it may have grown.
        let from = line.iter().rposition(|item| is_known(item.entry.id())).unwrap_or(0);
        let new = line.slice(from..);
        let note = |done: usize, bytes| {
            let last = done.checked_sub(1).and_then(|at| new.get(at));
            let note = ArchivedSession {
                agent: found.agent.name().to_owned(),
                session: session.clone(),
                project: found.project.clone(),
                bytes,
                modified: found.modified,
                last: last.map(|item| item.entry.id().to_string()).or_else(|| known.clone()),
            };
            locked(&self.others.archived).note(&lock, &found.path, note)
        };
        let mut done = 0;
        self.lookup.ingest(&session, new, now, |messages| {
            done += messages;
            if done % NOTED == 0 { note(done, 0) } else { Ok(()) }
        })?;
        note(new.len(), if is_whole { found.bytes } else { 0 })?;
        Ok(is_whole)
    }
}
