//! One open session: its file, what it is run with, and what the model sees of it.
//!
//! The file is the truth. The view is made from it when there is none (when the session is opened,
//! after a compaction, for another model or other tools), and grows with what is appended otherwise.

mod agents;
mod book;
mod hands;
mod mend;
mod open;
mod own;
mod setting;
mod view;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{
    ContextView, Entry, EntryId, Error, ErrorKind, IdSource, IngestRequest, Message, Projection,
    RawJson, Result, Timestamp, TokenLedger, Tokens, TurnContext,
};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::log::{NewEntry, SessionLog};

use crate::Resolved;
use crate::turn::Sent;
use hands::Hand;
use own::OwnSettings;

pub(crate) use agents::Agents;
pub(crate) use book::{Book, Tally};
pub(crate) use hands::Hands;
pub(crate) use open::{Opened, open};
pub(crate) use setting::{Setting, tools_json};
pub(crate) use view::{Leaving, rebuilt};

/// A session that is open.
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) agent: FileId,
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    log: Arc<Log>,
    /// Which file the log writes to.
    identity: Identity,
    /// What is set for it alone.
    pub(crate) own: OwnSettings,
    /// What the session is run with; made when a turn first needs it.
    pub(crate) setting: Option<Setting>,
    pub(crate) view: Option<ContextView>,
    /// How many edits of the view were counted.
    pub(crate) counted: usize,
    /// What a request to a model of the chain may measure, learned from what its provider refused.
    pub(crate) limit: Option<(usize, Tokens)>,
    /// What the last request of this process held.
    pub(crate) sent: Option<Sent>,
    /// When anything was last sent.
    pub(crate) last_request: Option<Timestamp>,
    /// Whether the turn at work is a heartbeat.
    pub(crate) is_heartbeat: bool,
    /// When it began.
    pub(crate) began: Timestamp,
    /// The newest time that was written. The clock may jump; the transcript's times do not.
    pub(crate) newest: Timestamp,
    /// How many compactions this key has had.
    pub(crate) compactions: u64,
    /// The number of compactions at the last memory flush.
    pub(crate) flushed_at: Option<u64>,
    /// What the compaction took out with which the file ended when it was opened: whoever stored that
    /// may have been killed before he archived it.
    to_archive: Vec<Arc<Entry>>,
}

/// The log, and with it the session in hand: in this order they are let go of.
struct Log {
    log: Mutex<SessionLog>,
    _hand: Hand,
}

impl Log {
    fn new(log: SessionLog, hand: Hand) -> Self {
        Self { log: Mutex::new(log), _hand: hand }
    }
}

/// Which file a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    fn of(path: &std::path::Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(Self(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            Some(Self(0, 0))
        }
    }
}

impl Session {
    /// Refuses to go on with a file that is not where it was: what is appended to it is seen by
    /// nobody.
    pub(crate) fn check_file(&self) -> Result<()> {
        if Identity::of(&self.path) == Some(self.identity) {
            return Ok(());
        }
        Err(gone(&self.key, &self.path))
    }

    /// The time, which never goes back in one transcript.
    pub(crate) fn now(&mut self, clock: Timestamp) -> Timestamp {
        self.newest = self.newest.max(clock);
        self.newest
    }

    /// The budget of a model of the chain.
    fn ledger(&self, resolved: &Resolved, model: usize) -> TokenLedger {
        let ledger = resolved.ledger();
        match self.limit {
            Some((of, limit)) if of == model => ledger.with_limit(limit),
            _ => ledger,
        }
    }

    /// The turn that a call of the engine belongs to.
    pub(crate) fn turn(&self, ids: &Arc<dyn IdSource>, setting: &Setting) -> TurnContext {
        TurnContext {
            now: self.newest,
            last_request: self.last_request,
            ids: ids.clone(),
            profile: setting.resolved.profile,
        }
    }

    /// Appends a message to the file and to the view, and tells the engine. It is durable once
    /// [`commit`](Self::commit) returned.
    pub(crate) async fn append(&mut self, mut message: Message, now: Timestamp) -> Result<()> {
        message.meta.timestamp.get_or_insert(now);
        let mut entries = Vec::new();
        for json in ctx_dialect::pi::write(&message) {
            let written = ctx_dialect::pi::parse(&json)?;
            let entry = NewEntry::message(RawJson::from_text(json));
            let id = self.log().append(&entry, now)?;
            entries.push(Arc::new(Entry::held(id, written)));
        }
        if let Some(view) = &mut self.view
            && entries.iter().any(|entry| view.append(entry.clone()).is_err())
        {
            // One that is made anew says why.
            self.view = None;
        }
        // What is stored is stored; an engine that cannot take it in costs a notice.
        if let Err(error) = self.ingest(&entries).await
            && let Some(setting) = &mut self.setting
        {
            setting.warnings.push(format!("the engine did not take a message in: {error}"));
        }
        Ok(())
    }

    async fn ingest(&self, entries: &[Arc<Entry>]) -> Result<()> {
        let Some(setting) = &self.setting else { return Ok(()) };
        let mut requests = Vec::with_capacity(entries.len());
        for entry in entries {
            requests.push(IngestRequest {
                session_id: self.id.clone(),
                entry: entry.id().clone(),
                message: entry.message()?,
                is_heartbeat: self.is_heartbeat,
            });
        }
        setting.engine.ingest_batch(requests).await.map(drop)
    }

    /// Keeps the forms of a request, before it is sent.
    pub(crate) fn keep_forms(&self, forms: &[Projection]) -> Result<()> {
        self.log().append_projections(forms, self.newest).map(drop)
    }

    /// Makes what was appended durable, together with other sessions that wait for the same.
    pub(crate) async fn commit(&self) -> Result<()> {
        let log = self.log.clone();
        blocking(move || locked(&log.log).commit()).await
    }

    /// Lets go of the engine, for good.
    pub(crate) async fn let_go_of_engine(&self) {
        if let Some(setting) = &self.setting {
            setting.let_go(&self.id).await;
        }
    }

    /// How many tokens of messages it keeps in memory.
    pub(crate) fn held(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.total().get())
    }

    /// The entry that the next one follows.
    pub(crate) fn leaf(&self) -> Option<EntryId> {
        self.log().leaf().cloned()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, SessionLog> {
        locked(&self.log.log)
    }
}

/// The error of a session whose file is not there any more.
pub(crate) fn gone(key: &SessionKey, path: &std::path::Path) -> Error {
    Error::new(ErrorKind::NotFound, "the session's file is gone, or another stands in its place")
        .with("session", key)
        .with("path", path.display())
        .hint("put the file back where it was, or say /new to begin another session")
}

/// Runs what waits for the disk where it holds up nobody else.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(done) => done,
        Err(error) => Err(Error::new(ErrorKind::Cancelled, "work on the disk was cut short")
            .source(error)
            .hint("the program is shutting down; what was committed is on disk")),
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
