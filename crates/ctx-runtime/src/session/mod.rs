//! One open session: its file, its settings, and its view.
//!
//! The file is the source of truth. The view is built from it when missing (when the session is
//! opened, after a compaction, for another model or other tools); otherwise new entries are
//! appended to it.

mod agents;
mod background;
mod engines;
mod idle;
mod lease;
mod open;
mod overrides;
mod pool;
mod repair;
mod sent;
mod setup;
mod usage;
mod view;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use ctx_core::{
    ContextView, Entry, EntryId, Error, ErrorKind, IdSource, IngestRequest, Message, Projection,
    RawJson, Result, Timestamp, TokenLedger, Tokens, TurnContext,
};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{NewEntry, SessionLog};
use ctx_shared::SharedSession;

use crate::spec::Resolved;
use crate::sync::{locked, spawn_blocking};
use lease::SessionLease;
use open::open;
use overrides::SessionOverrides;

pub(crate) use agents::AgentResources;
pub(crate) use background::BackgroundCompaction;
pub(crate) use engines::SessionEngines;
pub(crate) use idle::{max_concurrent_turns, max_open_sessions};
pub(crate) use pool::{SessionPool, Settings};
pub(crate) use sent::{SentRequest, prefix_tokens};
pub(crate) use setup::{SessionSetup, tools_json};
pub(crate) use usage::{UsageCounters, UsageDelta};
pub(crate) use view::{CompactedRange, rebuild_view};

/// Why a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenReason {
    /// For a message: a session that is over is replaced by a new one.
    Message,
    /// To start a new session in any case.
    NewSession,
    /// For an operation other than a message.
    Existing,
}

/// An open session.
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    pub(crate) agent: FileId,
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    log: Arc<LeasedLog>,
    /// The identity of the log's file.
    identity: (u64, u64),
    /// The settings of this session alone.
    pub(crate) overrides: SessionOverrides,
    /// Model, engine and budget; resolved when a turn first needs them.
    pub(crate) setup: Option<SessionSetup>,
    pub(crate) view: Option<ContextView>,
    /// Number of edits of the view already counted.
    pub(crate) counted: usize,
    /// A request limit learned from a provider's rejection, with the index of its model in the
    /// chain.
    pub(crate) limit: Option<(usize, Tokens)>,
    /// The last request of this process.
    pub(crate) sent: Option<SentRequest>,
    /// When a request was last sent.
    pub(crate) last_request: Option<Timestamp>,
    /// Whether the current turn is a heartbeat.
    pub(crate) is_heartbeat: bool,
    /// When it began.
    pub(crate) began: Timestamp,
    /// The newest written time. The clock may jump; the times in the transcript do not go back.
    pub(crate) newest: Timestamp,
    /// Number of compactions of this key.
    pub(crate) compactions: u64,
    /// The number of compactions at the last memory flush.
    pub(crate) flushed_at: Option<u64>,
    /// Messages removed by the compaction at the end of the file when it was opened: the process
    /// that stored it may have been killed before it archived them.
    to_archive: Vec<Arc<Entry>>,
    /// Its place in the store that other hosts share, if there is one.
    pub(crate) shared: Option<SharedSession>,
}

/// The log and the lease of its file, dropped in this order.
struct LeasedLog {
    log: Mutex<SessionLog>,
    _lease: SessionLease,
}

/// Identifies the file behind a path.
fn file_identity(path: &std::path::Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        Some((0, 0))
    }
}

impl Session {
    /// Fails if the file was removed or replaced: appended entries would be lost.
    pub(crate) fn check_file(&self) -> Result<()> {
        if file_identity(&self.path) == Some(self.identity) {
            return Ok(());
        }
        Err(missing_file(&self.key, &self.path))
    }

    /// Returns the time, which never goes back within one transcript.
    pub(crate) fn now(&mut self, clock: Timestamp) -> Timestamp {
        self.newest = self.newest.max(clock);
        self.newest
    }

    /// Returns the budget of a model of the chain.
    fn ledger(&self, resolved: &Resolved, model: usize) -> TokenLedger {
        let ledger = resolved.ledger();
        match self.limit {
            Some((of, limit)) if of == model => ledger.with_limit(limit),
            _ => ledger,
        }
    }

    /// Returns the turn context for a call of the engine.
    pub(crate) fn turn(&self, ids: &Arc<dyn IdSource>) -> TurnContext {
        let last_request = self.last_request;
        TurnContext { last_request, ids: ids.clone(), ..TurnContext::at(self.newest) }
    }

    /// Appends a message to the file and to the view, and notifies the engine. It is durable once
    /// [`commit`](Self::commit) returned.
    pub(crate) async fn append(&mut self, mut message: Message, now: Timestamp) -> Result<()> {
        message.meta.timestamp.get_or_insert(now);
        let mut entries = Vec::new();
        for json in ctx_dialect::pi::write(&message) {
            let written = ctx_dialect::pi::parse(&json)?;
            let entry = NewEntry::message(RawJson::from_text(json));
            let id = self.log().append(&entry, now)?;
            entries.push(Arc::new(Entry::in_memory(id, written)));
        }
        if let Some(view) = &mut self.view
            && entries.iter().any(|entry| view.append(entry.clone()).is_err())
        {
            // Rebuilding the view reports the error.
            self.view = None;
        }
        // The message is stored. If the engine fails to ingest it, a warning is enough.
        if let Err(error) = self.ingest(&entries).await
            && let Some(setup) = &mut self.setup
        {
            setup.warnings.push(format!("the engine failed to ingest a message: {error}"));
        }
        Ok(())
    }

    async fn ingest(&self, entries: &[Arc<Entry>]) -> Result<()> {
        let Some(setup) = &self.setup else { return Ok(()) };
        let mut requests = Vec::with_capacity(entries.len());
        for entry in entries {
            requests.push(IngestRequest {
                session_id: self.id.clone(),
                entry: entry.id().clone(),
                message: entry.message()?,
                is_heartbeat: self.is_heartbeat,
            });
        }
        setup.engine.ingest_batch(requests).await.map(drop)
    }

    /// Stores the projections of a request, before it is sent.
    pub(crate) fn store_projections(&self, projections: &[Projection]) -> Result<()> {
        self.log().append_projections(projections, self.newest).map(drop)
    }

    /// Makes appended entries durable, in one batch with other waiting sessions. Returns a warning for
    /// the user if the shared store does not have them yet.
    pub(crate) async fn commit(&self) -> Result<Option<String>> {
        let Some(shared) = &self.shared else {
            let log = self.log.clone();
            return spawn_blocking(move || locked(&log.log).commit().map(|()| None)).await;
        };
        shared.commit(&self.path).await
    }

    /// Saves its entry in the shared store, if there is one, and if that is due.
    pub(crate) async fn save_entry_if_due(&self) -> Result<()> {
        match &self.shared {
            Some(shared) => shared.save_entry_if_due(&self.key).await,
            None => Ok(()),
        }
    }

    /// Disposes of the engine.
    pub(crate) async fn dispose_engine(&self) {
        if let Some(setup) = &self.setup {
            setup.dispose_engine(&self.id).await;
        }
    }

    /// Number of message tokens that it keeps in memory.
    pub(crate) fn held(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.total().get())
    }

    /// Returns the last entry, which the next entry follows.
    pub(crate) fn leaf(&self) -> Option<EntryId> {
        self.log().leaf().cloned()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, SessionLog> {
        locked(&self.log.log)
    }
}

/// Returns the error for a session whose file is missing.
pub(crate) fn missing_file(key: &SessionKey, path: &std::path::Path) -> Error {
    Error::new(ErrorKind::NotFound, "the session's file is missing or was replaced")
        .with("session", key)
        .with("path", path.display())
        .hint("restore the file, or use /new to start another session")
}
