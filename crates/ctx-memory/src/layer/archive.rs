//! What leaves the window goes to the archive.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{
    ContextView, Entry, EntryId, Layer, MemoryStore, Node, NodeState, Prepared, Result, TurnContext,
};

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
    views: Views<Seen>,
    warnings: Warnings,
}

/// What was archived of a view.
#[derive(Default)]
struct Seen {
    /// How many of those left out in the past.
    left_out: usize,
    /// Those that are shortened, and those left out since.
    entries: HashSet<EntryId>,
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

impl Seen {
    fn take(&mut self, node: &Node) -> Option<Arc<Entry>> {
        let leaves = match node.state() {
            NodeState::Dropped => true,
            NodeState::Replaced => node.tokens() < node.source_tokens(),
            NodeState::Kept | NodeState::Inserted => false,
        };
        // What a layer added is in no transcript, whatever became of it since.
        let is_recorded = node.source_tokens() > ctx_core::Tokens::ZERO;
        (leaves && is_recorded && self.entries.insert(node.entry().id().clone()))
            .then(|| node.entry().clone())
    }
}

impl Layer for Archive {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = state.views.of(view);
        let since = seen.left_out.min(view.left_out().len());
        let past = &view.left_out()[since..];
        let leaving: Vec<_> =
            past.iter().chain(view.nodes()).filter_map(|n| seen.take(n)).collect();
        seen.left_out = view.left_out().len();
        if leaving.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.memory.archive(&leaving) {
            state.warnings.push(format!("what left the window was not archived: {error}"));
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
