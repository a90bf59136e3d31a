//! Archives the sessions of the other agents on this machine, in the background.
//!
//! ```text
//! discover --> newest of this folder first --> main line --> archive --> sessions.json
//! ```
//!
//! A session is known by its path, size and time: one that did not change is not read again, one that
//! grew is read on from the last entry that was archived. Segments are on the disk before it is noted
//! that they are, and the archive takes each in once: whenever the process is killed, nothing is lost
//! and nothing there twice.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_memory::Excluded;
use ctx_memory::archive::{ArchivedSession, ArchivedSessions};
use ctx_session::clock;
use ctx_session::discover::{Agent, AgentHomes, FoundSession};
use serde::Serialize;

use crate::lookup::Lookup;
use crate::memory_session;
use crate::session::locked;

/// Sessions are looked for again after this long, or when somebody asks.
const IDLE: Duration = Duration::from_secs(60);

/// While there is much to archive, they are looked for again after this long: what is newest goes first.
const BUSY: Duration = Duration::from_secs(15);

/// The last answer of a session that was written to later than this may be written over several lines
/// and not be whole.
const SETTLES: Duration = Duration::from_secs(10);

/// How long is waited for another process that archives.
const WAIT: Duration = Duration::from_millis(200);

/// After so many messages of a session it is noted how far it was archived.
const NOTED: usize = 4_096;

/// How much of the sessions is archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveProgress {
    /// The sessions that were found.
    pub sessions: usize,
    /// Those that are not archived yet, or not to their end.
    pub pending: usize,
    /// Those that cannot be read.
    pub unreadable: usize,
}

/// Archives sessions in a thread of its own, which ends with the process.
pub struct Archiver {
    lookup: Arc<Lookup>,
    homes: AgentHomes,
    folder: PathBuf,
    excluded: Excluded,
    archived: Mutex<ArchivedSessions>,
    progress: Mutex<Option<ArchiveProgress>>,
    wake: SyncSender<()>,
}

impl Archiver {
    /// Starts it for the memory of an agent. Sessions of `folder` come first.
    ///
    /// # Errors
    ///
    /// Patterns that are none, and where no thread can be started.
    pub fn start(lookup: Arc<Lookup>, homes: AgentHomes, folder: PathBuf) -> Result<Arc<Self>> {
        let (wake, woken) = sync_channel(1);
        let archiver = Arc::new(Self {
            excluded: lookup.config.excluded()?,
            archived: Mutex::new(ArchivedSessions::of(&lookup.folder)),
            folder: folder.canonicalize().unwrap_or(folder),
            progress: Mutex::default(),
            lookup,
            homes,
            wake,
        });
        let worker = archiver.clone();
        let thread = std::thread::Builder::new().name("ctx-archiver".into());
        thread.spawn(move || worker.run(&woken)).map_err(|error| {
            Error::new(ErrorKind::Io, "no thread for archiving sessions").source(error)
        })?;
        Ok(archiver)
    }

    /// The memory that it archives into. What other processes wrote there is found from now on, and
    /// sessions are looked for again soon.
    ///
    /// # Errors
    ///
    /// Where the archive cannot be read.
    pub fn lookup(&self) -> Result<Arc<Lookup>> {
        // One look that is waited for is as good as many.
        let _ = self.wake.try_send(());
        self.lookup.memory.refresh()?;
        Ok(self.lookup.clone())
    }

    /// How much is archived; none until sessions were looked for.
    #[must_use]
    pub fn progress(&self) -> Option<ArchiveProgress> {
        *locked(&self.progress)
    }

    fn run(&self, woken: &Receiver<()>) {
        if let Some(newest) = self.homes.newest_in(&self.folder) {
            // What is wrong with it is found again by the round.
            let _ = self.archive(&newest, IDLE);
        }
        loop {
            let (looked, wait) = self.round();
            match woken.recv_timeout(wait) {
                // However often somebody asks, looking for sessions takes a small part of the time.
                Ok(()) => std::thread::park_timeout(wait.min(looked * 4)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks for sessions and archives what is new, for a while. Gives how long it looked, and for how
    /// long nothing is to be done.
    fn round(&self) -> (Duration, Duration) {
        let begun = Instant::now();
        let mut found = self.homes.sessions();
        let looked = begun.elapsed();
        // What is wrong with it is said of each session that is to be archived.
        let _ = locked(&self.archived).refresh();
        found.sessions.retain(|found| self.wants(found));
        found.sessions.sort_by_cached_key(|found| {
            let project = found.project.as_deref();
            !project.is_some_and(|at| {
                at == self.folder || at.canonicalize().ok().as_ref() == Some(&self.folder)
            })
        });
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
                    tracing::warn!(path = %found.path.display(), %error, "a session is not archived");
                    progress.pending -= 1;
                    progress.unreadable += 1;
                }
            }
            *locked(&self.progress) = Some(progress);
        }
        (looked, if progress.pending > 0 { SETTLES } else { IDLE })
    }

    /// Whether the user lets a session be archived.
    fn wants(&self, found: &FoundSession) -> bool {
        let archived = locked(&self.archived);
        let is_out = |at: &Path| self.excluded.has(at) || archived.is_forgotten(at);
        !found.project.as_deref().is_some_and(is_out)
    }

    /// Whether a session is archived as it stands.
    fn has(&self, found: &FoundSession) -> bool {
        let archived = locked(&self.archived);
        let known = archived.get(&found.path);
        known.is_some_and(|known| known.bytes == found.bytes && known.modified == found.modified)
    }

    /// Archives what is new in a session. Whether that is all of it.
    fn archive(&self, found: &FoundSession, wait: Duration) -> Result<bool> {
        let lock = locked(&self.archived).lock(wait)?;
        // Without the list nobody knows what is to stay out.
        locked(&self.archived).refresh()?;
        if !self.wants(found) || self.has(found) {
            return Ok(true);
        }
        let transcript = ctx_session::open(&self.lookup.home, &found.path)?;
        let session = memory_session(transcript.header().id.as_deref(), &found.path);
        let mut line = transcript.main_line()?;
        let now = clock::now();
        let age = u128::try_from(now.0.saturating_sub(found.modified.0));
        let is_fresh = age.is_ok_and(|age| age < SETTLES.as_millis());
        let mut is_whole = true;
        if is_fresh
            && matches!(found.agent, Agent::ClaudeCode | Agent::Opencode)
            && let Some(last) = line.last()
            && last.entry.message()?.role == Role::Assistant
        {
            line.pop();
            is_whole = false;
        }
        let known = locked(&self.archived).get(&found.path).and_then(|known| known.last.clone());
        let is_known = |id: &str| known.as_deref() == Some(id);
        // The last one again: it may have grown.
        let from = line.iter().rposition(|item| is_known(item.entry.id())).unwrap_or(0);
        let new = line.get(from..).unwrap_or_default();
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
            locked(&self.archived).note(&lock, &found.path, note)
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
