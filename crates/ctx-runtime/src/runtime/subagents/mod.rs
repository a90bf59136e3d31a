//! Subagents: a task in a session of its own, whose result is returned to the caller.
//!
//! ```text
//! slot -> engine prepares -> session created, resolved -> turn, beside the parent's -> closed
//!             |                        | on failure
//!             |                        +-- the engine rolls back
//!             +-- from here on, the engine is notified once of the end
//! ```

mod notifier;
mod request;
mod session;
mod slots;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use ctx_config::ConversationModels;
use ctx_core::{ContextEngine, Error, ErrorKind, Result, SubagentEnd, SubagentSpawn, Toolbox};
use ctx_session::key::SessionKey;
use tracing::{Instrument, Span};

use super::{Inner, Runtime};
use crate::host::{Event, Listener, Notice, NoticeKind, TurnOutcome};
use crate::lifecycle::SubagentConfig;
use crate::models::ModelChain;
use crate::session::{OpenReason, Session};
use notifier::SubagentNotifier;
use session::SubagentStart;
use slots::SubagentSlot;

pub use request::{ContextMode, SpawnRequest, SubagentOutcome};

pub(super) use slots::SubagentSlots;

/// The text before a subagent's task. It also keeps a task from being read as a command.
const PREFACE: &str = "You are a subagent: do the task below and nothing else. Your last answer is \
                       your result; whoever started you reads that and nothing before \
                       it.\n\nTask: ";

impl Runtime {
    /// Runs a task in a subagent with its own session, and returns its answer. It runs beside the
    /// parent's turn, which waits for it without blocking others; see [`lanes`](crate::lanes) for
    /// tools that spawn their own tasks.
    ///
    /// The engine of `parent` prepares first. It rolls that back if the subagent cannot start. It
    /// is notified once of the end: also when the subagent fails, is [stopped](Self::stop_subagent)
    /// or times out, or when this future is dropped.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if the maximum number or depth of subagents is reached;
    /// [`NotFound`](ErrorKind::NotFound) if there is nothing to fork from;
    /// [`Cancelled`](ErrorKind::Cancelled) if it was stopped; [`Timeout`](ErrorKind::Timeout);
    /// those of the engine and of [`turn`](Self::turn).
    pub async fn spawn(
        &self,
        parent: &SessionKey,
        request: SpawnRequest,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<SubagentOutcome> {
        let child = session::key(parent, &self.inner.sessions.settings.ids.next_id())?;
        let span = tracing::info_span!("subagent", %parent, %child, mode = ?request.mode);
        Box::pin(self.spawned(parent, child, request, tools, listener)).instrument(span).await
    }

    /// Stops a running subagent. Returns whether it was running.
    pub fn stop_subagent(&self, child: &SessionKey) -> bool {
        self.inner.subagents.stop(child)
    }

    /// Returns the running subagents of a session.
    pub fn subagents(&self, parent: &SessionKey) -> Vec<SessionKey> {
        self.inner.subagents.of(parent)
    }

    async fn spawned(
        &self,
        parent: &SessionKey,
        child: SessionKey,
        request: SpawnRequest,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<SubagentOutcome> {
        let limits: SubagentConfig = self.inner.sessions.config.section()?;
        let depth = session::depth(parent).saturating_add(1);
        let slot = self.inner.subagents.take(parent, &child, depth, &limits)?;
        let longest = request.timeout.or(limits.timeout());
        let spawn = SubagentSpawn {
            parent_session_key: parent.to_string(),
            child_session_key: child.to_string(),
            ttl_ms: longest.map(|longest| u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)),
        };
        let engine = Box::pin(self.engine_of(parent)).await?;
        let runtime = self.for_subagent(&request, &child)?;
        let mut notifier = SubagentNotifier::prepare(engine, spawn).await?;
        let mode = request.mode;
        let start = SubagentStart { parent: parent.clone(), child: child.clone(), mode, depth };
        if let Err(error) = Box::pin(runtime.begin_subagent(start, tools)).await {
            if let Err(failed) = notifier.rollback().await {
                notify(listener, format!("the engine failed to roll back a subagent: {failed}"));
            }
            return Err(error);
        }
        notifier.started();
        let task = format!("{PREFACE}{}", request.task);
        let run = runtime.run_subagent(&child, task, longest, &slot, tools, &mut *listener);
        let (done, reason) = run.await;
        let closed = runtime.close_session(&child).await;
        if let Err(failed) = notifier.ended(reason).await {
            notify(listener, format!("the engine failed after a subagent: {failed}"));
        }
        let turn = done?;
        closed?;
        Ok(SubagentOutcome { key: child, turn })
    }

    /// Runs the turn of a subagent until it ends, is stopped or takes too long.
    async fn run_subagent(
        &self,
        child: &SessionKey,
        task: String,
        longest: Option<Duration>,
        slot: &SubagentSlot,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> (Result<TurnOutcome>, SubagentEnd) {
        let timer = self.inner.sessions.settings.timer.clone();
        tokio::select! {
            biased;
            done = Box::pin(self.turn(child, task, tools, listener)) => {
                let reason = match &done {
                    Ok(_) => SubagentEnd::Completed,
                    Err(_) => SubagentEnd::Failed,
                };
                (done, reason)
            }
            () = slot.stopped() => {
                let error = Error::new(ErrorKind::Cancelled, "the subagent was stopped");
                let error = error.with("session", child);
                let hint = "its output so far is in its session; start another subagent";
                let error = error.hint(hint);
                (Err(error), SubagentEnd::Released)
            }
            () = async {
                match longest {
                    Some(longest) => timer.sleep(longest).await,
                    None => std::future::pending().await,
                }
            } => {
                let error = Error::new(ErrorKind::Timeout, "the subagent timed out")
                    .with("session", child)
                    .hint(
                        "raise agents.defaults.subagents.runTimeoutSeconds, or give it a smaller \
                         task",
                    );
                (Err(error), SubagentEnd::Swept)
            }
        }
    }

    /// Returns the engine of a session, and opens the session if needed.
    async fn engine_of(&self, key: &SessionKey) -> Result<Arc<dyn ContextEngine>> {
        if let Some(engine) = self.inner.sessions.engines.of(key) {
            return Ok(engine);
        }
        let work = |mut session: Session, _| async move {
            let prepared = session.prepare_any(&self.inner.sessions, &[]).await;
            let engine = prepared.and_then(|()| Ok(session.setup()?.engine.clone()));
            (session, engine)
        };
        self.with_session(Span::current(), key, OpenReason::Existing, work).await
    }

    /// Returns this runtime with the subagent's models, window and system prompt. Idle sessions are
    /// separate; lanes, memories and counters are shared.
    fn for_subagent(&self, request: &SpawnRequest, child: &SessionKey) -> Result<Self> {
        let mut settings = self.inner.sessions.settings.clone();
        settings.window = request.window.or(settings.window);
        settings.system = request.system.clone().or(settings.system);
        // A subagent has no later turn, which would apply a background compaction.
        settings.background = false;
        let agent = child.agent().map_or("main", |agent| agent.as_str());
        let config = self.inner.sessions.config.for_subagents(agent);
        let (own, parents) =
            (config.for_agent(Some(agent)), self.inner.sessions.config.for_agent(Some(agent)));
        let is_own = own.section::<ConversationModels>()? != parents.section()?;
        let named = match &request.model {
            Some(model) => vec![model.clone()],
            None if is_own => {
                ModelChain::connect(&own, &[])?.map_or_else(Vec::new, |chain| chain.models)
            }
            None => Vec::new(),
        };
        let models = named.iter().chain(&self.inner.sessions.models).cloned().collect();
        let sessions = Arc::new(self.inner.sessions.derived(config, models, settings));
        Ok(Self { inner: Arc::new(Inner { sessions, ..(*self.inner).clone() }) })
    }
}

fn notify(listener: &mut dyn Listener, text: String) {
    tracing::warn!("{text}");
    listener.on(Event::Notice(&Notice { kind: NoticeKind::Engine, text }));
}
