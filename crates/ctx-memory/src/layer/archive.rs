//! Archives what leaves the window.

use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{ContextView, Layer, MemoryStore, Prepared, Result, TurnContext, Views, Warnings};

use super::departed::DepartedMessages;

/// Passes every message that the model no longer sees in full to the memory: messages dropped by
/// any layer, and truncated ones.
///
/// # Notes
///
/// It runs after compaction and trim, and before recall. Messages that are dropped afterwards to make
/// the request fit are archived with the next request. The memory accepts messages at once and writes
/// them later, so a request does not wait for the disk. If the memory fails, a warning is reported and the
/// request continues.
///
/// # Default
///
/// Off, with `agents.defaults.memoryContext.enabled`.
pub struct Archive {
    memory: Arc<dyn MemoryStore>,
    state: Mutex<ArchiveState>,
}

#[derive(Default)]
struct ArchiveState {
    views: Views<DepartedMessages>,
    warnings: Warnings,
}

impl Archive {
    /// The layer's name in manifests.
    pub(crate) const ID: &'static str = "memory-archive";

    /// Returns a layer that archives into `memory`.
    #[must_use]
    pub fn new(memory: Arc<dyn MemoryStore>) -> Self {
        Self { memory, state: Mutex::default() }
    }
}

impl Layer for Archive {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ArchiveState { views, warnings } = &mut *state;
        let leaving = views.of(view);
        let entries = leaving.take_new(view);
        if entries.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.memory.archive(&entries) {
            leaving.reset();
            warnings.push(format!("messages that left the window were not archived: {error}"));
        }
        Ok(())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).warnings.take()
    }
}

ctx_core::partial_debug!(Archive, it);
