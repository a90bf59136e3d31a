//! Hooks that run when a tool result is written.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Message, TurnContext};

/// Inspects a tool result before it is stored, and may replace it.
pub trait ToolResultHook: Send + Sync {
    /// Returns the message to store instead, or `None` to store it unchanged.
    fn on_tool_result(&self, message: &Message, turn: &TurnContext) -> Option<Message>;
}

/// A hook, and the number that identifies it for removal.
type Numbered = (u64, Arc<dyn ToolResultHook>);

/// The hooks of one session; none by default. Cheap to clone; clones share the list.
#[derive(Clone, Default)]
pub struct ToolHooks {
    hooks: Arc<Mutex<Vec<Numbered>>>,
}

impl ToolHooks {
    /// Adds a hook. It is removed when the returned value is dropped.
    #[must_use = "the hook is removed when this is dropped"]
    pub fn install(&self, hook: Arc<dyn ToolResultHook>) -> Installed {
        let mut hooks = self.lock();
        let id = hooks.last().map_or(0, |(id, _)| id + 1);
        hooks.push((id, hook));
        Installed { hooks: self.clone(), id }
    }

    /// Passes a tool result through all hooks, in the order of installation.
    #[must_use]
    pub fn run(&self, message: Message, turn: &TurnContext) -> Message {
        let hooks: Vec<_> = self.lock().iter().map(|(_, hook)| hook.clone()).collect();
        hooks.iter().fold(message, |m, hook| hook.on_tool_result(&m, turn).unwrap_or(m))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Numbered>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ToolHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolHooks").field("installed", &self.lock().len()).finish()
    }
}

/// Removes a hook when dropped.
#[derive(Debug)]
pub struct Installed {
    hooks: ToolHooks,
    id: u64,
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.hooks.lock().retain(|(id, _)| *id != self.id);
    }
}
