//! Opens a session, or creates one.
//!
//! Other processes may do the same concurrently. To replace a session, a process holds the old
//! session's lock until it is done, and changes the store only if its entry is unchanged. To open
//! a session, a process first marks it as used in the store, and reads the entry again once it has
//! the lock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ctx_core::{ErrorKind, Result, Role, Timestamp};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{
    ChatType, Durability, LogOptions, NewSession, SessionEntry, SessionLock, SessionLog,
    SessionStore, discard_session,
};

use super::lease::SessionLease;
use super::overrides::SessionOverrides;
use super::{
    LeasedLog, OpenReason, Session, SessionPool, UsageDelta, file_identity, missing_file, repair,
};
use crate::lifecycle::SessionTimes;

/// A session whose entry says it was used within this time (in milliseconds) is not marked again.
const MARK_INTERVAL_MS: i64 = 60_000;

/// An open session, and notices from opening it.
type Opened = (Session, Vec<String>);

/// The session to open, and the time.
struct SessionOpener<'a> {
    pool: &'a SessionPool,
    key: &'a SessionKey,
    agent: FileId,
    store: SessionStore,
    reason: OpenReason,
    now: Timestamp,
    lease: SessionLease,
}

/// Opens the session of a key. Creates one if there is none, if the last one is over, or on
/// request. Waits for the disk.
///
/// # Errors
///
/// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) if its file is missing,
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if another process has it open, and errors of
/// reading and writing.
pub(super) fn open(
    pool: &SessionPool,
    key: &SessionKey,
    reason: OpenReason,
    lease: SessionLease,
) -> Result<Opened> {
    let agent = key.agent().cloned().unwrap_or_else(FileId::main);
    let store = SessionStore::at(pool.home.sessions_file(&agent));
    let now = (pool.settings.clock)();
    let opener = SessionOpener { pool, key, agent, store, reason, now, lease };
    loop {
        let opened = match opener.stored()? {
            Some(entry) if !opener.is_over(&entry) => opener.resume(&entry)?,
            known => opener.create(known.as_ref())?,
        };
        if let Some(opened) = opened {
            return Ok(opened);
        }
        // Another process was first: the key has another session now.
    }
}

impl SessionOpener<'_> {
    /// Returns the store's entry of the key.
    fn stored(&self) -> Result<Option<SessionEntry>> {
        self.store.get(self.key)
    }

    fn is_over(&self, entry: &SessionEntry) -> bool {
        let times = SessionTimes { began: began(entry), last: entry.updated_at };
        self.pool.is_over(self.key, self.reason, times, self.now)
    }

    /// Opens an existing session. Returns `None` if the key has another session by the time it is
    /// open.
    fn resume(&self, seen: &SessionEntry) -> Result<Option<Opened>> {
        self.mark_used(seen)?;
        let path = self.pool.home.transcript(self.key, seen)?;
        let is_seen = |known: &SessionEntry| {
            known.session_id == seen.session_id && known.session_file == seen.session_file
        };
        let log = match path.exists() {
            true => SessionLog::open(&path, self.options()),
            false => Err(missing_file(self.key, &path)),
        };
        let known = self.stored()?.filter(is_seen);
        let Some(entry) = known else {
            // The entry changed; a lock error takes precedence, as another process may still be
            // working.
            return match log {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        };
        let mut log = log?;
        let transcript = ctx_session::open(&self.pool.home, &path)?;
        let context = transcript.context(None)?;
        let in_force = context.compaction.as_ref();
        let to_archive = match in_force.filter(|compaction| transcript.leaf() == Some(compaction)) {
            Some(compaction) => transcript.covered_by(compaction, None)?,
            None => Vec::new(),
        };
        let newest = context.entries.iter().filter_map(|entry| entry.timestamp()).max();
        let newest = newest.unwrap_or_default().max(self.now);
        let open_calls = repair::answer_open_calls(&transcript, &mut log, newest)?;
        let problems = transcript.problems.iter().filter(|problem| !problem.kind.is_harmless());
        let mut notices: Vec<_> = problems.map(ToString::to_string).collect();
        if open_calls > 0 {
            notices.push(match open_calls {
                1 => "a tool call was interrupted and is marked as failed".to_owned(),
                some => format!("{some} tool calls were interrupted and are marked as failed"),
            });
        }
        let overrides = SessionOverrides::of(self.pool, &entry, &mut notices);
        let mut session = self.session(&path, log, newest, overrides);
        session.began = began(seen);
        session.to_archive = to_archive;
        for entry in context.entries.iter().rev() {
            if entry.outline()?.role == Role::Assistant {
                session.last_request = entry.timestamp();
                break;
            }
        }
        session.compactions = entry.compaction_count.unwrap_or_default();
        session.flushed_at = entry.memory_flush_compaction_count;
        Ok(Some((session, notices)))
    }

    /// Marks the session as used in the store, before it is locked: a caller that is refused now
    /// will retry, and maintenance must not archive the session meanwhile.
    fn mark_used(&self, seen: &SessionEntry) -> Result<()> {
        if self.now.0.saturating_sub(seen.updated_at.0) < MARK_INTERVAL_MS {
            return Ok(());
        }
        let id = seen.session_id.clone();
        let used = UsageDelta { id, updated_at: self.now, ..UsageDelta::default() };
        self.pool.usage.write_now(self.key, &used)
    }

    /// Creates a session. Returns `None` if another process created one meanwhile.
    fn create(&self, old: Option<&SessionEntry>) -> Result<Option<Opened>> {
        let before = old.map(|old| self.pool.home.transcript(self.key, old)).transpose()?;
        // A process that has the old session open continues in it, and must not lose its key.
        let _held = before.as_deref().map(SessionLock::of).transpose()?;
        let (path, mut entry) = self.unused_id()?;
        self.pool.lifecycle.begins(self.key, old, &mut entry);
        entry.session_started_at = Some(self.now);
        let (chat_type, channel) = ChatType::of(self.key).unzip();
        entry.chat_type = entry.chat_type.or(chat_type);
        entry.provider = entry.provider.or(channel.flatten());
        let mut notices = Vec::new();
        let overrides = SessionOverrides::of(self.pool, &entry, &mut notices);
        let new = NewSession {
            id: FileId::new(&entry.session_id)?,
            timestamp: self.now,
            cwd: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            parent_session: None,
        };
        let log = SessionLog::create(&path, &new, self.options())?;
        let seen = old.map(|old| old.session_id.clone());
        if !self.pool.usage.begin(&self.agent, self.key, entry, seen)? {
            drop(log);
            if let Err(error) = discard_session(&path) {
                tracing::warn!("cannot remove the file of a session that did not start: {error}");
            }
            return Ok(None);
        }
        if let (Some(before), OpenReason::Message) = (before, self.reason) {
            let words = "the previous session is over and a new one starts; the old transcript is";
            notices.push(format!("{words} {}", before.display()));
        }
        Ok(Some((self.session(&path, log, self.now, overrides), notices)))
    }

    /// Returns an unused id and the path of its file.
    fn unused_id(&self) -> Result<(PathBuf, SessionEntry)> {
        loop {
            let entry = SessionEntry::new(self.pool.settings.ids.next_id(), self.now);
            let path = self.pool.home.transcript(self.key, &entry)?;
            if !path.exists() {
                return Ok((path, entry));
            }
        }
    }

    fn options(&self) -> LogOptions {
        let pool = self.pool;
        let ids = pool.settings.ids.clone();
        match pool.shared {
            // The store is what makes a line durable.
            Some(_) => LogOptions { ids, durability: Durability::None, group: None },
            None => LogOptions { ids, group: Some(pool.group.clone()), ..LogOptions::default() },
        }
    }

    fn session(
        &self,
        path: &Path,
        log: SessionLog,
        newest: Timestamp,
        overrides: SessionOverrides,
    ) -> Session {
        Session {
            key: self.key.clone(),
            agent: self.agent.clone(),
            id: log.session_id.clone(),
            path: path.to_owned(),
            identity: file_identity(path).unwrap_or_default(),
            log: Arc::new(LeasedLog { log: Mutex::new(log), _lease: self.lease.clone() }),
            overrides,
            setup: None,
            view: None,
            counted: 0,
            sent: None,
            limit: None,
            last_request: None,
            is_heartbeat: false,
            began: newest,
            newest,
            compactions: 0,
            flushed_at: None,
            to_archive: Vec::new(),
            shared: None,
        }
    }
}

/// When a session began. Entries of older programs do not record it; such a session is over if
/// nothing happened in it since the day began.
fn began(entry: &SessionEntry) -> Timestamp {
    entry.session_started_at.unwrap_or(entry.updated_at)
}
