//! How many subagents run, and ending one from outside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::SessionKey;
use tokio::sync::Notify;

use super::SubagentConfig;
use crate::session::locked;

/// The subagents that run.
#[derive(Default)]
pub(crate) struct Seats {
    running: Arc<Mutex<HashMap<SessionKey, Running>>>,
}

struct Running {
    parent: SessionKey,
    stop: Arc<Notify>,
}

/// A subagent's place among those that run, until it is dropped.
pub(crate) struct Seat {
    running: Arc<Mutex<HashMap<SessionKey, Running>>>,
    child: SessionKey,
    stop: Arc<Notify>,
}

impl Seats {
    /// Takes a place for one more. Nobody waits for one: those that hold the places may be waiting
    /// for whoever asks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if there is none.
    pub(crate) fn take(
        &self,
        parent: &SessionKey,
        child: &SessionKey,
        depth: u32,
        limits: &SubagentConfig,
    ) -> Result<Seat> {
        let refused = |message: &'static str, most: usize, key: &str| {
            Error::new(ErrorKind::Conflict, message)
                .with("session", parent)
                .with("most", most)
                .hint(format!("raise agents.defaults.subagents.{key}, or do the task without it"))
        };
        if depth > limits.max_spawn_depth {
            let most = limits.max_spawn_depth as usize;
            let message = "a subagent at that depth may start none";
            return Err(refused(message, most, "maxSpawnDepth"));
        }
        let mut running = locked(&self.running);
        let of_parent = running.values().filter(|running| running.parent == *parent).count();
        if of_parent >= limits.max_children_per_agent {
            let message = "the session has as many subagents running as it may";
            let refused = refused(message, limits.max_children_per_agent, "maxChildrenPerAgent");
            return Err(refused.retryable());
        }
        if running.len() >= limits.max_concurrent {
            let message = "as many subagents are running as may";
            return Err(refused(message, limits.max_concurrent, "maxConcurrent").retryable());
        }
        let stop = Arc::new(Notify::new());
        running.insert(child.clone(), Running { parent: parent.clone(), stop: stop.clone() });
        Ok(Seat { running: self.running.clone(), child: child.clone(), stop })
    }

    /// Tells one to stop. Whether it runs.
    pub(crate) fn stop(&self, child: &SessionKey) -> bool {
        let running = locked(&self.running);
        let found = running.get(child);
        found.inspect(|running| running.stop.notify_one()).is_some()
    }

    /// Those that run, of one session.
    pub(crate) fn of(&self, parent: &SessionKey) -> Vec<SessionKey> {
        let running = locked(&self.running);
        let mut children: Vec<_> = running
            .iter()
            .filter(|(_, running)| running.parent == *parent)
            .map(|(child, _)| child.clone())
            .collect();
        children.sort();
        children
    }
}

impl Seat {
    /// Ends when somebody wants the subagent to stop.
    pub(crate) async fn stopped(&self) {
        self.stop.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.running).remove(&self.child);
    }
}
