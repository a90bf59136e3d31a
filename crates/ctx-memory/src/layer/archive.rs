//! What leaves the window goes to the archive.

use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{ContextView, Layer, MemoryStore, Prepared, Result, TurnContext};

use super::leaving::Leaving;
use super::said::Warnings;
use super::views::Views;

/// Hands every message that the model no longer sees in full to the memory: those that any layer
/// left out, and those that were shortened.
///
/// # Notes
///
/// It runs behind all layers. What the view itself leaves out afterwards, so that the request fits,
/// is archived with the next request. The memory takes messages in at once and writes them later: a
/// request waits for no disk. A memory that fails is told of by a warning, and no request with it.
///
/// # Default
///
/// Off, with `agents.defaults.memoryContext.enabled`.
pub struct Archive {
    memory: Arc<dyn MemoryStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    views: Views<Leaving>,
    warnings: Warnings,
}

impl Archive {
    /// The layer's name in manifests.
    pub const ID: &'static str = "memory-archive";

    /// A layer that archives into `memory`.
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
        let State { views, warnings } = &mut *state;
        let leaving = views.of(view);
        let entries = leaving.since(view);
        if entries.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.memory.archive(&entries) {
            leaving.again();
            warnings.push(format!("what left the window was not archived: {error}"));
        }
        Ok(())
    }

    fn take_warnings(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).warnings.take()
    }
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}
