//! Finds the messages that have left a view, each reported once.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{ContextView, Entry, EntryId, Node, NodeState, Tokens, ViewId};

/// Tracks which messages of a view have left it, dropped by any layer or engine.
///
/// A rebuilt view is another view without a history: everything it drops is reported again. The
/// archive ignores messages it already has.
#[derive(Debug, Default)]
pub struct DepartedMessages {
    view: Option<ViewId>,
    /// The number of past messages that are dropped.
    left_out: usize,
    /// Truncated messages, and those dropped since.
    entries: HashSet<EntryId>,
}

impl DepartedMessages {
    /// Returns the messages that the model no longer sees in full since the last call: dropped and
    /// truncated ones. Messages that a layer inserted are not part of a transcript and are not
    /// included.
    pub fn take_new(&mut self, view: &ContextView) -> Vec<Arc<Entry>> {
        if self.view.as_ref() != Some(view.id()) {
            *self = Self { view: Some(view.id().clone()), ..Self::default() };
        }
        let past = view.dropped().get(self.left_out..).unwrap_or(view.dropped());
        self.left_out = view.dropped().len();
        past.iter().chain(view.nodes()).filter_map(|node| self.take(node)).collect()
    }

    /// Reports everything again, for example because archiving failed.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn take(&mut self, node: &Node) -> Option<Arc<Entry>> {
        let leaves = match node.state() {
            NodeState::Dropped => true,
            NodeState::Replaced => node.tokens() < node.source_tokens,
            NodeState::Kept | NodeState::Inserted => false,
        };
        // A message that a layer inserted is not part of a transcript.
        let is_recorded = node.source_tokens > Tokens::ZERO;
        (leaves && is_recorded && self.entries.insert(node.entry().id().clone()))
            .then(|| node.entry().clone())
    }
}
