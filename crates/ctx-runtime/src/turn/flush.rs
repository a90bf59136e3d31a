//! The memory flush: a silent turn before a compaction, in which the model writes down what should
//! be remembered.
//!
//! The turn sees the session's messages, but is neither stored in the session nor shown. It runs
//! once per compaction cycle. If it fails, the user gets only a notice.

use std::sync::Arc;

use ctx_core::{
    ChatRequest, ContextView, Entry, Error, ErrorKind, Message, Result, Role, TokenLedger, Tokens,
};
use ctx_layers::compaction::{Config, MemoryFlush};
use ctx_workspace::WorkspaceAccess;
use tracing::Instrument;

use super::Turn;
use super::ask::{check_complete, receive};
use super::assemble::joined;
use super::compact::WindowShare;
use super::no_reply::NO_REPLY;
use super::notes::DailyNote;
use crate::forget::NoteIndex;
use crate::host::{NoticeKind, layer};
use crate::session::{rebuild_view, tools_json};

/// Maximum number of requests of a flush.
const MAX_REQUESTS: usize = 4;

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
enum FlushTime {
    /// Close to the threshold.
    Near,
    /// Regardless of the session's size.
    Now,
}

/// The parameters of a flush.
struct Flush {
    note: DailyNote,
    system: Option<String>,
    prompt: String,
}

impl Turn<'_> {
    /// Flushes memory if the session is near or past its threshold.
    pub(super) async fn flush_if_due(&mut self, share: WindowShare) {
        Box::pin(self.flush_when(FlushTime::Near, share)).await;
    }

    /// Flushes memory because the session is about to be compacted, regardless of its size.
    pub(super) async fn flush_first(&mut self, share: WindowShare) {
        Box::pin(self.flush_when(FlushTime::Now, share)).await;
    }

    async fn flush_when(&mut self, due: FlushTime, share: WindowShare) {
        let done = match self.prepare_flush(due).await {
            Ok(None) => return,
            Ok(Some(flush)) => {
                let span = tracing::info_span!("flush", session = %self.session.id);
                self.flush(&flush, share).instrument(span).await
            }
            Err(error) => Err(error),
        };
        // One attempt per cycle: otherwise it would be repeated before every request.
        let count = self.session.compactions;
        self.session.flushed_at = Some(count);
        self.pool.layers.action(layer::FLUSH, "flush");
        match done {
            Ok(()) => self.pending.flushed = Some((self.session.newest, count)),
            Err(error) => {
                self.notify(NoticeKind::Flush, format!("memory was not flushed: {error}"));
            }
        }
    }

    async fn prepare_flush(&mut self, due: FlushTime) -> Result<Option<Flush>> {
        let pool = self.pool;
        if self.session.flushed_at == Some(self.session.compactions) {
            return Ok(None);
        }
        let setup = self.session.setup()?;
        let compaction = &setup.resolved.compaction;
        let is_wanted = compaction.enabled && compaction.memory_flush.enabled;
        if !is_wanted || setup.access != WorkspaceAccess::ReadWrite {
            return Ok(None);
        }
        let workspace = setup.folder.path()?;
        // A missing workspace is reported once, when a flush would be due.
        if workspace.is_none() && (due == FlushTime::Now || self.session.flushed_at.is_some()) {
            return Ok(None);
        }
        let view = self.session.take_view(&pool.home).await?;
        let soft = soft_threshold(&self.session.setup()?.resolved.compaction, view.ledger());
        let is_due = match due {
            FlushTime::Near => view.used() > soft,
            FlushTime::Now => !view.is_empty(),
        };
        self.session.view = Some(view);
        if !is_due {
            return Ok(None);
        }
        let workspace = workspace.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "missing workspace for notes (agents.defaults.workspace)",
            )
            .hint("set a folder, or disable compaction.memoryFlush.enabled")
        })?;
        let now = self.now();
        let compaction = &self.session.setup()?.resolved.compaction;
        let MemoryFlush { prompt, system_prompt, .. } = compaction.memory_flush.clone();
        let system = hinted(system_prompt, SYSTEM);
        let notes = NoteIndex::of(&pool.home.memory_dir(&self.session.agent));
        Ok(Some(Flush {
            note: DailyNote::of(&workspace, now, (notes, self.session.id.clone()))?,
            system: joined(&pool.settings.system, Some(&system)),
            prompt: hinted(prompt, PROMPT),
        }))
    }

    async fn flush(&mut self, flush: &Flush, share: WindowShare) -> Result<()> {
        let pool = self.pool;
        let model = self.session.overrides.models[self.model].clone();
        let mut view = self.flush_view(flush, share).await?;
        let specs: Arc<[_]> = flush.note.specs().into();
        let mut added = 0;
        let mut add = |view: &mut ContextView, message: Message| {
            added += 1;
            view.append(Arc::new(Entry::in_memory(format!("flush-{added}"), message)))
        };
        add(&mut view, Message::text(Role::User, &*flush.prompt))?;
        for _ in 0..MAX_REQUESTS {
            view.finish()?;
            let request = ChatRequest {
                system: flush.system.clone(),
                messages: view.messages()?,
                tools: specs.clone(),
                ..ChatRequest::default()
            };
            self.outcome.requests += 1;
            let reply = receive(&*model, request, &pool.settings, &mut |_| {}).await;
            let reply = reply.and_then(check_complete)?;
            if let Some(usage) = reply.message.meta.usage {
                self.add_usage(&usage);
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
        Err(Error::new(ErrorKind::Upstream, "the model did not finish the memory flush")
            .with("requests", MAX_REQUESTS)
            .hint("the notes it wrote are kept"))
    }

    /// Returns a separate view of the session's messages.
    async fn flush_view(&mut self, flush: &Flush, share: WindowShare) -> Result<ContextView> {
        let setup = self.session.setup()?;
        let base = &setup.ledger;
        let ledger = match share {
            WindowShare::Whole => base.clone(),
            WindowShare::Half => {
                TokenLedger::new(*base.counter(), base.window().scale(0.5), base.reserve())
            }
        };
        let count = |text: &str| base.counter().text(text);
        let system = flush.system.as_deref().map_or(Tokens::ZERO, count);
        let ledger = ledger.with_system(system).with_tools(count(&tools_json(flush.note.specs())));
        rebuild_view(self.pool.home.clone(), self.session.path.clone(), ledger).await
    }
}

/// Returns the size at which a session is near its threshold: at least half of it, as otherwise a
/// session in a small window would be flushed immediately. (OpenClaw.)
fn soft_threshold(compaction: &Config, ledger: &TokenLedger) -> Tokens {
    let threshold = compaction.threshold(ledger);
    let below = Tokens(compaction.memory_flush.soft_threshold_tokens);
    threshold - below.min(threshold.scale(0.5))
}

/// Returns the configured text, with the instruction to answer `NO_REPLY` added if it is missing;
/// or the built-in text.
fn hinted(configured: Option<String>, built_in: &str) -> String {
    match configured {
        Some(text) if text.contains(NO_REPLY) => text,
        Some(text) => format!("{text}\n\n{HINT}"),
        None => built_in.to_owned(),
    }
}
