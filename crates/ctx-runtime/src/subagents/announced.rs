//! What an engine is told of a subagent: that it starts, and once that it is over, whatever happens.

use std::future::Future;
use std::sync::Arc;

use ctx_core::{ContextEngine, Error, ErrorKind, Result, SubagentEnd, SubagentSpawn};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// A subagent that an engine was told of. One that is dropped is over: if it had not started, its
/// start is taken back, else the engine hears that it was let go.
pub(crate) struct Announced {
    engine: Arc<dyn ContextEngine>,
    spawn: SubagentSpawn,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The engine prepares, or has prepared.
    Starting,
    Running,
    /// The engine has heard all it will hear.
    Over,
}

impl Announced {
    /// Tells the engine that a subagent is about to start.
    ///
    /// # Errors
    ///
    /// Those of the engine; then there is nothing to take back.
    pub(crate) async fn prepare(
        engine: Arc<dyn ContextEngine>,
        spawn: SubagentSpawn,
    ) -> Result<Self> {
        let mut announced = Self { engine, spawn, state: State::Starting };
        let prepared = announced.engine.prepare_subagent_spawn(&announced.spawn).await;
        if let Err(error) = prepared {
            announced.state = State::Over;
            return Err(error);
        }
        Ok(announced)
    }

    /// It has started.
    pub(crate) fn started(&mut self) {
        self.state = State::Running;
    }

    /// It did not start after all.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub(crate) async fn take_back(mut self) -> Result<()> {
        told(self.tell(SubagentEnd::Released)).await
    }

    /// It is over.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub(crate) async fn ended(mut self, reason: SubagentEnd) -> Result<()> {
        told(self.tell(reason)).await
    }

    /// Tells the engine in a task of its own: who waits for this may be dropped, and the engine is to
    /// hear it all the same. `None` where it has heard it, and where nothing can run any more.
    fn tell(&mut self, reason: SubagentEnd) -> Option<JoinHandle<Result<()>>> {
        let state = std::mem::replace(&mut self.state, State::Over);
        let (engine, spawn) = (self.engine.clone(), self.spawn.clone());
        let words = async move {
            match state {
                State::Starting => engine.rollback_subagent_spawn(&spawn).await,
                State::Running => engine.on_subagent_ended(&spawn.child_session_key, reason).await,
                State::Over => Ok(()),
            }
        };
        match (state, Handle::try_current()) {
            (State::Over, _) | (_, Err(_)) => None,
            (_, Ok(handle)) => Some(handle.spawn(words.in_current_span())),
        }
    }
}

async fn told(
    task: Option<impl Future<Output = Result<Result<()>, tokio::task::JoinError>>>,
) -> Result<()> {
    let Some(task) = task else { return Ok(()) };
    match task.await {
        Ok(told) => told,
        Err(error) => {
            Err(Error::new(ErrorKind::Contract, "the engine failed over a subagent's end")
                .source(error)
                .hint("this is an error of the engine"))
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.tell(SubagentEnd::Released);
    }
}
