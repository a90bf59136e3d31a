//! One turn: a message in, requests until the model is done, an answer out.
//!
//! ```text
//! guard -> message stored -> [ flush? -> assemble -> ask -> answer stored -> tools ] -> commit -> after-turn work
//! ```

mod after;
mod ask;
mod assemble;
mod branch;
mod command;
mod compact;
mod context;
mod flush;
mod models;
mod no_reply;
mod notes;
mod overflow;
mod repeated;
mod tools;

use ctx_core::{Block, ErrorKind, Message, Reply, Result, Role, Timestamp, Toolbox, Usage};

pub(crate) use after::Background;
pub use command::COMMANDS;
pub(crate) use command::opening;
pub(crate) use context::Sent;

use crate::runtime::{
    Event, Fill, Inner, Input, Listener, Notice, NoticeKind, Runtime, TurnOutcome,
};
use crate::session::{Session, Tally};
use command::{Command, Obeyed};
use overflow::Recovery;
use repeated::Repeated;

/// How many requests a turn makes at most. Loops that go round in circles are found before; this is
/// for those that do not.
const MOST_REQUESTS: u32 = 500;

/// A turn under way.
pub(crate) struct Turn<'a> {
    runtime: &'a Runtime,
    session: Session,
    tools: &'a dyn Toolbox,
    listener: &'a mut dyn Listener,
    outcome: TurnOutcome,
    /// Which model of the chain answers.
    model: usize,
    recovery: Recovery,
    repeated: Repeated,
    /// What `sessions.json` is not told yet.
    untold: Untold,
}

/// What happened in a session since its counters were noted.
#[derive(Debug, Default)]
struct Untold {
    usage: Usage,
    flushed: Option<(Timestamp, u64)>,
    compacted: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        runtime: &'a Runtime,
        session: Session,
        tools: &'a dyn Toolbox,
        listener: &'a mut dyn Listener,
    ) -> Self {
        Self {
            runtime,
            session,
            tools,
            listener,
            outcome: TurnOutcome::default(),
            model: 0,
            recovery: Recovery::default(),
            repeated: Repeated::default(),
            untold: Untold::default(),
        }
    }

    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    fn inner(&self) -> &'a Inner {
        &self.runtime.inner
    }

    /// The time, as it is written.
    fn now(&mut self) -> Timestamp {
        let clock = (self.inner().settings.clock)();
        self.session.now(clock)
    }

    /// Tells the user something.
    fn say(&mut self, kind: NoticeKind, words: impl Into<String>) {
        let notice = Notice { kind, words: words.into() };
        tracing::info!(kind = kind.name(), "{}", notice.words);
        self.listener.on(Event::Notice(&notice));
        self.outcome.notices.push(notice);
    }

    pub(crate) fn say_of_opening(&mut self, notices: Vec<String>) {
        for words in notices {
            self.say(NoticeKind::Session, words);
        }
    }

    /// Runs the turn. What it cost and did is counted, whatever came of it.
    pub(crate) async fn run(&mut self, input: Input) -> Result<TurnOutcome> {
        self.session.is_heartbeat = input.is_heartbeat();
        let done = self.answered(input).await;
        if done.is_ok() {
            self.fill().await;
        }
        self.note_counters().await;
        self.outcome.answer = done?;
        Ok(std::mem::take(&mut self.outcome))
    }

    async fn answered(&mut self, input: Input) -> Result<Option<String>> {
        self.settle_first().await?;
        self.swap_in().await?;
        let message = match Command::of(&input) {
            None => input.into_message(),
            Some(command) => match Box::pin(self.obey(command)).await? {
                Obeyed::Done(answer) => return Ok(Some(answer)),
                Obeyed::GoOn(text) => Input::from(text).into_message(),
            },
        };
        self.receive(message).await?;
        let answer = self.converse().await;
        if answer.is_ok() {
            self.session.check_file()?;
        }
        let committed = self.session.commit().await;
        let answer = answer?;
        committed?;
        Box::pin(self.finish()).await;
        Ok(no_reply::shown(&answer).filter(|_| !self.session.own.is_muted))
    }

    /// Stores the user's message: it is in the file before the model is asked. A power failure can
    /// take it until there is an answer, the turn fails, or a tool runs, whichever is first.
    async fn receive(&mut self, message: Message) -> Result<()> {
        let now = self.now();
        // The view must be there to grow, or it is read from the file with the message in it.
        self.session.append(message, now).await
    }

    /// Requests and tools, until there is an answer. Its text.
    async fn converse(&mut self) -> Result<String> {
        loop {
            let reply = Box::pin(self.answer()).await?;
            let calls: Vec<_> = reply.message.tool_calls().cloned().collect();
            let text = reply.message.plain_text();
            let cut_off = reply.stop == ctx_core::ChatStop::Length;
            self.take_in(reply).await?;
            if calls.is_empty() {
                if cut_off {
                    self.say(
                        NoticeKind::CutOff,
                        "the answer reached the model's limit and is cut off",
                    );
                }
                return Ok(text);
            }
            if let Some(reason) = self.stopped() {
                self.refuse(&calls, &reason).await?;
                return self.end_with(reason).await;
            }
            // What a tool does stays done: that it was called must outlive a power failure.
            self.session.commit().await?;
            Box::pin(self.run_tools(&calls)).await?;
        }
    }

    /// Why no more tools are run in this turn, once that is so and the model was told.
    fn stopped(&mut self) -> Option<String> {
        match self.repeated.stopped() {
            Some(reason) => Some(reason.to_owned()),
            None if self.outcome.requests >= MOST_REQUESTS => {
                let reason =
                    format!("{MOST_REQUESTS} requests in one turn: no more tools are run in it");
                self.say(NoticeKind::ToolLoop, &*reason);
                Some(reason)
            }
            None => None,
        }
    }

    /// Ends the turn in the model's place, with the reason as its answer: what is returned is what is
    /// on disk.
    async fn end_with(&mut self, reason: String) -> Result<String> {
        let text = format!("Stopped: {reason}.");
        let message = Message::new(Role::Assistant, vec![Block::text(&*text)]);
        self.take_in(Reply { message, stop: ctx_core::ChatStop::End }).await?;
        Ok(text)
    }

    /// Counts what a provider reported.
    fn used(&mut self, usage: &Usage) {
        add(&mut self.outcome.usage, usage);
        add(&mut self.untold.usage, usage);
    }

    /// Stores an answer, and learns from what the provider counted.
    async fn take_in(&mut self, mut reply: Reply) -> Result<()> {
        let model = self.session.own.models[self.model].clone();
        let card = model.card();
        let meta = &mut reply.message.meta;
        meta.provider.get_or_insert_with(|| card.provider.clone());
        meta.model.get_or_insert_with(|| card.id.clone());
        meta.api.get_or_insert_with(|| card.api.clone());
        meta.stop_reason.get_or_insert_with(|| {
            match reply.stop {
                ctx_core::ChatStop::ToolUse => "toolUse",
                ctx_core::ChatStop::Length => "length",
                _ => "stop",
            }
            .to_owned()
        });
        self.outcome.model = Some(card.name.clone());
        if let Some(usage) = meta.usage {
            self.used(&usage);
            self.calibrate(&usage);
        }
        let now = self.now();
        self.session.append(reply.message, now).await
    }

    /// Corrects the counts by what the provider counted for the request that was just answered.
    fn calibrate(&mut self, usage: &ctx_core::Usage) {
        let Some(estimated) =
            self.session.view.as_ref().map(|view| (view.total() + view.ledger().fixed()).get())
        else {
            return;
        };
        if let Some(view) = &mut self.session.view {
            view.ledger_mut().calibrate(usage.prompt(), estimated);
        }
        if let Some(setting) = &mut self.session.setting {
            setting.ledger.calibrate(usage.prompt(), estimated);
        }
    }

    /// Says how full the window is. The turn is over: what cannot be read is said by the next one.
    async fn fill(&mut self) {
        if let Ok(view) = self.session.take_view(&self.inner().home).await {
            let ledger = view.ledger();
            let (limit, window) = (ledger.limit(), ledger.window());
            self.outcome.fill = Some(Fill { used: view.used(), limit, window });
            self.session.view = Some(view);
        }
    }

    /// The counters of `sessions.json`.
    async fn note_counters(&mut self) {
        let Untold { usage, flushed, compacted } = std::mem::take(&mut self.untold);
        let tally = Tally {
            id: self.session.id.clone(),
            updated_at: self.session.newest,
            usage,
            window: self.session.setting.as_ref().map(|s| s.ledger.window().get()),
            compactions: self.session.compactions,
            compacted,
            flushed,
        };
        let elapsed = self.inner().settings.timer.elapsed();
        if self.inner().book.note(&self.session.key, &tally, elapsed) {
            let inner = self.runtime.inner.clone();
            let written = crate::session::blocking(move || inner.book.write()).await;
            if let Err(error) = written {
                let words = format!("the session's counters were not written: {error}");
                self.say(NoticeKind::Session, words);
            }
        }
    }
}

/// Adds what a provider reported.
fn add(sum: &mut Usage, usage: &Usage) {
    sum.input = sum.input.saturating_add(usage.input);
    sum.output = sum.output.saturating_add(usage.output);
    sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
    let total = sum.total_tokens.unwrap_or_default().saturating_add(usage.total());
    sum.total_tokens = Some(total);
}

/// Whether another model may do what this one failed at.
fn is_of_the_model(kind: ErrorKind) -> bool {
    use ErrorKind::{Capability, Timeout, Upstream, WindowTooSmall};
    matches!(kind, Capability | Timeout | Upstream | WindowTooSmall)
}

/// Whether what is on disk is in doubt: neither another model nor another try helps.
fn is_of_the_disk(kind: ErrorKind) -> bool {
    use ErrorKind::{Corrupt, Io, Locked, NotFound};
    matches!(kind, Corrupt | Io | Locked | NotFound)
}

#[cfg(test)]
mod tests;
