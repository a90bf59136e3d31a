//! Collects messages as edited, up to a limit.

use std::collections::HashSet;

use ctx_core::{Action, ContextView, Edit, EntryId, Node, NodeState};

use crate::EditedMessage;

/// The maximum number of tokens kept: some tens of megabytes of text.
const KEPT_TOKENS: u64 = 16_000_000;

/// The number of tokens kept so far.
#[derive(Debug, Default)]
pub(crate) struct EditedMessages {
    kept: u64,
}

impl EditedMessages {
    /// Returns the messages of a request that its edits changed, as edited.
    pub(crate) fn of(&mut self, edits: &[Edit], view: &ContextView) -> Vec<EditedMessage> {
        let edited: HashSet<&EntryId> = edits
            .iter()
            .filter(|edit| matches!(edit.action, Action::Insert | Action::Replace))
            .map(|edit| &edit.entry)
            .collect();
        if edited.is_empty() {
            return Vec::new();
        }
        let nodes = view.nodes();
        let mut forms = Vec::new();
        // Iterates backwards, so that the next message is known.
        let mut next: Option<&EntryId> = None;
        for node in nodes.iter().rev().filter(|node| node.is_live()) {
            let is_added = node.state() == NodeState::Inserted;
            if edited.contains(node.entry().id()) {
                let before = next.filter(|_| is_added).cloned();
                forms.push(self.form(node, before));
            }
            if !is_added {
                next = Some(node.entry().id());
            }
        }
        forms.reverse();
        forms
    }

    fn form(&mut self, node: &Node, before: Option<EntryId>) -> EditedMessage {
        let kept = self.kept.saturating_add(node.tokens().get());
        // A message that cannot be read has no text to show.
        let message = (kept <= KEPT_TOKENS).then(|| node.message().ok()).flatten();
        if message.is_some() {
            self.kept = kept;
        }
        let (entry, role) = (node.entry().id().clone(), node.role().name().to_owned());
        EditedMessage { entry, role, before, message }
    }
}
