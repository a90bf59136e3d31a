//! One session with one engine, driven as a host drives it.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, BootstrapRequest, CompactRequest, CompactResult, CompactionTrigger,
    ContextView, Entry, EntryId, Finished, IngestRequest, IngestResult, Message, Profile, Result,
    SequentialIds, Timestamp, TokenLedger, TurnContext,
};

use super::bench::Running;
use super::stop::Stop;

/// When sessions begin: 2026-01-05T08:00:00Z.
const START: i64 = 1_767_600_000_000;
/// A turn takes so long, in milliseconds.
const TURN: i64 = 60_000;

/// One session with one engine.
pub(super) struct Sitting<'r> {
    pub(super) running: &'r Running<'r>,
    pub(super) id: String,
    ledger: TokenLedger,
    pub(super) view: ContextView,
    ids: Arc<SequentialIds>,
    now: i64,
    last_request: Option<i64>,
    said: usize,
}

impl<'r> Sitting<'r> {
    pub(super) fn new(running: &'r Running<'r>, id: &str, ledger: TokenLedger) -> Self {
        Self {
            running,
            id: id.to_owned(),
            view: ContextView::new(ledger.clone()),
            ledger,
            ids: Arc::default(),
            now: START,
            last_request: None,
            said: 0,
        }
    }

    /// Reads the session again: these messages, and nothing of what became of them.
    pub(super) fn reopen(&mut self, entries: &[Arc<Entry>]) -> Result<(), Stop> {
        self.view = ContextView::new(self.ledger.clone());
        self.open(entries)
    }

    /// Stores messages without telling the engine, as those of a session that is opened.
    pub(super) fn open(&mut self, entries: &[Arc<Entry>]) -> Result<(), Stop> {
        for entry in entries {
            self.append(entry)?;
        }
        Ok(())
    }

    /// Stores a message and tells the engine.
    pub(super) fn say(&mut self, message: Message) -> Result<EntryId, Stop> {
        let id = format!("{}-{:04}", self.id, self.said);
        self.said += 1;
        let entry = Arc::new(Entry::held(id, message));
        self.ingest(&entry)?;
        self.append(&entry)?;
        Ok(entry.id().clone())
    }

    /// Tells the engine of a message.
    pub(super) fn ingest(&self, entry: &Entry) -> Result<IngestResult, Stop> {
        let message = entry.message().map_err(|error| Stop::error("reading", &error))?;
        let request = IngestRequest {
            session_id: self.id.clone(),
            entry: entry.id().clone(),
            message,
            is_heartbeat: false,
        };
        self.running.call("ingest", self.running.engine.ingest(request))
    }

    fn append(&mut self, entry: &Arc<Entry>) -> Result<(), Stop> {
        self.view.append(Arc::clone(entry)).map_err(|error| Stop::error("appending", &error))
    }

    /// Pins a message, as a user does.
    pub(super) fn pin(&mut self, id: &EntryId) {
        let at = self.view.nodes().iter().position(|node| node.entry().id() == id);
        if let Some(at) = at {
            self.view.pin(at, "conformance", "pinned by the user");
        }
    }

    /// Makes a request: the engine's answer, and what every host does with it.
    pub(super) fn request(&mut self) -> Result<Finished, Stop> {
        self.assemble()?;
        self.finish()
    }

    /// Asks the engine for the next request.
    pub(super) fn assemble(&mut self) -> Result<(), Stop> {
        let request = self.assemble_request();
        let answer = self.running.engine.assemble(request);
        self.view = self.running.call("assemble", answer)?.into_view();
        Ok(())
    }

    /// The same question, with the answer thrown away: the host does not like it, or has given up.
    pub(super) fn assemble_in_vain(&mut self, polls: Option<u32>) -> Result<(), Stop> {
        let request = self.assemble_request();
        let answer = self.running.engine.assemble(request);
        match polls {
            Some(polls) => {
                self.running.give_up_after(polls, "assemble", answer);
            }
            None => {
                self.running.call("assemble", answer)?;
            }
        }
        Ok(())
    }

    fn assemble_request(&mut self) -> AssembleRequest {
        AssembleRequest {
            session_id: self.id.clone(),
            turn: self.turn(),
            view: std::mem::replace(&mut self.view, ContextView::new(self.ledger.clone())),
        }
    }

    /// Keeps the rules, and takes the request as sent.
    pub(super) fn finish(&mut self) -> Result<Finished, Stop> {
        self.last_request = Some(self.now);
        self.view.finish().map_err(|error| Stop::error("finishing the request", &error))
    }

    /// Time passes.
    pub(super) fn next_turn(&mut self) {
        self.now += TURN;
    }

    /// Compacts the session, which the engine is shown as it stands.
    pub(super) fn compact(
        &mut self,
        wish: impl FnOnce(CompactRequest) -> CompactRequest,
    ) -> Result<CompactResult> {
        let view = std::mem::replace(&mut self.view, ContextView::new(self.ledger.clone()));
        let (id, turn) = (self.id.clone(), self.turn());
        let request = wish(CompactRequest::new(id, view, turn, CompactionTrigger::Manual));
        self.running.try_call("compact", self.running.engine.compact(request))
    }

    /// Starts a compaction and gives it up.
    pub(super) fn compact_in_vain(&mut self, polls: u32) {
        let view = std::mem::replace(&mut self.view, ContextView::new(self.ledger.clone()));
        let (id, turn) = (self.id.clone(), self.turn());
        let mut request = CompactRequest::new(id, view, turn, CompactionTrigger::Manual);
        request.force = true;
        self.running.give_up_after(polls, "compact", self.running.engine.compact(request));
    }

    /// The session came up.
    pub(super) fn bootstrap(&self) -> Result<(), Stop> {
        let request = BootstrapRequest { session_id: self.id.clone(), session_file: None };
        self.running.call("bootstrap", self.running.engine.bootstrap(request))?;
        Ok(())
    }

    /// The turn is stored for good.
    pub(super) fn commit(&self, key: &str) -> Result<(), Stop> {
        self.running.call("commit_turn", self.running.engine.commit_turn(&self.id, key))
    }

    /// The turn is over, and there is time for housekeeping.
    pub(super) fn end_turn(&mut self) -> Result<(), Stop> {
        self.running.call("after_turn", self.running.engine.after_turn(&self.id))?;
        self.running.call("maintain", self.running.engine.maintain(&self.id))?;
        self.next_turn();
        Ok(())
    }

    fn turn(&self) -> TurnContext {
        TurnContext {
            now: Timestamp(self.now),
            last_request: self.last_request.map(Timestamp),
            ids: self.ids.clone(),
            profile: Profile::default(),
        }
    }
}
