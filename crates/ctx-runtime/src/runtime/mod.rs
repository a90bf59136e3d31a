//! The runtime: open sessions, and turns in their lanes.

mod builder;
mod subagents;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ctx_config::Config;
#[cfg(doc)]
use ctx_core::ErrorKind;
use ctx_core::{CompactResult, Result, Toolbox};
use ctx_session::Home;
use ctx_session::key::{FileId, SessionKey};
use tracing::Instrument;

pub use builder::Builder;
pub use subagents::{ContextMode, SpawnRequest, SubagentOutcome};

use subagents::SubagentSlots;

use crate::host::{Input, LayerAction, Listener, NoListener, TurnOutcome};
use crate::lanes::Lanes;
use crate::maintenance::{
    Due, MaintenanceJob, MaintenanceReport, MaintenanceRun, MaintenanceSchedule,
};
use crate::memory::MemoryWorker;
use crate::session::{OpenReason, Session, SessionPool};
use crate::sync::spawn_blocking;
use crate::turn::Turn;

/// Runs conversations: takes a message and returns an answer.
///
/// # What
///
/// Turns of a session run in its lane, one after another. A turn selects the model by the window
/// guard, stores the message, and then makes requests until the model is done: the selected engine
/// assembles each request from the session's file, tools run one by one, a request that the
/// provider rejects as too long is made smaller, and a failed one is retried or sent to the next
/// model. The answer is on disk when [`turn`](Self::turn) returns.
///
/// # Notes
///
/// Dropping the future of a turn ends the turn: whole lines that it stored remain, and calls
/// without results are answered as failed when the session is next used.
///
/// Sessions stay open, and locked against other processes, until [`close`](Self::close), until the
/// last clone of the runtime is dropped, or until too many are open ([`Builder::open_sessions`]).
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) sessions: Arc<SessionPool>,
    pub(crate) lanes: Lanes,
    subagents: Arc<SubagentSlots>,
    pub(crate) maintenance: Arc<MaintenanceSchedule>,
}

impl Runtime {
    /// Creates a builder for a runtime over the files of `home`.
    pub fn builder(home: Home, config: Config) -> Builder {
        Builder::new(home, config)
    }

    /// Answers a message in the session of `key`, which is created if it does not exist. Waits for
    /// its turn in the session's lane.
    ///
    /// # Errors
    ///
    /// [`WindowTooSmall`](ErrorKind::WindowTooSmall) if no model's window is large enough;
    /// [`CompactionFailure`](ErrorKind::CompactionFailure) if the request stayed too long for the
    /// model; [`Conflict`](ErrorKind::Conflict) if this call would deadlock;
    /// [`NotFound`](ErrorKind::NotFound) if the session's file is missing; the error of the last
    /// model of the chain; and errors of reading and writing. Stored entries remain.
    pub async fn turn(
        &self,
        key: &SessionKey,
        message: impl Into<Input>,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<TurnOutcome> {
        let message = message.into();
        let span = tracing::info_span!(
            "turn",
            session = %key,
            otel.name = "invoke_agent",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.conversation.id = %key,
        );
        let reason = crate::turn::open_reason(&message);
        let work = |session, notices| async move {
            let mut turn = Turn::new(&self.inner.sessions, session, tools, listener);
            turn.report_opening(notices);
            let done = Box::pin(turn.run(message)).await;
            (turn.into_session(), done)
        };
        let done = self.with_session(span, key, reason, work).await;
        self.start_maintenance(key);
        done
    }

    /// Runs work on the session of `key`, in its lane.
    async fn with_session<T, F: Future<Output = (Session, Result<T>)>>(
        &self,
        span: tracing::Span,
        key: &SessionKey,
        reason: OpenReason,
        work: impl FnOnce(Session, Vec<String>) -> F,
    ) -> Result<T> {
        let sessions = &self.inner.sessions;
        // On the heap, as a tool may run another turn inside this one.
        let work = async {
            let (session, notices) = Box::pin(sessions.acquire(key, reason)).await?;
            let (session, done) = work(session, notices).await;
            Box::pin(sessions.release(session, done.as_ref().err())).await;
            done
        };
        self.inner.lanes.run(key.clone(), Box::pin(work.instrument(span))).await
    }

    /// Compacts a session, after the work in progress. `focus` is what the summary should
    /// emphasise. Call it outside of the session's turns: within one it is a
    /// [`Conflict`](ErrorKind::Conflict), as the session and the turn would wait for each other.
    ///
    /// # Errors
    ///
    /// The errors of [`turn`](Self::turn) and of the engine's compaction.
    pub async fn compact(&self, key: &SessionKey, focus: Option<&str>) -> Result<CompactResult> {
        let span = tracing::info_span!("compact", session = %key);
        let work = |session, _| async move {
            let mut listener = NoListener;
            let sessions = &self.inner.sessions;
            let mut turn = Turn::new(sessions, session, &ctx_core::NoTools, &mut listener);
            let done = Box::pin(turn.compact_manually(focus)).await;
            (turn.into_session(), done)
        };
        self.with_session(span, key, OpenReason::Existing, work).await
    }

    /// Closes a session, after the work in progress, so that other processes can open it. Waits ten
    /// seconds at most for background work on its memory (vectors and facts by a model).
    ///
    /// # Errors
    ///
    /// Those of making its last entries durable.
    pub async fn close(&self, key: &SessionKey) -> Result<()> {
        let mut memory = self.close_session(key).await?;
        for words in memory.close().await {
            tracing::warn!(%key, "{words}");
        }
        Ok(())
    }

    /// Closes a session and returns its memory, whose background work continues.
    async fn close_session(&self, key: &SessionKey) -> Result<MemoryWorker> {
        self.inner.lanes.run(key.clone(), self.inner.sessions.close(key)).await
    }

    /// Returns how often each layer performed each action, in all sessions since the runtime was
    /// built.
    pub fn layer_actions(&self) -> Vec<LayerAction> {
        self.inner.sessions.layers.list()
    }

    /// Maintains an agent's sessions as `session.maintenance` says, but ignores its `mode`;
    /// with `dry_run` nothing is changed. Turns also start it by `mode`, at most once an hour.
    /// Sessions open in any runtime are kept.
    ///
    /// # Errors
    ///
    /// If the store or the folder of sessions cannot be read. Errors of single sessions are in the
    /// report.
    pub async fn maintain(&self, agent: &FileId, dry_run: bool) -> Result<MaintenanceReport> {
        let (sessions, agent) = (self.inner.sessions.clone(), agent.clone());
        spawn_blocking(move || {
            sessions.usage.write()?;
            let memory = sessions.agents.memory(&agent);
            let now = (sessions.settings.clock)();
            let run = MaintenanceRun::of(&sessions.home, &sessions.config, &agent, memory, now)?;
            run.dry(dry_run).run(&mut |_, _| {})
        })
        .await
    }

    /// Waits up to `longest` for the maintenance that follows turns, then stops it after the
    /// current session; none starts after that. Call this before the program ends;
    /// otherwise the exit waits without a limit.
    pub async fn end_maintenance(&self, longest: Duration) {
        let Inner { sessions, maintenance, .. } = &*self.inner;
        tokio::select! {
            biased;
            () = maintenance.finished() => {}
            () = sessions.settings.timer.sleep(longest) => {}
        }
        maintenance.stop();
    }

    /// Starts maintenance of the agent's other sessions in the background, if it is due.
    fn start_maintenance(&self, key: &SessionKey) {
        let Inner { sessions, maintenance, .. } = &*self.inner;
        let agent = key.agent().cloned().unwrap_or_else(FileId::main);
        let due = maintenance.due(&agent, sessions.settings.timer.elapsed());
        if due == Due::No {
            return;
        }
        let now = (sessions.settings.clock)();
        let expired = sessions.expired(now);
        let runtime = (!expired.is_empty()).then(|| self.clone());
        let closed = async move {
            let Some(runtime) = runtime else { return };
            for key in expired {
                if let Err(error) = runtime.close(&key).await {
                    tracing::warn!(%key, "cannot close the session: {error}");
                }
            }
        };
        let (home, config) = (sessions.home.clone(), sessions.config.clone());
        let memory = sessions.agents.memory(&agent);
        maintenance.begin(MaintenanceJob { home, config, agent, memory, now, due }, closed);
    }
}

#[cfg(test)]
mod tests;
