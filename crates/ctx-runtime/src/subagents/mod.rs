//! Subagents: a task in a session of its own, whose result goes back to who started it.
//!
//! ```text
//! place -> the engine prepares -> session begun, settled -> turn, beside the parent's -> closed
//!              |                        | fails
//!              |                        +-- the engine takes it back
//!              +-- whatever happens from here on, the engine hears once that it is over
//! ```

mod announced;
mod config;
mod engines;
mod request;
mod seats;
mod start;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ctx_core::{ContextEngine, Error, ErrorKind, Result, SubagentEnd, SubagentSpawn, Toolbox};
use ctx_engine_registry::ConversationModels;
use ctx_session::key::SessionKey;
use tracing::Instrument;

use crate::Chain;
use crate::runtime::{Event, Listener, Notice, NoticeKind, Opening, Runtime};
use announced::Announced;
use start::Birth;

pub use config::SubagentConfig;
pub use request::{ContextMode, SpawnRequest, SubagentOutcome};

pub(crate) use engines::Engines;
pub(crate) use seats::Seats;

/// What a subagent is told before its task. It also keeps a task from being taken for a command.
const PREFACE: &str = "You are a subagent: do the task below and nothing else. Your last answer is \
                       your result; whoever started you reads that and nothing before it.\n\nTask: ";

impl Runtime {
    /// Has a subagent do a task, in a session of its own, and returns its answer. It runs beside the
    /// parent's turn, which waits for it and holds nobody up meanwhile; see [`lanes`](crate::lanes)
    /// for tools that hand work to tasks of their own.
    ///
    /// The engine of `parent` prepares first. It takes that back if the subagent cannot start, and
    /// hears once that it is over: also when it fails, is [stopped](Self::stop_subagent), takes too
    /// long, or when this future is dropped.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if there are as many as there may be, or as deep;
    /// [`NotFound`](ErrorKind::NotFound) if there is nothing to fork from;
    /// [`Cancelled`](ErrorKind::Cancelled) if it was stopped; [`Timeout`](ErrorKind::Timeout); those
    /// of the engine, and as [`turn`](Self::turn).
    pub async fn spawn(
        &self,
        parent: &SessionKey,
        request: SpawnRequest,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<SubagentOutcome> {
        let child = start::key(parent, &self.inner.settings.ids.next_id())?;
        let span = tracing::info_span!("subagent", %parent, %child, mode = ?request.mode);
        Box::pin(self.spawned(parent, child, request, tools, listener)).instrument(span).await
    }

    /// Ends a subagent that runs. Whether there is one.
    pub fn stop_subagent(&self, child: &SessionKey) -> bool {
        self.inner.seats.stop(child)
    }

    /// The subagents of a session that run.
    #[must_use]
    pub fn subagents(&self, parent: &SessionKey) -> Vec<SessionKey> {
        self.inner.seats.of(parent)
    }

    async fn spawned(
        &self,
        parent: &SessionKey,
        child: SessionKey,
        request: SpawnRequest,
        tools: &dyn Toolbox,
        listener: &mut dyn Listener,
    ) -> Result<SubagentOutcome> {
        let limits: SubagentConfig = self.inner.config.section()?;
        let depth = start::depth(parent).saturating_add(1);
        let seat = self.inner.seats.take(parent, &child, depth, &limits)?;
        let longest = request.timeout.or(limits.timeout());
        let spawn = SubagentSpawn {
            parent_session_key: parent.to_string(),
            child_session_key: child.to_string(),
            ttl_ms: longest.map(|longest| u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)),
        };
        let engine = Box::pin(self.engine_of(parent)).await?;
        let runtime = self.for_subagent(&request, &child)?;
        let mut announced = Announced::prepare(engine, spawn).await?;
        let mode = request.mode;
        let birth = Birth { parent: parent.clone(), child: child.clone(), mode, depth };
        if let Err(error) = Box::pin(runtime.begin_subagent(birth, tools)).await {
            if let Err(failed) = announced.take_back().await {
                say(listener, format!("the engine did not take a subagent back: {failed}"));
            }
            return Err(error);
        }
        announced.started();
        let timer = self.inner.settings.timer.clone();
        let task = format!("{PREFACE}{}", request.task);
        let (done, reason) = tokio::select! {
            biased;
            done = Box::pin(runtime.turn(&child, task, tools, &mut *listener)) => {
                let reason = match &done {
                    Ok(_) => SubagentEnd::Completed,
                    Err(_) => SubagentEnd::Failed,
                };
                (done, reason)
            }
            () = seat.stopped() => {
                let error = Error::new(ErrorKind::Cancelled, "the subagent was stopped");
                let error = error.with("session", &child);
                let error = error.hint("what it said so far is in its session; begin another");
                (Err(error), SubagentEnd::Released)
            }
            () = async {
                match longest {
                    Some(longest) => timer.sleep(longest).await,
                    None => std::future::pending().await,
                }
            } => {
                let error = Error::new(ErrorKind::Timeout, "the subagent took too long")
                    .with("session", &child)
                    .hint("raise agents.defaults.subagents.runTimeoutSeconds, or ask for less");
                (Err(error), SubagentEnd::Swept)
            }
        };
        let closed = runtime.let_go(&child).await;
        if let Err(failed) = announced.ended(reason).await {
            say(listener, format!("the engine failed after a subagent: {failed}"));
        }
        let turn = done?;
        closed?;
        Ok(SubagentOutcome { key: child, turn })
    }

    /// The engine that a session is run with. One that is not open is opened for that.
    async fn engine_of(&self, key: &SessionKey) -> Result<Arc<dyn ContextEngine>> {
        if let Some(engine) = self.inner.engines.of(key) {
            return Ok(engine);
        }
        let work = async {
            let (mut session, _) = self.take(key, Opening::AsItIs).await?;
            let settled = session.settle_any(&self.inner, &[]).await;
            let engine = session.setting().map(|setting| setting.engine.clone());
            self.put_back(session, settled.as_ref().err()).await;
            settled.and(engine)
        };
        self.inner.lanes.run(key.clone(), work).await
    }

    /// This runtime, with the subagent's models, window and system prompt. Its sessions are its own;
    /// lanes, memories and counters are shared.
    fn for_subagent(&self, request: &SpawnRequest, child: &SessionKey) -> Result<Self> {
        let mut settings = self.inner.settings.clone();
        settings.window = request.window.or(settings.window);
        settings.system = request.system.clone().or(settings.system);
        // Nobody comes back to swap it in.
        settings.background = false;
        let agent = child.agent().map_or("main", |agent| agent.as_str());
        let config = self.inner.config.for_subagents(agent);
        let (own, parents) =
            (config.for_agent(Some(agent)), self.inner.config.for_agent(Some(agent)));
        let is_own = own.section::<ConversationModels>()? != parents.section()?;
        let named = match &request.model {
            Some(model) => vec![model.clone()],
            None if is_own => {
                Chain::connect(&own, &[])?.map_or_else(Vec::new, |chain| chain.models)
            }
            None => Vec::new(),
        };
        let models = named.iter().chain(&self.inner.models).cloned().collect();
        let mut inner = self.inner.derived(models, settings);
        inner.config = config;
        Ok(Self { inner: Arc::new(inner) })
    }
}

fn say(listener: &mut dyn Listener, words: String) {
    tracing::warn!("{words}");
    listener.on(Event::Notice(&Notice { kind: NoticeKind::Engine, words }));
}
