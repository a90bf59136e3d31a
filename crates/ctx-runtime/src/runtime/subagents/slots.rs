//! Limits the number of running subagents, and stops them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::SessionKey;
use tokio::sync::Notify;

use crate::lifecycle::SubagentConfig;
use crate::sync::locked;

/// The running subagents.
#[derive(Default)]
pub(crate) struct SubagentSlots {
    running: Arc<Mutex<HashMap<SessionKey, RunningSubagent>>>,
}

struct RunningSubagent {
    parent: SessionKey,
    stop: Arc<Notify>,
}

/// Counts a subagent as running until this is dropped.
pub(crate) struct SubagentSlot {
    running: Arc<Mutex<HashMap<SessionKey, RunningSubagent>>>,
    child: SessionKey,
    stop: Arc<Notify>,
}

impl SubagentSlots {
    /// Takes a slot for one more subagent. Fails instead of waiting, as the running subagents may
    /// themselves wait for the caller.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] if no slot is free.
    pub(crate) fn take(
        &self,
        parent: &SessionKey,
        child: &SessionKey,
        depth: u32,
        limits: &SubagentConfig,
    ) -> Result<SubagentSlot> {
        let refused = |message: &'static str, most: usize, key: &str| {
            Error::new(ErrorKind::Conflict, message)
                .with("session", parent)
                .with("most", most)
                .hint(format!("raise agents.defaults.subagents.{key}, or do the task without it"))
        };
        if depth > limits.max_spawn_depth {
            let most = limits.max_spawn_depth as usize;
            let message = "maximum depth of subagents reached";
            return Err(refused(message, most, "maxSpawnDepth"));
        }
        let mut running = locked(&self.running);
        let of_parent = running.values().filter(|running| running.parent == *parent).count();
        if of_parent >= limits.max_children_per_agent {
            let message = "maximum number of subagents of the session reached";
            let refused = refused(message, limits.max_children_per_agent, "maxChildrenPerAgent");
            return Err(refused.retryable());
        }
        if running.len() >= limits.max_concurrent {
            let message = "maximum number of subagents reached";
            return Err(refused(message, limits.max_concurrent, "maxConcurrent").retryable());
        }
        let stop = Arc::new(Notify::new());
        running
            .insert(child.clone(), RunningSubagent { parent: parent.clone(), stop: stop.clone() });
        Ok(SubagentSlot { running: self.running.clone(), child: child.clone(), stop })
    }

    /// Requests a subagent to stop. Returns whether it was running.
    pub(crate) fn stop(&self, child: &SessionKey) -> bool {
        let running = locked(&self.running);
        let found = running.get(child);
        found.inspect(|running| running.stop.notify_one()).is_some()
    }

    /// Returns the running subagents of one session.
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

impl SubagentSlot {
    /// Completes when the subagent must stop.
    pub(crate) async fn stopped(&self) {
        self.stop.notified().await;
    }
}

impl Drop for SubagentSlot {
    fn drop(&mut self) {
        locked(&self.running).remove(&self.child);
    }
}
