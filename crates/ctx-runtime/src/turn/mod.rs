//! One turn: takes a message, makes requests until the model is done, returns an answer.
//!
//! ```text
//! guard -> message stored -> [ flush? -> assemble -> request -> answer stored -> tools ]
//!       -> commit -> after-turn work
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

pub use branch::{BranchMove, branch_ends};
pub use command::COMMANDS;
pub(crate) use command::open_reason;

use crate::host::{Event, Input, Listener, Notice, NoticeKind, TurnOutcome, WindowFill};
use crate::session::{Session, SessionPool, UsageDelta};
use crate::sync::spawn_blocking;
use command::{Command, CommandResult};
use overflow::OverflowRecovery;
use repeated::Repeated;

/// Maximum number of requests of a turn. Repeating loops are detected earlier; this stops all
/// others.
const MAX_REQUESTS: u32 = 500;

/// A turn in progress.
pub(crate) struct Turn<'a> {
    pool: &'a SessionPool,
    session: Session,
    tools: &'a dyn Toolbox,
    listener: &'a mut dyn Listener,
    outcome: TurnOutcome,
    /// Index of the answering model in the chain.
    model: usize,
    recovery: OverflowRecovery,
    repeated: Repeated,
    /// Changes not yet written to `sessions.json`.
    pending: PendingUsage,
}

/// What happened in a session since its counters were recorded.
#[derive(Debug, Default)]
struct PendingUsage {
    usage: Usage,
    flushed: Option<(Timestamp, u64)>,
    compacted: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        pool: &'a SessionPool,
        session: Session,
        tools: &'a dyn Toolbox,
        listener: &'a mut dyn Listener,
    ) -> Self {
        Self {
            pool,
            session,
            tools,
            listener,
            outcome: TurnOutcome::default(),
            model: 0,
            recovery: OverflowRecovery::default(),
            repeated: Repeated::default(),
            pending: PendingUsage::default(),
        }
    }

    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    /// Returns the time for new entries.
    fn now(&mut self) -> Timestamp {
        let clock = (self.pool.settings.clock)();
        self.session.now(clock)
    }

    /// Sends a notice to the user.
    fn notify(&mut self, kind: NoticeKind, text: impl Into<String>) {
        let notice = Notice { kind, text: text.into() };
        tracing::info!(kind = kind.name(), "{}", notice.text);
        self.listener.on(Event::Notice(&notice));
        self.outcome.notices.push(notice);
    }

    pub(crate) fn report_opening(&mut self, notices: Vec<String>) {
        for words in notices {
            self.notify(NoticeKind::Session, words);
        }
    }

    /// Runs the turn. Its cost is counted even if it fails.
    pub(crate) async fn run(&mut self, input: Input) -> Result<TurnOutcome> {
        self.session.is_heartbeat = input.is_heartbeat;
        let done = self.answered(input).await;
        if done.is_ok() {
            self.report_fill().await;
        }
        self.record_usage().await;
        self.outcome.answer = done?;
        Ok(std::mem::take(&mut self.outcome))
    }

    async fn answered(&mut self, input: Input) -> Result<Option<String>> {
        self.select_model().await?;
        if let Some(warning) = self.pool.fetch_memory(&self.session).await {
            self.notify(NoticeKind::Engine, warning);
        }
        self.store_background_compaction().await?;
        let message = match Command::of(&input) {
            None => input.message,
            Some(command) => match Box::pin(self.run_command(command)).await? {
                CommandResult::Done(answer) => return Ok(Some(answer)),
                CommandResult::Ask(text) => Input::from(text).message,
            },
        };
        self.store_message(message).await?;
        let answer = self.converse().await;
        if answer.is_ok() {
            self.session.check_file()?;
        }
        let committed = self.session.commit().await;
        let answer = answer?;
        if let Some(warning) = committed? {
            self.notify(NoticeKind::Session, warning);
        }
        Box::pin(self.finish()).await;
        Ok(no_reply::shown(&answer).filter(|_| !self.session.overrides.is_muted))
    }

    /// Writes the user's message to the file before the model is called. The file is synced when a
    /// tool is about to run, or the turn ends: until then, a power failure can lose the message.
    async fn store_message(&mut self, message: Message) -> Result<()> {
        let now = self.now();
        // It is appended to an existing view; a missing view is built from the file, which has it.
        self.session.append(message, now).await
    }

    /// Makes requests and runs tools until there is an answer. Returns its text.
    async fn converse(&mut self) -> Result<String> {
        loop {
            let reply = Box::pin(self.answer()).await?;
            let calls: Vec<_> = reply.message.tool_calls().cloned().collect();
            let text = reply.message.plain_text();
            let cut_off = reply.stop == ctx_core::ChatStop::Length;
            self.store_reply(reply).await?;
            if calls.is_empty() {
                if cut_off {
                    self.notify(
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
            // Effects of tools are permanent, so their calls must survive a power failure.
            self.session.commit().await?;
            Box::pin(self.run_tools(&calls)).await?;
        }
    }

    /// Returns why no more tools run in this turn, once the model was notified.
    fn stopped(&mut self) -> Option<String> {
        match self.repeated.stopped() {
            Some(reason) => Some(reason.to_owned()),
            None if self.outcome.requests >= MAX_REQUESTS => {
                let reason =
                    format!("{MAX_REQUESTS} requests in one turn: no more tools are run in it");
                self.notify(NoticeKind::ToolLoop, &*reason);
                Some(reason)
            }
            None => None,
        }
    }

    /// Ends the turn with the reason as the answer, which is stored like every answer.
    async fn end_with(&mut self, reason: String) -> Result<String> {
        let text = format!("Stopped: {reason}.");
        let message = Message::new(Role::Assistant, vec![Block::text(&*text)]);
        self.store_reply(Reply { message, stop: ctx_core::ChatStop::End }).await?;
        Ok(text)
    }

    /// Counts the usage that a provider reported.
    fn add_usage(&mut self, usage: &Usage) {
        add(&mut self.outcome.usage, usage);
        add(&mut self.pending.usage, usage);
    }

    /// Stores an answer, and calibrates with the provider's token count.
    async fn store_reply(&mut self, mut reply: Reply) -> Result<()> {
        let model = self.session.overrides.models[self.model].clone();
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
            self.add_usage(&usage);
            self.calibrate(&usage);
        }
        let now = self.now();
        self.session.append(reply.message, now).await
    }

    /// Calibrates the counts with the provider's count of the answered request.
    fn calibrate(&mut self, usage: &ctx_core::Usage) {
        let Some(estimated) =
            self.session.view.as_ref().map(|view| (view.total() + view.ledger().fixed()).get())
        else {
            return;
        };
        if let Some(view) = &mut self.session.view {
            view.ledger_mut().calibrate(usage.prompt(), estimated);
        }
        if let Some(setup) = &mut self.session.setup {
            setup.ledger.calibrate(usage.prompt(), estimated);
        }
    }

    /// Reports how full the window is. The turn is over, so read errors are left to the next turn.
    async fn report_fill(&mut self) {
        if let Ok(view) = self.session.take_view(&self.pool.home).await {
            let ledger = view.ledger();
            let (limit, window) = (ledger.limit(), ledger.window());
            self.outcome.fill = Some(WindowFill { used: view.used(), limit, window });
            self.session.view = Some(view);
        }
    }

    /// Records the counters of `sessions.json`.
    async fn record_usage(&mut self) {
        let PendingUsage { usage, flushed, compacted } = std::mem::take(&mut self.pending);
        let delta = UsageDelta {
            id: self.session.id.clone(),
            updated_at: self.session.newest,
            usage,
            window: self.session.setup.as_ref().map(|s| s.ledger.window().get()),
            compactions: self.session.compactions,
            compacted,
            flushed,
        };
        let elapsed = self.pool.settings.timer.elapsed();
        if self.pool.usage.record(&self.session.key, &delta, elapsed) {
            let usage = self.pool.usage.clone();
            let written = spawn_blocking(move || usage.write()).await;
            if let Err(error) = written {
                let words = format!("cannot write the session's usage counters: {error}");
                self.notify(NoticeKind::Session, words);
            }
        }
    }
}

/// Adds the usage that a provider reported.
fn add(sum: &mut Usage, usage: &Usage) {
    sum.input = sum.input.saturating_add(usage.input);
    sum.output = sum.output.saturating_add(usage.output);
    sum.cache_read = sum.cache_read.saturating_add(usage.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(usage.cache_write);
    let total = sum.total_tokens.unwrap_or_default().saturating_add(usage.total());
    sum.total_tokens = Some(total);
}

/// Whether another model may succeed after this error.
fn is_model_error(kind: ErrorKind) -> bool {
    use ErrorKind::{Capability, Timeout, Upstream, WindowTooSmall};
    matches!(kind, Capability | Timeout | Upstream | WindowTooSmall)
}

/// Whether the state of the disk is uncertain: neither another model nor a retry helps.
fn is_disk_error(kind: ErrorKind) -> bool {
    use ErrorKind::{Corrupt, Io, Locked, NotFound};
    matches!(kind, Corrupt | Io | Locked | NotFound)
}

#[cfg(test)]
mod tests;
