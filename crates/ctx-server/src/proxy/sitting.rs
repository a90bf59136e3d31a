//! A conversation at work on one request.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ctx_core::{
    CompactionTrigger, EntryId, Error, ErrorKind, ORPHANED_RESULT, Result, SummaryInstructions,
    Tokens,
};
use ctx_dialect::wire::Request;
use ctx_runtime::{Asked as Named, Wanted};
use ctx_session::clock;
use futures_util::FutureExt;

use super::Proxy;
use super::asked::Asked;
use super::cached::{Cached, Head};
use super::config::SummariesBy;
use super::conversation::{Conversation, Work};
use super::ending::is_plausible;
use super::keep::Saved;
use super::learned::Learned;
use super::parts::in_parts;
use super::prepare::Smaller;
use super::recorded::{LOOKED_AT, beginning};
use super::room::Room;
use super::summaries::Asking;
use super::summarised::noted;
use super::told::{Told, first_of_user};
use crate::hosted::{
    self, Compacting, History, Keeps, Made, Opening, Recorded, Session, Summaries,
};
use crate::trace::{CompactionRecord, EntryRecord, Record, SessionInfo, of_manifest};

/// One request and its conversation.
pub(super) struct Sitting<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) asked: &'a Asked,
    pub(super) request: &'a Request<'a>,
    pub(super) told: &'a [Told<'a>],
    /// The ids that its messages have.
    pub(super) ids: Vec<Option<EntryId>>,
}

/// What goes out.
pub(super) struct Fitted {
    pub(super) made: Made,
    pub(super) record: Record,
    /// What it is estimated at, uncorrected.
    pub(super) estimated: u64,
    /// It, to compare the next one with.
    pub(super) sent: Arc<Cached>,
}

impl Sitting<'_> {
    /// Makes the messages that go out; nothing where the request is to pass as it came. Another request
    /// of the same conversation waits meanwhile.
    pub(super) async fn hold(
        self,
        conversation: &Conversation,
        smaller: Option<Smaller>,
    ) -> Result<Option<Fitted>> {
        let mut work = conversation.work.lock().await;
        if let Err(error) = self.open(conversation, &mut work).await {
            return self.unopened(error);
        }
        let Work { session, summaries, learned, .. } = &mut *work;
        let Some(session) = session else { return Err(lost()) };
        let in_hand = Arc::new(summaries.place(self.writer(session.ledger.window())));
        session.memory.accompany(&in_hand);
        if let Some((counted, estimated)) = conversation.take_report() {
            session.correct(counted, estimated);
            learned.took(counted);
        }
        let ids = self.ids(session);
        let is_new = ids.is_some();
        if let Err(error) = guarded(session.sync(self.told, ids, false)).await {
            self.trouble(&error);
        }
        // What is not the history that was told must not go out in its place.
        if session.history.len() != self.told.len() {
            work.session = None;
            return Ok(None);
        }
        // Who asks the same meanwhile is to wait for this, not to begin another conversation.
        conversation.know(&mut work);
        let Some(session) = &mut work.session else { return Err(lost()) };
        let covers = |kept: &hosted::InForce| kept.covers(&session.history);
        if is_new && !session.in_force.as_ref().is_some_and(covers) {
            session.in_force = None;
        }
        let mut room = self.fit(conversation, &mut work, smaller)?;
        let Some(session) = &mut work.session else { return Err(lost()) };
        let mut compaction = None;
        if let Some(smaller) = smaller {
            compaction = self.compact(conversation, session, smaller, room).await;
        }
        let mut made = self.make(session, room).await;
        // Without what was learned, the provider has the last word.
        if made.is_err() && smaller.is_none() && work.learned.window().is_some() {
            work.learned = Learned::default();
            room = self.budget(&mut work)?;
            let Some(session) = &mut work.session else { return Err(lost()) };
            made = self.make(session, room).await;
        }
        let Some(session) = &mut work.session else { return Err(lost()) };
        let (mut made, empty) = (made?, room.withheld(&session.ledger));
        for warning in session.warnings() {
            self.proxy.warn(&warning);
        }
        // What is left empty is no part of the request.
        session.sent.estimated = session.sent.estimated.saturating_sub(empty.get());
        made.tokens -= session.ledger.corrected(empty);
        made.limit -= session.ledger.corrected(empty);
        let estimated = session.sent.estimated;
        let mut record = self.record(conversation, &mut work, &made, compaction);
        self.note_orphans(&record);
        conversation.keep(&mut work, &made, self.proxy.conversations.keep.as_ref());
        let Some(session) = &work.session else { return Err(lost()) };
        let sent = Arc::new(Cached::of(session, self.head()));
        record.prefix_break = conversation
            .cached()
            .and_then(|before| before.broken(&sent, &session.history, session.in_force.as_ref()));
        Ok(Some(Fitted { made, record, estimated, sent }))
    }

    /// Makes the messages by the engine, or without it where it fails.
    async fn make(&self, session: &mut Session, room: Room) -> Result<Made> {
        let empty = room.withheld(&session.ledger);
        match guarded(session.assemble(empty, None)).await {
            Err(error) => session.trim(empty, None).inspect(|_| self.trouble(&error)),
            made => made,
        }
    }

    /// Counts the tool results that are left out as they answer nothing, and says so.
    fn note_orphans(&self, record: &Record) {
        let is_orphan = |entry: &&EntryRecord| entry.reason.as_deref() == Some(ORPHANED_RESULT);
        let orphans = record.entries.iter().filter(is_orphan).count();
        if orphans > 0 {
            self.proxy.metrics.orphaned_results.inc_by(orphans as u64);
            self.proxy.warn(
                "tool results are left out of a request: their calls are not in it, or have another \
                 result (ctx_orphaned_results_total counts them)",
            );
        }
    }

    /// Without a session a request passes as it came, unless the window was given that is too small.
    fn unopened<T>(&self, error: Error) -> Result<Option<T>> {
        if error.kind() == ErrorKind::WindowTooSmall && self.proxy.settings.window.is_some() {
            return Err(error);
        }
        self.proxy.warn(&format!("requests pass untouched: {error}"));
        Ok(None)
    }

    /// Opens the session, where it is not open for this model.
    async fn open(&self, conversation: &Conversation, work: &mut Work) -> Result<()> {
        let model = self.request.model.as_deref();
        let settings = &self.proxy.settings;
        if work.model.as_deref() != model {
            (work.learned, work.told, work.asks) = (Learned::default(), None, 0);
        }
        let mut wanted = Wanted {
            engine: settings.engine.clone(),
            agent: settings.agent.clone(),
            model: model.map(str::to_owned),
            provider: None,
            asked: Named::InPassing,
            window: settings.window,
            ..Wanted::default()
        };
        let is_told = self.ask_window(work, &wanted).await?;
        wanted.native = work.told;
        if work.session.is_some() {
            if work.model.as_deref() == model && !is_told {
                return Ok(());
            }
            // What was cut stays, whatever becomes of this request.
            work.saved = work.inherit();
            work.session = None;
        }
        let saved = work.saved.clone().within(&self.ids);
        let mut history = History::new(Keeps::Mark);
        history.make_from(saved.made);
        let window = wanted.clone().resolve(&settings.host.config)?.window.tokens;
        let by_flag: fn(Tokens) -> String = |minimum| format!("give --window {minimum} or more");
        let opening = Opening {
            id: conversation.id.clone(),
            is_kept: true,
            agent: settings.agent.clone(),
            config: settings.host.config.clone(),
            wanted,
            window_hint: Some(by_flag),
            summaries: match settings.config.summaries {
                SummariesBy::Upstream => Summaries::By(work.summaries.models(window)),
                SummariesBy::Model => Summaries::Configured(None),
                SummariesBy::Extractive => Summaries::Extracted,
            },
            recorded: Recorded { history, forms: saved.forms, ..Recorded::default() },
            session_file: None,
        };
        let memories = self.proxy.memories.clone();
        let (mut session, warnings) = hosted::open(&settings.host, memories, opening).await?;
        for warning in warnings {
            self.proxy.warn(&warning);
        }
        session.in_force = saved.in_force;
        if let Some((counted, estimated)) = saved.reported {
            session.correct(counted, estimated);
        }
        self.proxy.trace.session(self.info(&conversation.id, &session));
        work.session = Some(session);
        work.model = model.map(str::to_owned);
        work.saved = Saved::default();
        Ok(())
    }

    /// Asks the server for the window, where nobody here knows it, and says whether it told it now. Some
    /// tell that of models that are loaded only, so it is asked at a few requests.
    async fn ask_window(&self, work: &mut Work, wanted: &Wanted) -> Result<bool> {
        const TIMES: u32 = 3;
        let settings = &self.proxy.settings;
        if work.told.is_some() || work.asks == TIMES || settings.window.is_some() {
            return Ok(false);
        }
        work.asks += 1;
        let known = wanted.clone().resolve(&settings.host.config)?;
        if known.window.source.name() != "default" {
            work.asks = TIMES;
            return Ok(false);
        }
        let model = self.request.model.as_deref().unwrap_or("(none)");
        let Some(window) = super::window::ask(self.proxy, self.asked, model).await else {
            let assumed = known.window.tokens;
            self.proxy.warn(&format!(
                "the window of model {model:?} is not known, and its server does not tell it: {assumed} \
                 tokens are assumed; give `ctx serve` the right number: --window N",
            ));
            return Ok(false);
        };
        // An engine wants a window of some size; what holds is what the server says.
        work.told = Some(window.max(known.guard.hard_min_tokens));
        work.learned.told(window);
        Ok(true)
    }

    /// The ids that are known from a file or another conversation. A session that is at work knows
    /// its messages itself.
    fn ids(&self, session: &Session) -> Option<Vec<Option<String>>> {
        if session.history.len() > 0 {
            return None;
        }
        Some(self.ids.iter().map(|id| id.as_ref().map(ToString::to_string)).collect())
    }

    fn head(&self) -> Head {
        let tools = self.request.tools.map(|tools| tools.get());
        Head::of(self.request.model.as_deref(), self.request.system.as_deref(), tools)
    }

    fn writer(&self, window: Tokens) -> Option<ctx_model::HttpModel> {
        let asking = Asking {
            protocol: self.asked.protocol(),
            model: self.request.model.as_deref()?,
            window,
            url: &self.asked.url,
            headers: &self.asked.headers,
        };
        asking.model(self.proxy.writer.clone())
    }

    /// Makes the session smaller after the provider refused it.
    async fn compact(
        &self,
        conversation: &Conversation,
        session: &mut Session,
        smaller: Smaller,
        room: Room,
    ) -> Option<CompactionRecord> {
        // What the provider counted says how far the counter is off, unless the answer's share is in
        // it.
        let estimated = session.sent.estimated;
        if let Some(counted) = smaller.overflow.prompt.filter(|n| is_plausible(*n, estimated)) {
            session.correct(counted, estimated);
        }
        let wanted = Compacting {
            trigger: CompactionTrigger::Overflow,
            force: true,
            token_budget: Some(session.ledger.limit() - room.withheld(&session.ledger)),
            custom_instructions: None,
            summary_instructions: SummaryInstructions::default(),
            models: None,
            attempt: Some(smaller.attempt),
            max_attempts: Some(smaller.most),
            now: None,
        };
        match guarded(session.compact(wanted)).await {
            Ok(result) => {
                let compacted = result.result.filter(|_| result.compacted)?;
                let entry = session.in_force.as_ref().and_then(|kept| kept.summary_id()).cloned();
                Some(noted(self.proxy, &conversation.id, entry, &compacted))
            }
            Err(error) => {
                self.trouble(&error);
                None
            }
        }
    }

    fn trouble(&self, error: &Error) {
        self.proxy.warn(&format!("the engine failed, requests are made without it: {error}"));
    }

    fn record(
        &self,
        conversation: &Conversation,
        work: &mut Work,
        made: &Made,
        compaction: Option<CompactionRecord>,
    ) -> Record {
        let number = work.number;
        work.number += 1;
        let Work { session, begins, learned, .. } = work;
        let mut record = Record {
            session: conversation.id.clone(),
            number,
            at: clock::now(),
            protocol: self.asked.protocol().name().into(),
            model: self.request.model.as_deref().map(str::to_owned),
            limit: made.limit,
            sent_tokens: made.tokens,
            fits: made.tokens <= made.limit,
            unchanged_prefix: made.unchanged_prefix,
            attempts: 1,
            compaction,
            ..Record::default()
        };
        let Some(session) = session else { return record };
        let ledger = &session.ledger;
        let native = session.resolved.window.tokens;
        record.window = learned.window().map_or(native, |learned| learned.min(native));
        record.reserve = ledger.reserve();
        let items = session.history.items();
        let all: Tokens =
            items.iter().filter_map(|item| item.entry.tokens(ledger.counter()).ok()).sum();
        record.raw_tokens = ledger.corrected(all + ledger.fixed());
        for edit in &made.edits {
            *record.actions.entry(edit.layer.to_string()).or_default() += 1;
        }
        for compacted in &made.compactions {
            let entry = session.in_force.as_ref().and_then(|kept| kept.summary_id()).cloned();
            record.compaction = Some(noted(self.proxy, &conversation.id, entry, compacted));
        }
        if let Some(compaction) = &mut record.compaction {
            compaction.request = number;
        }
        let Some(view) = &session.view else { return record };
        (record.components, record.entries) = of_manifest(view.manifest());
        record.components.retain(|part| part.name != "pending");
        let message = |id: &EntryId| {
            let item = session.history.position(id).and_then(|at| items.get(at));
            let told = item.and_then(|item| item.entry.message().ok());
            told.or_else(|| {
                let out = made.outgoing.iter().find(|out| out.id == *id);
                out.map(|out| out.message.clone())
            })
        };
        let ids = record.entries.iter().map(|entry| &entry.entry);
        let new: Vec<_> = ids.filter(|id| !begins.contains_key(*id)).collect();
        let new: Vec<_> = new.into_iter().map(|id| (id.clone(), message(id))).collect();
        let texts = in_parts(
            &new,
            |_| LOOKED_AT,
            |(_, message)| message.as_deref().map(beginning).unwrap_or_default(),
        );
        begins.extend(new.into_iter().map(|(id, _)| id).zip(texts));
        for entry in &mut record.entries {
            entry.begins = begins.get(&entry.entry).cloned().unwrap_or_default();
        }
        record
    }

    fn info(&self, id: &str, session: &Session) -> SessionInfo {
        let title = first_of_user(self.told).map(|told| beginning(told.message()));
        let title = title.unwrap_or_default();
        SessionInfo {
            id: id.to_owned(),
            title,
            model: self.request.model.as_deref().map(str::to_owned),
            engine: session.resolved.engine.id.clone(),
            profile: session.resolved.profile.name().to_owned(),
            counter: session.ledger.counter().kind().name().to_owned(),
        }
    }
}

/// Runs what an engine does. A panic of it is a failure of one request's engine.
async fn guarded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Contract, "the engine panicked")))
}

pub(super) fn lost() -> Error {
    Error::new(ErrorKind::Contract, "the session of a conversation is not there")
        .hint("please report this")
}
