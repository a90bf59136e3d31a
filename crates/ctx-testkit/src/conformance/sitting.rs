//! One session with one engine, driven as a host drives it.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, BootstrapRequest, CompactRequest, CompactResult, CompactionTrigger,
    ContextView, Entry, EntryId, Finished, IngestRequest, IngestResult, Message, Result,
    SequentialIds, Timestamp, TokenLedger, TurnContext,
};

use super::bench::Running;
use super::cases::script;
use super::laws;
use super::stop::Stop;

/// The start time of sessions: 2026-01-05T08:00:00Z.
const START: i64 = 1_767_600_000_000;
/// The duration of a turn, in milliseconds.
const TURN: i64 = 60_000;

/// One session with one engine.
pub(super) struct TestSession<'r> {
    pub(super) running: &'r Running<'r>,
    pub(super) id: String,
    ledger: TokenLedger,
    pub(super) view: ContextView,
    ids: Arc<SequentialIds>,
    now: i64,
    last_request: Option<i64>,
    said: usize,
}

impl<'r> TestSession<'r> {
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

    /// Reloads the session with these messages, without any earlier edits.
    pub(super) fn reopen(&mut self, entries: &[Arc<Entry>]) -> Result<(), Stop> {
        self.view = ContextView::new(self.ledger.clone());
        self.open(entries)
    }

    /// Appends messages without calling the engine, as when a session is opened.
    pub(super) fn open(&mut self, entries: &[Arc<Entry>]) -> Result<(), Stop> {
        for entry in entries {
            self.append(entry)?;
        }
        Ok(())
    }

    /// Appends a message and calls `ingest`.
    pub(super) fn say(&mut self, message: Message) -> Result<EntryId, Stop> {
        let id = format!("{}-{:04}", self.id, self.said);
        self.said += 1;
        let entry = Arc::new(Entry::in_memory(id, message));
        self.ingest(&entry)?;
        self.append(&entry)?;
        Ok(entry.id().clone())
    }

    /// Says the messages of a [`script::turn`].
    pub(super) fn say_turn(&mut self, n: usize, chars: usize) -> Result<(), Stop> {
        script::turn(n, chars).into_iter().try_for_each(|message| self.say(message).map(drop))
    }

    /// Calls `ingest` with a message.
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

    /// Pins a message for the user.
    pub(super) fn pin(&mut self, id: &EntryId) {
        let at = self.view.nodes().iter().position(|node| node.entry().id() == id);
        if let Some(at) = at {
            self.view.pin(at, "conformance", "pinned by the user");
        }
    }

    /// Makes a request: the engine's `assemble`, then the steps of every host.
    pub(super) fn request(&mut self) -> Result<Finished, Stop> {
        self.assemble()?;
        self.finish()
    }

    /// Makes a request, and checks that the engine's answer fits.
    pub(super) fn fitting_request(&mut self, what: impl Fn() -> String) -> Result<Finished, Stop> {
        self.assemble()?;
        laws::fits(&self.view, what)?;
        self.finish()
    }

    /// Calls `assemble` for the next request.
    pub(super) fn assemble(&mut self) -> Result<(), Stop> {
        let request = self.assemble_request();
        let answer = self.running.engine.assemble(request);
        self.view = self.running.call("assemble", answer)?.into_view();
        Ok(())
    }

    /// Calls `assemble` and discards the answer, like a host that rejects it. With `polls`, drops
    /// the call.
    pub(super) fn assemble_and_discard(&mut self, polls: Option<u32>) -> Result<(), Stop> {
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
        AssembleRequest { session_id: self.id.clone(), turn: self.turn(), view: self.take_view() }
    }

    /// Enforces the rules of the host, and treats the request as sent.
    pub(super) fn finish(&mut self) -> Result<Finished, Stop> {
        self.last_request = Some(self.now);
        self.view.finish().map_err(|error| Stop::error("finishing the request", &error))
    }

    /// Advances the time by one turn.
    pub(super) fn next_turn(&mut self) {
        self.now += TURN;
    }

    /// Compacts the session in its current state.
    pub(super) fn compact(
        &mut self,
        configure: impl FnOnce(&mut CompactRequest),
    ) -> Result<CompactResult> {
        let mut request = self.compact_request();
        configure(&mut request);
        self.running.try_call("compact", self.running.engine.compact(request))
    }

    /// Starts a compaction and drops it.
    pub(super) fn compact_and_drop(&mut self, polls: u32) {
        let mut request = self.compact_request();
        request.force = true;
        self.running.give_up_after(polls, "compact", self.running.engine.compact(request));
    }

    fn compact_request(&mut self) -> CompactRequest {
        let turn = self.turn();
        CompactRequest::new(self.id.clone(), self.take_view(), turn, CompactionTrigger::Manual)
    }

    /// Leaves an empty view.
    fn take_view(&mut self) -> ContextView {
        std::mem::replace(&mut self.view, ContextView::new(self.ledger.clone()))
    }

    /// Calls `bootstrap`.
    pub(super) fn bootstrap(&self) -> Result<(), Stop> {
        let request = BootstrapRequest { session_id: self.id.clone(), session_file: None };
        self.running.call("bootstrap", self.running.engine.bootstrap(request))?;
        Ok(())
    }

    /// Calls `commit_turn`.
    pub(super) fn commit(&self, key: &str) -> Result<(), Stop> {
        self.running.call("commit_turn", self.running.engine.commit_turn(&self.id, key))
    }

    /// Calls `after_turn` and `maintain`.
    pub(super) fn end_turn(&mut self) -> Result<(), Stop> {
        self.running.call("after_turn", self.running.engine.after_turn(&self.id))?;
        self.running.call("maintain", self.running.engine.maintain(&self.id))?;
        self.next_turn();
        Ok(())
    }

    fn turn(&self) -> TurnContext {
        TurnContext {
            last_request: self.last_request.map(Timestamp),
            ids: self.ids.clone(),
            ..TurnContext::at(Timestamp(self.now))
        }
    }
}
