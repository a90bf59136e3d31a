//! Finding a session, or beginning one.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ctx_core::{ErrorKind, Result, Role, Timestamp};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::log::{LogOptions, NewSession, SessionLog};
use ctx_session::store::{SessionEntry, SessionStore};

use super::{Identity, Session, gone, mend};
use crate::runtime::{Inner, Lived, Opening};

/// A session, and what a person should be told of its opening.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) notices: Vec<String>,
}

/// Opens the session of a key, or begins one: where there is none, where the last is over, and
/// where that is asked for. It waits for the disk.
///
/// # Errors
///
/// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) if its file is gone,
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if another process has it open, and what
/// reading and writing may give.
pub(crate) fn open(inner: &Inner, key: &SessionKey, opening: Opening) -> Result<Opened> {
    let now = (inner.settings.clock)();
    let agent = key.agent().cloned().unwrap_or_else(FileId::main);
    let store = SessionStore::at(inner.home.sessions_file(&agent));
    let load = || -> Result<Option<SessionEntry>> { Ok(store.load()?.get(key).cloned()) };
    let mut known = load()?;
    let ends = |entry: &SessionEntry| match opening {
        Opening::Anew => true,
        Opening::AsItIs => false,
        Opening::Message => {
            let lived = Lived { began: began(entry), last: entry.updated_at };
            inner.lifecycle.is_over(key, lived, now)
        }
    };
    loop {
        let entry = match known {
            Some(entry) if !ends(&entry) => entry,
            known => return begin(inner, key, agent, known.as_ref(), now),
        };
        match old(inner, key, agent.clone(), &entry, now) {
            // Its file may have been put aside just now, and its entry with it.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                known = load()?;
                if known.as_ref().is_some_and(|known| known.session_id == entry.session_id) {
                    return Err(error);
                }
            }
            opened => return opened,
        }
    }
}

fn old(
    inner: &Inner,
    key: &SessionKey,
    agent: FileId,
    entry: &SessionEntry,
    now: Timestamp,
) -> Result<Opened> {
    let path = inner.home.transcript(key, entry)?;
    if !path.exists() {
        return Err(gone(key, &path));
    }
    let mut log = SessionLog::open(&path, options(inner))?;
    let transcript = ctx_session::open(&inner.home, &path)?;
    let open_calls = mend::answer_open_calls(&transcript, &mut log, now)?;
    let mut notices: Vec<_> = transcript.problems().iter().map(ToString::to_string).collect();
    if open_calls > 0 {
        notices.push(format!("{open_calls} tool calls were cut short, and are answered as failed"));
    }
    let entries = transcript.context(None)?.entries;
    let newest = entries.iter().filter_map(|entry| entry.timestamp()).max();
    let mut session = session(key, agent, &path, log, newest.unwrap_or_default().max(now));
    session.began = began(entry);
    for entry in entries.iter().rev() {
        if entry.facts()?.role == Role::Assistant {
            session.last_request = entry.timestamp();
            break;
        }
    }
    session.compactions = entry.compaction_count.unwrap_or_default();
    session.flushed_at = entry.memory_flush_compaction_count;
    Ok(Opened { session, notices })
}

/// When a session began. Entries of older programs do not say; such a session is over when nothing
/// happened in it since the day began.
fn began(entry: &SessionEntry) -> Timestamp {
    entry.session_started_at.unwrap_or(entry.updated_at)
}

fn begin(
    inner: &Inner,
    key: &SessionKey,
    agent: FileId,
    old: Option<&SessionEntry>,
    now: Timestamp,
) -> Result<Opened> {
    let (path, mut entry) = loop {
        let entry = SessionEntry::new(inner.settings.ids.next_id(), now);
        let path = inner.home.transcript(key, &entry)?;
        if !path.exists() {
            break (path, entry);
        }
    };
    inner.lifecycle.begins(key, old, &mut entry);
    entry.session_started_at = Some(now);
    let new = NewSession {
        id: FileId::new(&entry.session_id)?,
        timestamp: now,
        cwd: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
        parent_session: None,
    };
    let log = SessionLog::create(&path, &new, options(inner))?;
    inner.book.begin(&agent, key, entry)?;
    Ok(Opened { session: session(key, agent, &path, log, now), notices: Vec::new() })
}

fn options(inner: &Inner) -> LogOptions {
    LogOptions::default().with_group(inner.group.clone()).with_ids(inner.settings.ids.clone())
}

fn session(
    key: &SessionKey,
    agent: FileId,
    path: &Path,
    log: SessionLog,
    newest: Timestamp,
) -> Session {
    Session {
        key: key.clone(),
        agent,
        id: log.session_id().to_owned(),
        path: path.to_owned(),
        identity: Identity::of(path).unwrap_or(Identity(0, 0)),
        log: Arc::new(Mutex::new(log)),
        setting: None,
        view: None,
        counted: 0,
        last_request: None,
        began: newest,
        newest,
        compactions: 0,
        flushed_at: None,
    }
}
