//! Notifies an engine of a subagent: that it starts and, exactly once, that it ended.

use std::future::Future;
use std::sync::Arc;

use ctx_core::{ContextEngine, Error, ErrorKind, Result, SubagentEnd, SubagentSpawn};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// A subagent that an engine was notified of. When dropped, the subagent is over: its start is
/// rolled back if it had not started, else the engine is notified that it was released.
pub(crate) struct SubagentNotifier {
    engine: Arc<dyn ContextEngine>,
    spawn: SubagentSpawn,
    state: SubagentState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubagentState {
    /// The engine is preparing, or has prepared.
    Starting,
    Running,
    /// The engine has received all notifications.
    Over,
}

impl SubagentNotifier {
    /// Notifies the engine that a subagent is about to start.
    ///
    /// # Errors
    ///
    /// Those of the engine; then there is nothing to roll back.
    pub(crate) async fn prepare(
        engine: Arc<dyn ContextEngine>,
        spawn: SubagentSpawn,
    ) -> Result<Self> {
        let mut notifier = Self { engine, spawn, state: SubagentState::Starting };
        let prepared = notifier.engine.prepare_subagent_spawn(&notifier.spawn).await;
        if let Err(error) = prepared {
            notifier.state = SubagentState::Over;
            return Err(error);
        }
        Ok(notifier)
    }

    /// Records that it has started.
    pub(crate) fn started(&mut self) {
        self.state = SubagentState::Running;
    }

    /// Rolls back the start.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub(crate) async fn rollback(mut self) -> Result<()> {
        joined(self.notify(SubagentEnd::Released)).await
    }

    /// Notifies the engine that it ended.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub(crate) async fn ended(mut self, reason: SubagentEnd) -> Result<()> {
        joined(self.notify(reason)).await
    }

    /// Notifies the engine in a separate task, as the caller may be dropped. Returns `None` if the
    /// engine was already notified, or if no task can run any more.
    fn notify(&mut self, reason: SubagentEnd) -> Option<JoinHandle<Result<()>>> {
        let state = std::mem::replace(&mut self.state, SubagentState::Over);
        let (engine, spawn) = (self.engine.clone(), self.spawn.clone());
        let words = async move {
            match state {
                SubagentState::Starting => engine.rollback_subagent_spawn(&spawn).await,
                SubagentState::Running => {
                    engine.on_subagent_ended(&spawn.child_session_key, reason).await
                }
                SubagentState::Over => Ok(()),
            }
        };
        match (state, Handle::try_current()) {
            (SubagentState::Over, _) | (_, Err(_)) => None,
            (_, Ok(handle)) => Some(handle.spawn(words.in_current_span())),
        }
    }
}

async fn joined(
    task: Option<impl Future<Output = Result<Result<()>, tokio::task::JoinError>>>,
) -> Result<()> {
    let Some(task) = task else { return Ok(()) };
    match task.await {
        Ok(joined) => joined,
        Err(error) => {
            Err(Error::new(ErrorKind::Contract, "the engine failed at the end of a subagent")
                .source(error)
                .hint("this is an error of the engine"))
        }
    }
}

impl Drop for SubagentNotifier {
    fn drop(&mut self) {
        self.notify(SubagentEnd::Released);
    }
}
