//! The memory flush: a silent turn before a compaction, in which the model writes down what should
//! outlive it.
//!
//! It is a turn beside the session: it sees the session's messages, and nothing of it is stored or
//! shown. It runs once in a compaction cycle. What it costs when it fails is a notice.

use std::sync::Arc;

use ctx_core::{
    ChatRequest, ContextView, Entry, Error, ErrorKind, Message, Result, Role, TokenLedger, Tokens,
};
use ctx_layers::compaction::{Config, MemoryFlush};
use tracing::Instrument;

use super::Turn;
use super::ask::{heard, whole};
use super::assemble::joined;
use super::compact::Room;
use super::no_reply::NO_REPLY;
use super::notes::DailyNote;
use crate::forget::Notes;
use crate::runtime::{NoticeKind, WorkspaceAccess, layer};
use crate::session::rebuilt;
use crate::session::tools_json;

/// How many requests a flush makes at most.
const MOST_REQUESTS: usize = 4;

const PROMPT: &str = "The older part of this conversation is about to be replaced by a summary. \
    Write down what must outlive it: decisions, facts, wishes of the user, work that is not done. \
    Use append_memory; it adds to the note of the day and changes nothing else. When there is \
    nothing (more) to write down, answer NO_REPLY.";

const SYSTEM: &str = "This turn is for your memory alone: the user neither asked for it nor sees \
    it. Write down only what is worth keeping for weeks, and nothing that is secret. Answer \
    NO_REPLY when you are done.";

const HINT: &str = "When you are done, answer NO_REPLY.";

/// When memory is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Close to the threshold.
    Near,
    /// Whatever the session holds.
    Now,
}

/// What a flush is run with.
struct Flush {
    note: DailyNote,
    system: Option<String>,
    prompt: String,
}

impl Turn<'_> {
    /// Flushes memory if the session is close to its threshold, or beyond it.
    pub(super) async fn flush_if_due(&mut self, room: Room) {
        Box::pin(self.flush_when(Due::Near, room)).await;
    }

    /// Flushes memory because the session is about to be compacted, however much it holds.
    pub(super) async fn flush_first(&mut self, room: Room) {
        Box::pin(self.flush_when(Due::Now, room)).await;
    }

    async fn flush_when(&mut self, due: Due, room: Room) {
        let done = match self.flush_of(due).await {
            Ok(None) => return,
            Ok(Some(flush)) => {
                let span = tracing::info_span!("flush", session = %self.session.id);
                self.flush(&flush, room).instrument(span).await
            }
            Err(error) => Err(error),
        };
        // Tried once is enough: it would be tried before every request.
        let count = self.session.compactions;
        self.session.flushed_at = Some(count);
        self.inner().counts.did(layer::FLUSH, "flush");
        match done {
            Ok(()) => self.untold.flushed = Some((self.session.newest, count)),
            Err(error) => self.say(NoticeKind::Flush, format!("memory was not flushed: {error}")),
        }
    }

    async fn flush_of(&mut self, due: Due) -> Result<Option<Flush>> {
        let inner = self.inner();
        if self.session.flushed_at == Some(self.session.compactions) {
            return Ok(None);
        }
        let setting = self.session.setting()?;
        let compaction = &setting.resolved.compaction;
        let is_wanted = compaction.enabled && compaction.memory_flush.enabled;
        if !is_wanted || setting.access != WorkspaceAccess::ReadWrite {
            return Ok(None);
        }
        let workspace = setting.folder.path()?;
        // That there is none is said once, when it would be time.
        if workspace.is_none() && (due == Due::Now || self.session.flushed_at.is_some()) {
            return Ok(None);
        }
        let view = self.session.take_view(&inner.home).await?;
        let soft = soft_threshold(&self.session.setting()?.resolved.compaction, view.ledger());
        let is_due = match due {
            Due::Near => view.used() > soft,
            Due::Now => !view.is_empty(),
        };
        self.session.view = Some(view);
        if !is_due {
            return Ok(None);
        }
        let workspace = workspace.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "there is no workspace (agents.defaults.workspace) for notes",
            )
            .hint("name a folder, or switch compaction.memoryFlush.enabled off")
        })?;
        let now = self.now();
        let compaction = &self.session.setting()?.resolved.compaction;
        let MemoryFlush { prompt, system_prompt, .. } = compaction.memory_flush.clone();
        let system = hinted(system_prompt, SYSTEM);
        let notes = Notes::of(&inner.home.memory_dir(&self.session.agent));
        Ok(Some(Flush {
            note: DailyNote::of(&workspace, now, (notes, self.session.id.clone()))?,
            system: joined(&inner.settings.system, Some(&system)),
            prompt: hinted(prompt, PROMPT),
        }))
    }

    async fn flush(&mut self, flush: &Flush, room: Room) -> Result<()> {
        let inner = self.inner();
        let model = self.session.own.models[self.model].clone();
        let mut view = self.beside(flush, room).await?;
        let specs: Arc<[_]> = flush.note.specs().into();
        let mut added = 0;
        let mut add = |view: &mut ContextView, message: Message| {
            added += 1;
            view.append(Arc::new(Entry::held(format!("flush-{added}"), message)))
        };
        add(&mut view, Message::text(Role::User, &*flush.prompt))?;
        for _ in 0..MOST_REQUESTS {
            view.finish()?;
            let request = ChatRequest {
                system: flush.system.clone(),
                messages: view.messages()?,
                tools: specs.clone(),
                ..ChatRequest::default()
            };
            self.outcome.requests += 1;
            let reply = heard(&*model, request, &inner.settings, &mut |_| {}).await;
            let reply = reply.and_then(whole)?;
            if let Some(usage) = reply.usage().copied() {
                self.used(&usage);
            }
            let calls: Vec<_> = reply.message.tool_calls().cloned().collect();
            if calls.is_empty() {
                return Ok(());
            }
            add(&mut view, reply.message)?;
            for call in &calls {
                let output = flush.note.run(call).await;
                add(&mut view, output.into_message(call))?;
            }
        }
        Err(Error::new(ErrorKind::Upstream, "the model did not come to an end of it")
            .with("requests", MOST_REQUESTS)
            .hint("what it wrote is there"))
    }

    /// The session's messages in a view of their own.
    async fn beside(&mut self, flush: &Flush, room: Room) -> Result<ContextView> {
        let setting = self.session.setting()?;
        let base = &setting.ledger;
        let ledger = match room {
            Room::Whole => base.clone(),
            Room::Half => {
                TokenLedger::new(*base.counter(), base.window().scale(0.5), base.reserve())
            }
        };
        let count = |text: &str| base.counter().text(text);
        let system = flush.system.as_deref().map_or(Tokens::ZERO, count);
        let ledger = ledger.with_system(system).with_tools(count(&tools_json(flush.note.specs())));
        rebuilt(self.inner().home.clone(), self.session.path.clone(), ledger).await
    }
}

/// From where on a session is close to its threshold: no lower than half of it, or a small window
/// would be flushed at once. (OpenClaw.)
fn soft_threshold(compaction: &Config, ledger: &TokenLedger) -> Tokens {
    let threshold = compaction.threshold(ledger);
    let below = Tokens(compaction.memory_flush.soft_threshold_tokens);
    threshold - below.min(threshold.scale(0.5))
}

/// The text of the configuration, which must say how to be silent, or the built-in one.
fn hinted(configured: Option<String>, built_in: &str) -> String {
    match configured {
        Some(text) if text.contains(NO_REPLY) => text,
        Some(text) => format!("{text}\n\n{HINT}"),
        None => built_in.to_owned(),
    }
}
