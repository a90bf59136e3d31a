//! Which messages have left a view, each told once.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{ContextView, Entry, EntryId, Node, NodeState, Tokens, ViewId};

/// What of a view was seen leaving: for whoever archives it, whichever layer or engine took it out.
///
/// A view that is made anew is another view, with a past of its own: all that it left out is told
/// again. An archive that has it already does not mind.
#[derive(Debug, Default)]
pub struct Leaving {
    view: Option<ViewId>,
    /// How many of those left out in the past.
    left_out: usize,
    /// Those that are shortened, and those left out since.
    entries: HashSet<EntryId>,
}

impl Leaving {
    /// The messages that the model no longer sees in full, since this was last asked: those left out,
    /// and those that were shortened. What a layer added is in no transcript, and is none of them.
    pub fn since(&mut self, view: &ContextView) -> Vec<Arc<Entry>> {
        if self.view.as_ref() != Some(view.id()) {
            *self = Self { view: Some(view.id().clone()), ..Self::default() };
        }
        let past = view.left_out().get(self.left_out..).unwrap_or(view.left_out());
        self.left_out = view.left_out().len();
        past.iter().chain(view.nodes()).filter_map(|node| self.take(node)).collect()
    }

    /// Has everything told again, as when it could not be archived.
    pub fn again(&mut self) {
        *self = Self::default();
    }

    fn take(&mut self, node: &Node) -> Option<Arc<Entry>> {
        let leaves = match node.state() {
            NodeState::Dropped => true,
            NodeState::Replaced => node.tokens() < node.source_tokens(),
            NodeState::Kept | NodeState::Inserted => false,
        };
        // What a layer added is in no transcript, whatever became of it since.
        let is_recorded = node.source_tokens() > Tokens::ZERO;
        (leaves && is_recorded && self.entries.insert(node.entry().id().clone()))
            .then(|| node.entry().clone())
    }
}
