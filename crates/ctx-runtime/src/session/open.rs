//! Finding a session, or beginning one.
//!
//! Other processes may do the same at the same time. Who begins a session in the place of another has
//! that one's lock until it is done, and puts it into the store only if the store still says what was
//! seen before; who opens one says in the store that it is used, and looks again once it has the lock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{ErrorKind, Result, Role, Timestamp};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::log::{LogOptions, NewSession, SessionLog};
use ctx_session::store::{ChatType, SessionEntry, SessionStore};
use ctx_session::{Hold, retire};

use super::hands::Hand;
use super::own::OwnSettings;
use super::{Identity, Log, Session, Tally, gone, mend};
use crate::runtime::{Inner, Lived, Opening};

/// A session that the store calls used within so many milliseconds is opened without a word to it.
const TOUCHED_MS: i64 = 60_000;

/// A session, and what a person should be told of its opening.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) notices: Vec<String>,
}

/// What is opened, and when.
struct Wanted<'a> {
    inner: &'a Inner,
    key: &'a SessionKey,
    agent: FileId,
    store: SessionStore,
    opening: Opening,
    now: Timestamp,
    hand: Hand,
}

/// Opens the session of a key, or begins one: where there is none, where the last is over, and
/// where that is asked for. It waits for the disk.
///
/// # Errors
///
/// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) if its file is gone,
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if another process has it open, and what
/// reading and writing may give.
pub(crate) fn open(
    inner: &Inner,
    key: &SessionKey,
    opening: Opening,
    hand: Hand,
) -> Result<Opened> {
    let agent = key.agent().cloned().unwrap_or_else(FileId::main);
    let store = SessionStore::at(inner.home.sessions_file(&agent));
    let now = (inner.settings.clock)();
    let wanted = Wanted { inner, key, agent, store, opening, now, hand };
    loop {
        let opened = match wanted.known()? {
            Some(entry) if !wanted.is_over(&entry) => wanted.old(&entry)?,
            known => wanted.begin(known.as_ref())?,
        };
        if let Some(opened) = opened {
            return Ok(opened);
        }
        // Somebody else was there first: the key stands for another session now.
    }
}

impl Wanted<'_> {
    /// What the store says of the key.
    fn known(&self) -> Result<Option<SessionEntry>> {
        Ok(self.store.load()?.get(self.key).cloned())
    }

    fn is_over(&self, entry: &SessionEntry) -> bool {
        match self.opening {
            Opening::Anew => true,
            Opening::AsItIs => false,
            Opening::Message => {
                let lived = Lived { began: began(entry), last: entry.updated_at };
                self.inner.lifecycle.is_over(self.key, lived, self.now)
            }
        }
    }

    /// Opens a session that is there. `None` if the key stands for another by the time it is open.
    fn old(&self, seen: &SessionEntry) -> Result<Option<Opened>> {
        self.touch(seen)?;
        let path = self.inner.home.transcript(self.key, seen)?;
        let is_seen = |known: &SessionEntry| {
            known.session_id == seen.session_id && known.session_file == seen.session_file
        };
        let log = match path.exists() {
            true => SessionLog::open(&path, self.options()),
            false => Err(gone(self.key, &path)),
        };
        let known = self.known()?.filter(is_seen);
        let Some(entry) = known else {
            // Where there is no telling, the lock is what counts: others may still be at it.
            return match log {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        };
        let mut log = log?;
        let transcript = ctx_session::open(&self.inner.home, &path)?;
        let context = transcript.context(None)?;
        let in_force = context.compaction.as_ref();
        let to_archive = match in_force.filter(|compaction| transcript.leaf() == Some(compaction)) {
            Some(compaction) => transcript.covered_by(compaction, None)?,
            None => Vec::new(),
        };
        let newest = context.entries.iter().filter_map(|entry| entry.timestamp()).max();
        let newest = newest.unwrap_or_default().max(self.now);
        let open_calls = mend::answer_open_calls(&transcript, &mut log, newest)?;
        let problems = transcript.problems().iter().filter(|problem| !problem.kind.is_harmless());
        let mut notices: Vec<_> = problems.map(ToString::to_string).collect();
        if open_calls > 0 {
            notices.push(match open_calls {
                1 => "a tool call was cut short, and is answered as failed".to_owned(),
                some => format!("{some} tool calls were cut short, and are answered as failed"),
            });
        }
        let own = OwnSettings::of(self.inner, &entry, &mut notices);
        let mut session = self.session(&path, log, newest, own);
        session.began = began(seen);
        session.to_archive = to_archive;
        for entry in context.entries.iter().rev() {
            if entry.facts()?.role == Role::Assistant {
                session.last_request = entry.timestamp();
                break;
            }
        }
        session.compactions = entry.compaction_count.unwrap_or_default();
        session.flushed_at = entry.memory_flush_compaction_count;
        Ok(Some(Opened { session, notices }))
    }

    /// Has the store say that the session is used, before it is locked: whoever is refused now comes
    /// again, and maintenance must not put the session aside meanwhile.
    fn touch(&self, seen: &SessionEntry) -> Result<()> {
        if self.now.0.saturating_sub(seen.updated_at.0) < TOUCHED_MS {
            return Ok(());
        }
        let id = seen.session_id.clone();
        let used = Tally { id, updated_at: self.now, ..Tally::default() };
        self.inner.book.write_now(self.key, &used)
    }

    /// Begins a session. `None` if somebody else began one meanwhile.
    fn begin(&self, old: Option<&SessionEntry>) -> Result<Option<Opened>> {
        let before = old.map(|old| self.inner.home.transcript(self.key, old)).transpose()?;
        // Whoever has the old one open goes on in it, and must not find himself without a key.
        let _held = before.as_deref().map(Hold::of).transpose()?;
        let (path, mut entry) = self.fresh()?;
        self.inner.lifecycle.begins(self.key, old, &mut entry);
        entry.session_started_at = Some(self.now);
        let (chat_type, channel) = ChatType::of(self.key).unzip();
        entry.chat_type = entry.chat_type.or(chat_type);
        entry.provider = entry.provider.or(channel.flatten());
        let mut notices = Vec::new();
        let own = OwnSettings::of(self.inner, &entry, &mut notices);
        let new = NewSession {
            id: FileId::new(&entry.session_id)?,
            timestamp: self.now,
            cwd: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            parent_session: None,
        };
        let log = SessionLog::create(&path, &new, self.options())?;
        let seen = old.map(|old| old.session_id.clone());
        if !self.inner.book.begin(&self.agent, self.key, entry, seen)? {
            drop(log);
            if let Err(error) = retire::discard(&path) {
                tracing::warn!("a session that was not begun left its file: {error}");
            }
            return Ok(None);
        }
        if let (Some(before), Opening::Message) = (before, self.opening) {
            let words = "another session begins, as the last one was over; that one stays in";
            notices.push(format!("{words} {}", before.display()));
        }
        Ok(Some(Opened { session: self.session(&path, log, self.now, own), notices }))
    }

    /// An id that no session has, and the path of its file.
    fn fresh(&self) -> Result<(PathBuf, SessionEntry)> {
        loop {
            let entry = SessionEntry::new(self.inner.settings.ids.next_id(), self.now);
            let path = self.inner.home.transcript(self.key, &entry)?;
            if !path.exists() {
                return Ok((path, entry));
            }
        }
    }

    fn options(&self) -> LogOptions {
        let inner = self.inner;
        LogOptions::default().with_group(inner.group.clone()).with_ids(inner.settings.ids.clone())
    }

    fn session(
        &self,
        path: &Path,
        log: SessionLog,
        newest: Timestamp,
        own: OwnSettings,
    ) -> Session {
        Session {
            key: self.key.clone(),
            agent: self.agent.clone(),
            id: log.session_id().to_owned(),
            path: path.to_owned(),
            identity: Identity::of(path).unwrap_or(Identity(0, 0)),
            log: Arc::new(Log::new(log, self.hand.clone())),
            own,
            setting: None,
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
        }
    }
}

/// When a session began. Entries of older programs do not say; such a session is over when nothing
/// happened in it since the day began.
fn began(entry: &SessionEntry) -> Timestamp {
    entry.session_started_at.unwrap_or(entry.updated_at)
}
